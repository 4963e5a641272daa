"""Whether attention tells corrupted pairs from clean ones, beyond position and beyond what gradient descent does.

python -m analysis.attention_stats --run DIR

Scores of pair j, for every layer and head: attention a_j of the query's row; |a_j|; contribution a . d prediction / d a
(a after the softmax), summed over all rows that look and over the pair's columns. And of the whole model: influence,
d prediction / d y_j. The contribution contains y_j, so it shows noise even for gradient descent, whose values stand
beside.
"""

from __future__ import annotations

if __name__ == "__main__":
    from analysis.commands import run

    run("attention_stats")

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from analysis.separation import separation
from analysis.subject import Subject, load_subject
from baselines.gd_step import Predictor
from curricula.context import Context, clean_twin, evaluation_context
from plots.attention_stats import draw_attention_stats
from src.batch import Batch
from src.data import tokenise
from store import layout
from store.atomic import write_json

BOOTSTRAP_SEED = 0


def influence(predict: Predictor, batch: Batch) -> Array:
    """d prediction / d y_j [B, N]. For one step of gradient descent from zero it is c x_j.x_query."""
    return jax.grad(lambda y: jnp.sum(predict(batch._replace(y=y))))(batch.y)


def attention_scores(subject: Subject, batch: Batch) -> list[dict[str, Array]]:
    """For each layer {score: [B, H, N]} of attention, abs_attention and contribution."""
    config = subject.config
    tokens = tokenise(batch, config.model)

    def forward(shifts: list[Array]) -> tuple[Array, list[Array]]:
        seen: list[Array] = []

        def shift(name: str, layer: int, value: Array) -> Array:
            if name != "attention":
                return value
            seen.append(value)
            return value + shifts[layer]

        return jnp.sum(subject.model.forward(subject.params, tokens, shift)), seen

    shape = (len(tokens), config.model.num_heads, config.num_rows, config.num_rows - 1)
    shifts = [jnp.zeros(shape, tokens.dtype) for _ in range(config.model.num_layers)]
    slopes, maps = jax.grad(forward, has_aux=True)(shifts)
    return [_pair_scores(weights, slope, config.data.num_pairs) for weights, slope in zip(maps, slopes, strict=True)]


def _pair_scores(weights: Array, slope: Array, num_pairs: int) -> dict[str, Array]:
    """Scores [B, H, N] of a layer's weights [B, H, R, C] and their slopes; a pair's columns stand side by side."""
    by_pair = (*weights.shape[:3], num_pairs, -1)
    attention = jnp.sum(weights.reshape(by_pair)[:, :, -1], axis=-1)
    contribution = jnp.sum((weights * slope).reshape(by_pair), axis=(2, 4))
    return {"attention": attention, "abs_attention": jnp.abs(attention), "contribution": contribution}


def gd_scores(subject: Subject, batch: Batch) -> dict[str, Array]:
    """The same scores [B, N] of gradient descent, whose attention to pair j is x_j.x_query."""
    attention = jnp.einsum("bnd,bd->bn", batch.x, batch.x_query)
    slope = influence(subject.gd.predict, batch)
    contribution = batch.y * slope
    return {
        "attention": attention,
        "abs_attention": jnp.abs(attention),
        "contribution": contribution,
        "influence": slope,
    }


def attention_stats(subject: Subject, context: Context) -> dict[str, Any]:
    """All scores on the evaluation contexts, in numbers: see `analysis.separation`."""
    hit = np.asarray(context.hit)
    batches = (context.batch, clean_twin(subject.config, context))

    def numbers(pair: tuple[Array, Array]) -> dict[str, Any]:
        scores, twin = (np.asarray(part, np.float64) for part in pair)
        return separation(scores, hit, twin, BOOTSTRAP_SEED)

    def all_numbers(pair: tuple[Mapping[str, Array], Mapping[str, Array]]) -> dict[str, Any]:
        return {name: numbers((pair[0][name], pair[1][name])) for name in pair[0]}

    layers = [jax.jit(lambda batch: attention_scores(subject, batch))(batch) for batch in batches]
    model = subject.config.model
    settings = subject.config.eval
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
        "influence": numbers(tuple(influence(subject.predict, batch) for batch in batches)),
        "gd": all_numbers(tuple(gd_scores(subject, batch) for batch in batches)),
    }


def write(subject: Subject, context: Context) -> dict[str, Any]:
    """Writes attention_stats.json and its figure."""
    values = attention_stats(subject, context)
    write_json(subject.run / layout.ATTENTION_STATS, values)
    draw_attention_stats(subject.run)
    return values


def command(run: Path, allow_pickle: bool = False) -> dict[str, Any]:
    """The command line: the position-matched AUROC of every score of a stored run, with its interval."""
    subject = load_subject(run, allow_pickle=allow_pickle)
    values = write(subject, evaluation_context(subject.config))
    shown = {f"gd {name}": numbers for name, numbers in values["gd"].items()} | {"model influence": values["influence"]}
    for layer in values["layers"]:
        for head in layer["heads"]:
            shown |= {f"layer {layer['layer']} head {head['head']} {n}": v for n, v in head["scores"].items()}
    return {name: _in_words(numbers) for name, numbers in shown.items()}


def _in_words(numbers: Mapping[str, Any]) -> str:
    if not np.isfinite(numbers["auroc"]):
        return "no AUROC: no position has both clean and noisy pairs"
    low, high = numbers["auroc_interval"]
    return f"AUROC {numbers['auroc']:.3f} [{low:.3f}, {high:.3f}], raw {numbers['auroc_raw']:.3f}"
