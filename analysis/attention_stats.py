"""Tests whether the attention of a run separates corrupted pairs from clean ones.

python -m analysis.attention_stats --run DIR

Scores of pair j in each layer and head: attention a_j of the query's row, and contribution a . d prediction / d a (a
after the softmax), summed over query rows and over the pair's columns. Of the whole model: influence, d prediction /
d y_j. Each is signed and absolute; models are compared by |influence|. A contribution contains y_j, so it depends on
label noise even for gradient descent; influence does not, so that of gradient descent is blind to label noise. The
query row's attention in a copying layer says nothing about the pairs. What a detector could reach on the same contexts
is reported with them: `analysis.detectors`.
Writes attention_stats.json and its figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import ComparedRun, load_compared
from icl_lab.analysis.separation import detectors, separation
from icl_lab.families.regression.task import clean_twin, evaluation_context
from icl_lab.plots.dots import draw_attention_stats
from icl_lab.src.batch import Batch
from icl_lab.src.config import ModelConfig
from icl_lab.src.context import Context
from icl_lab.src.data import tokenise
from icl_lab.src.model import Model, Params
from icl_lab.src.units import standardised
from icl_lab.store import layout
from icl_lab.store.atomic import write_json

BOOTSTRAP_SEED = 0


@jax.jit
def influence(predict: Partial, batch: Batch) -> Array:
    """d prediction / d y_j [B, N]. For one step of gradient descent from zero it is c x_j.x_query."""
    gradient: Array = jax.grad(lambda y: jnp.sum(predict(batch._replace(y=y))))(batch.y)
    return gradient


def attention_scores(loaded: ComparedRun, batch: Batch) -> list[dict[str, Array]]:
    """For each layer {score: [B, H, N]} of attention and contribution, signed and absolute."""
    seen = standardised(batch, loaded.gd.units)
    layers: list[dict[str, Array]] = _attention_scores(loaded.model, loaded.config.model, loaded.params, seen)
    return layers


@partial(jax.jit, static_argnums=(0, 1))
def _attention_scores(model: Model, settings: ModelConfig, params: Params, batch: Batch) -> list[dict[str, Array]]:
    tokens = tokenise(batch, settings)

    def forward(shifts: list[Array]) -> tuple[Array, list[Array]]:
        seen: list[Array] = []

        def shift(name: str, layer: int | None, value: Array) -> Array:
            if layer is None or name != "attn.pattern":
                return value
            seen.append(value)
            return value + shifts[layer]

        return jnp.sum(model.forward(params, tokens, shift)), seen

    rows = tokens.shape[1]
    shifts = [
        jnp.zeros((len(tokens), settings.num_heads, rows, rows - 1), tokens.dtype) for _ in range(settings.num_layers)
    ]
    slopes, maps = jax.grad(forward, has_aux=True)(shifts)
    return [_pair_scores(weights, slope, batch.y.shape[1]) for weights, slope in zip(maps, slopes, strict=True)]


def _pair_scores(weights: Array, slope: Array, num_pairs: int) -> dict[str, Array]:
    """Scores [B, H, N] of a layer's weights [B, H, R, C] and their slopes; a pair's columns stand side by side."""
    by_pair = (*weights.shape[:3], num_pairs, -1)
    attention = jnp.sum(weights.reshape(by_pair)[:, :, -1], axis=-1)
    contribution = jnp.sum((weights * slope).reshape(by_pair), axis=(2, 4))
    return _signed_and_absolute(attention=attention, contribution=contribution)


def gd_scores(loaded: ComparedRun, batch: Batch) -> dict[str, Array]:
    """The same scores [B, N] of gradient descent, whose attention to pair j is x_j.x_query."""
    seen = standardised(batch, loaded.gd.units)
    attention = jnp.einsum("bnd,bd->bn", seen.x, seen.x_query)
    slope = influence(loaded.gd.predict, batch)
    return _signed_and_absolute(attention=attention, contribution=seen.y * slope, influence=slope)


def _signed_and_absolute(**scores: Array) -> dict[str, Array]:
    return {
        name: value
        for measure, score in scores.items()
        for name, value in ((measure, score), (f"abs_{measure}", abs(score)))
    }


def attention_stats(loaded: ComparedRun, context: Context) -> dict[str, Any]:
    """All scores on the evaluation contexts, and the detectors', in numbers: see `analysis.separation`."""
    hit = np.asarray(context.hit)
    batches = (context.batch, clean_twin(loaded.config, context))

    def numbers(pair: tuple[Array, Array]) -> dict[str, Any]:
        scores, clean = (np.asarray(part, np.float64) for part in pair)
        return separation(scores, hit, clean, BOOTSTRAP_SEED)

    def all_numbers(pair: Sequence[Mapping[str, Array]]) -> dict[str, Any]:
        return {name: numbers((pair[0][name], pair[1][name])) for name in pair[0]}

    layers = [attention_scores(loaded, batch) for batch in batches]
    model = loaded.config.model
    settings = loaded.config.eval
    return {
        "tasks": len(hit),
        "noise_mode": settings.noise_mode,
        "noise_p": settings.noise_p,
        "placement": settings.noise_placement,
        "ordering": settings.ordering,
        "auroc": "P(clean > noisy) + P(equal)/2 within positions; intervals: 95 %, bootstrap over contexts",
        "layers": [
            {
                "layer": index,
                "kind": model.kind(index),
                "heads": [
                    {
                        "head": head,
                        "scores": all_numbers(tuple({n: s[:, head] for n, s in part.items()} for part in pair)),
                    }
                    for head in range(model.num_heads)
                ],
            }
            for index, pair in enumerate(zip(*layers, strict=True))
        ],
        **all_numbers(tuple(_signed_and_absolute(influence=influence(loaded.predict, batch)) for batch in batches)),
        "gd": all_numbers(tuple(gd_scores(loaded, batch) for batch in batches)),
        "detectors": detectors(loaded.config, context, batches[1], BOOTSTRAP_SEED),
    }


def write(loaded: ComparedRun, context: Context, figure: bool = True) -> dict[str, Any]:
    """Writes attention_stats.json and, if wanted, its figure."""
    values = attention_stats(loaded, context)
    write_json(loaded.run / layout.ATTENTION_STATS, values)
    if figure:
        draw_attention_stats(loaded.run)
    return values


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """The position-matched AUROC of every score of a stored run, and of detectors of corruption, with its interval."""
    loaded = load_compared(run)
    values = write(loaded, evaluation_context(loaded.config))
    shown = {f"detector {name}": numbers for name, numbers in values["detectors"].items()}
    shown |= {f"gd {name}": numbers for name, numbers in values["gd"].items()}
    shown |= {f"model {name}": values[name] for name in ("influence", "abs_influence")}
    for layer in values["layers"]:
        for head in layer["heads"]:
            shown |= {f"layer {layer['layer']} head {head['head']} {n}": v for n, v in head["scores"].items()}
    return {name: _in_words(numbers) for name, numbers in shown.items()}


def _in_words(numbers: Mapping[str, Any]) -> str:
    if "reason" in numbers:
        return f"no AUROC: {numbers['reason']}"
    if not np.isfinite(numbers["auroc"]):
        return "no AUROC: no position has both clean and noisy pairs"
    low, high = numbers["auroc_interval"]
    return f"AUROC {numbers['auroc']:.3f} [{low:.3f}, {high:.3f}], raw {numbers['auroc_raw']:.3f}"


COMMAND = Command(
    "attention_stats", "Tests whether the attention of a run separates corrupted pairs from clean ones.", measure
)

if __name__ == "__main__":
    COMMAND.launch()
