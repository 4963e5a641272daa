"""Measures behaviour and structure of a model at every checkpoint of its training.

python -m analysis.developmental_metrics --run DIR [--hessian], of a run trained with --config.snapshots=true

Writes analysis/developmental_metrics.csv, a row a checkpoint, and figs/developmental_metrics.png. Of any family: loss,
weight norm and, with --hessian, trace and largest eigenvalue of the loss's Hessian; further columns depend on the
model, and a sentence explains each missing one.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import Array

from icl_lab.analysis import hessian, losses
from icl_lab.analysis.command import Command
from icl_lab.analysis.development import attention_patterns, behaviour, structure, token_parts
from icl_lab.analysis.development.part import Part
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import EvalSet, make_eval_sets, predictions_of
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.lab import cli
from icl_lab.lab.flag_types import SEED, Whole
from icl_lab.plots.training import draw_metrics
from icl_lab.src.checks import require
from icl_lab.src.model import Batch, Model, Params
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv

FIRST = 512  # tasks of the evaluation set on which attention and Hessian are taken
PROBES = 20
MOST_PROBES, MEMORY = 10_000, "the error is then 1 % of one probe's, and each takes a step's time"
SHOWN = ("loss", "weight_norm", "hessian_trace", "hessian_top", "id_icl_1_k_text", "attention_entropy")  # printed

Kinds = tuple[attention_patterns.Kind | None, ...]


def measure_checkpoints(loaded: LoadedRun, hessian: bool, probes: int, seed: int) -> list[dict[str, Any]]:
    """A row for each snapshot of a run's training: `step`, and the values of all parts; no column is empty.

    `hessian` adds its trace, of so many probes drawn from the seed, and top eigenvalue. `StoreError` for a run without
    snapshots, or with another model's; `ConfigError` for fewer than two probes.
    """
    return _rows(loaded, parts_of(loaded, hessian, probes, seed))


def write(loaded: LoadedRun, hessian: bool, probes: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Writes developmental_metrics.csv; gives its rows, and a sentence for each thing that the run does not have."""
    parts = parts_of(loaded, hessian, probes, seed)
    rows = _rows(loaded, parts)
    write_csv(loaded.run / layout.DEVELOPMENTAL_METRICS, rows)
    return rows, [sentence for part in parts for sentence in part.missing]


def parts_of(loaded: LoadedRun, hessian: bool, probes: int, seed: int) -> list[Part]:
    """The parts of a run's rows, in the order of their columns."""
    return [
        Part(lambda then: {**losses.loss(then), "weight_norm": weight_norm(then.params)}),
        _hessian_part(loaded, probes, seed) if hessian else Part(missing=("no Hessian: --hessian measures it",)),
        *(token_parts.parts_of(loaded) or [_behaviour_part(loaded)]),
        _structure_part(loaded),
        _attention_part(loaded),
    ]


def weight_norm(params: Params) -> float:
    """|w| = sqrt(sum of all parameters squared)."""
    return math.sqrt(sum(float(np.sum(np.square(leaf, dtype=float))) for leaf in jax.tree.leaves(params)))


def _rows(loaded: LoadedRun, parts: list[Part]) -> list[dict[str, Any]]:
    return [
        {"step": step} | {name: value for part in parts for name, value in part.measure(then).items()}
        for step, then in loaded.checkpoints()
    ]


def _first(batch: Batch) -> Batch:
    return jax.tree.map(lambda leaf: leaf[:FIRST], batch)


def _hessian_part(loaded: LoadedRun, probes: int, seed: int) -> Part:
    hessian.check_probes(probes)
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(loaded.params))
    tasks, drawn = _first(loaded.batch), hessian.probes_of(seed, probes, size)
    return Part(lambda then: hessian.hessian(then.model, then.params, tasks, drawn))


# --- behaviour ---


def _behaviour_part(loaded: LoadedRun) -> Part:
    """Of sequences of the run's own pool (id_), of fresh tasks (ood_), and of the pool's with larger inputs (gain_)."""
    config = loaded.config
    if not isinstance(config, DiversityConfig):
        return Part(missing=(f"no losses by position: predictions of the family {config.family} have no positions",))
    eval_sets = make_eval_sets(config)
    enlarged = {gain: behaviour.with_gain(eval_sets.id.batch, gain) for gain in behaviour.GAINS}

    def measure(then: LoadedRun) -> dict[str, float]:
        predict, values = partial(predictions_of, then.model, then.params), dict[str, float]()
        for prefix, eval_set in eval_sets.by_name.items():
            scores = _on_sequences(predict(eval_set.batch), eval_set, config.data.dim)
            values |= {f"{prefix}_{name}": value for name, value in scores.items()}
        for gain, batch in enlarged.items():
            scores = behaviour.of_gain(predict(batch), np.asarray(batch.y), gain)
            values |= {f"gain_{gain}_{name}": value for name, value in scores.items()}
        return values

    return Part(measure, _without(config, eval_sets.id.undefined))


def _on_sequences(predictions: np.ndarray, eval_set: EvalSet, dim: int) -> dict[str, float]:
    noisy, references = np.asarray(eval_set.batch.y), eval_set.references
    return behaviour.on_sequences(predictions, noisy, eval_set.targets, references, dim)


def _without(config: DiversityConfig, undefined: Mapping[str, str]) -> tuple[str, ...]:
    """Why a run's behaviour lacks columns that others' has."""
    data, reasons = config.data, []
    if data.num_pairs <= data.dim or data.dim == 1:
        reasons.append(f"no ICL scores 1:D and D:K: D is {data.dim} and K is {data.num_pairs}")
    reasons += [f"no distance to {name}: {reason}" for name, reason in undefined.items()]
    if data.num_tasks == math.inf:
        reasons.append("no distance to dMMSE: the pool of tasks is infinite")
    return tuple(reasons)


# --- structure ---


def _structure_part(loaded: LoadedRun) -> Part:
    params, of_symbols = loaded.params, isinstance(loaded.config, TokensConfig)
    missing = {
        "no embeddings: the model has none": structure.token_matrix(params) is None and not of_symbols,
        "no positions: the model learns none": structure.position_matrix(params) is None and not of_symbols,
        "no layer norms: the model has none": not structure.norms_of(params),
        "no unembedding: the model reads a channel of its tokens": structure.LINEAR not in params and not of_symbols,
        "no singular values of embeddings, no participation of the unembedding: they are tables of symbols": of_symbols,
    }
    parts = (structure.embeddings, structure.layer_norms, structure.unembedding)
    return Part(
        lambda then: {name: value for part in parts for name, value in part(then.params).items()},
        tuple(sentence for sentence, lacks in missing.items() if lacks),
    )


# --- attention ---


@partial(jax.jit, static_argnums=(0, 3))
def _patterns(model: Model, params: Params, batch: Batch, kinds: Kinds) -> dict[int, dict[str, Array]]:
    maps = model.trace(params, batch).attention
    return {layer: attention_patterns.patterns(maps[layer], kind) for layer, kind in enumerate(kinds) if kind}


_maps = jax.jit(lambda model, params, batch: model.trace(params, batch).attention, static_argnums=0)


def _attention_part(loaded: LoadedRun) -> Part:
    """Of the layers whose weights are distributions, as the trained model shows them."""
    batch = _first(loaded.batch)
    try:
        maps = [np.asarray(layer_maps) for layer_maps in _maps(loaded.model, loaded.params, batch)]
    except NotImplementedError:
        maps = []
    kinds = _kinds(maps, loaded.config)
    if not any(kinds):
        shown = "its weights are no distribution" if maps else "the model shows none"
        return Part(missing=(f"no attention patterns: {shown}",))
    linear = [str(layer) for layer, kind in enumerate(kinds) if kind is None]
    missing = f"no attention patterns of layer {', '.join(linear)}: its weights are no distribution"
    return Part(partial(_attention, batch=batch, kinds=kinds), (missing,) if linear else ())


def _kinds(maps: list[np.ndarray], config: Any) -> Kinds:
    model = getattr(config, "model", None)  # a plugin's family need not have one
    interleaved = isinstance(config, DiversityConfig) or getattr(model, "interleaved", False)
    all_read = isinstance(config, TokensConfig)
    return tuple(
        attention_patterns.Kind(
            attention_patterns.are_causal(layer_maps), interleaved, layer == len(maps) - 1, all_read
        )
        if attention_patterns.are_distributions(layer_maps)
        else None
        for layer, layer_maps in enumerate(maps)
    )


def _attention(then: LoadedRun, batch: Batch, kinds: Kinds) -> dict[str, float]:
    """layer_L_head_H_MEASURE, and attention_MEASURE, the mean over all heads that have it."""
    values: dict[str, float] = {}
    means: dict[str, list[float]] = {}
    for layer, patterns in _patterns(then.model, then.params, batch, kinds).items():
        for name, heads in patterns.items():
            for head, value in enumerate(np.asarray(heads, float)):
                values[f"layer_{layer}_head_{head}_{name}"] = float(value)
                means.setdefault(name, []).append(float(value))
    return {f"attention_{name}": float(np.mean(head_values)) for name, head_values in means.items()} | values


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Measures every checkpoint, and draws the figure."""
    probes, seed = (default if given is None else given for given, default in ((flags.probes, PROBES), (flags.seed, 0)))
    rows, missing = write(load_run(run), flags.hessian, probes, seed)
    draw_metrics(run)
    first, last = rows[0], rows[-1]
    shown = {name: f"{first[name]:.4g} to {last[name]:.4g}" for name in SHOWN if name in last} | token_parts.said(rows)
    return {"checkpoints": len(rows), "columns": len(last), **shown, "not measured": "; ".join(missing) or "nothing"}


def _add(parser: cli.Parser) -> None:
    parser.add_argument("--hessian", action="store_true", help="measure the Hessian of the loss too")
    parser.add_argument(
        "--probes",
        type=Whole(2, MOST_PROBES, MEMORY),
        help=f"random vectors of the Hessian's trace (default: {PROBES})",
    )
    parser.add_argument("--seed", type=SEED, help="seed of the random vectors of --probes (default: 0)")


def _check(flags: argparse.Namespace) -> None:
    asked = [f"--{name}" for name in ("probes", "seed") if getattr(flags, name) is not None]
    require(flags.hessian or not asked, f"{' and '.join(asked)} ask for the Hessian's trace; add --hessian")


COMMAND = Command(
    "developmental_metrics",
    "Measures behaviour and structure of a model at every checkpoint of its training.",
    measure,
    _add,
    _check,
)

if __name__ == "__main__":
    COMMAND.launch()
