"""Finishes a run of linear regression: contexts, predictions, analyses, attention, and the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

from icl_lab.analysis.compared_run import ComparedRun, load_compared
from icl_lab.analysis.measures import (
    alignment,
    attention_maps,
    attention_stats,
    comparators,
    copying,
    ood_eval,
    test_set,
    weights,
)
from icl_lab.analysis.ood_eval import ALPHAS
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import EvalSet, first_training_context
from icl_lab.plots.run_figures import draw_run
from icl_lab.runners.finish import Ending, Wanted
from icl_lab.runners.summary import LABELS, header, row, shown
from icl_lab.src.batch import Batch
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import Context
from icl_lab.src.model import Model
from icl_lab.store import layout
from icl_lab.store.atomic import write_json, write_npy, write_npz
from icl_lab.store.readers import read_json

# name in the summary -> measure; "copying" is measured on interleaved tokens only
MEASURES: dict[str, Callable[[ComparedRun], Any]] = {
    "headline": test_set.measure_test_set,
    "alignment": alignment.write,
    "ood": lambda compared: ood_eval.write(compared, list(ALPHAS)),
    "copying": copying.write,
}
DISTRACTED = "ridge that ignores the distractors"  # in place of ridge where the contexts hold distractor labels
AVERAGED = "one step, w and query averaged in closed form"
CORRUPTED = {  # labels that replace others where the contexts are corrupted
    "gd": "gradient descent, {steps} step{s} (clean step size)",
    "ridge": "ridge that ignores the corruption",
    "least squares": "least squares that ignores the corruption",
}
COPIED = {"averaged_before_norm": "gradient averaged over tasks", "per_task": "norm of each task"}
INFORMED = {  # comparators that know of the corruption
    "gd_tuned_step": "gradient descent, step size tuned on it",
    "linear_mmse": "linear MMSE, knows p and sigma",
    "mask_bayes": "Bayes over masks, knows p and sigma",
}
BY_POSITION = {  # comparators that know an order or a placement
    "gd_positions": "1 step, a step size for each position",
    "gd_positions_trained": "the same, fitted on the training's contexts",
}


def finish(
    run: Path, config: RegressionConfig, model: Model, params: Any, eval_set: EvalSet, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    context, gd = eval_set
    _write_contexts(run, config, context)
    yield {"contexts": {name: asdict(getattr(config, name)) for name in ("base", "train", "eval")}}
    compared = ComparedRun(run, config, model, params, jax.tree.map(np.asarray, context.batch), gd)
    _write_predictions(compared)
    if wanted.options.get("save_attention"):
        attention_maps.write(compared, wanted.options["attention_batch"])
        yield {}
    if wanted.table:
        attention_stats.write(compared, context, wanted.figures)
    if wanted.table or comparators.take_a_second(config):
        comparators.write(compared)
        yield {}
    weights.write(compared)
    yield {}
    for name, measure in MEASURES.items():
        if name != "copying" or config.model.interleaved:
            yield {name: measure(compared)}


def add_attention(run: Path, wanted: Wanted) -> None:
    """Captures the attention of a finished run, if asked for and not captured yet."""
    if wanted.options.get("save_attention") and not (run / layout.ATTENTION_SUMMARY).exists():
        attention_maps.write(load_compared(run), wanted.options["attention_batch"])
        draw_run(run)


def _write_contexts(run: Path, config: RegressionConfig, context: Context) -> None:
    """Writes orders, masks and settings of the evaluation batch and of the first training batch."""
    first = first_training_context(config)
    for folder in (run, run / layout.ANALYSIS):
        write_npy(folder / layout.ORDERING_INDEX, np.asarray(context.index))
        write_npy(folder / layout.NOISE_MASK, np.asarray(context.hit))
    write_npy(run / layout.ANALYSIS / f"train_{layout.ORDERING_INDEX}", np.asarray(first.index))
    write_npy(run / layout.ANALYSIS / f"train_{layout.NOISE_MASK}", np.asarray(first.hit))
    metadata = {"train": _with_effects(config.train, first), "eval": _with_effects(config.eval, context)}
    write_json(run / layout.ANALYSIS_METADATA, metadata)


def _with_effects(settings: ContextConfig, context: Context) -> dict[str, Any]:
    """The settings, and whether ordering, noise and placement changed any context of this batch."""
    index, ordered, hit = (np.asarray(part) for part in (context.index, context.ordered, context.hit))
    return asdict(settings) | {
        "order_had_effect": bool((ordered != np.arange(ordered.shape[1])).any()),
        "noise_had_effect": bool(hit.any()) and not settings.adds_nothing,
        "placement_had_effect": bool((index != ordered).any()),
    }


@jax.jit
def _predictions(predictors: dict[str, Partial], batch: Batch) -> dict[str, jax.Array]:
    return {name: predict(batch) for name, predict in predictors.items()}


def _write_predictions(compared: ComparedRun) -> None:
    values = _predictions({"tf": compared.predict, "gd": compared.gd.predict}, compared.batch)
    write_npz(compared.run / layout.PREDICTIONS, {name: np.asarray(values[name]) for name in ("tf", "gd")})


# --- the printed summary ---


def summary_lines(summary: Mapping[str, Any], run: Path, config: RegressionConfig) -> list[str]:
    """Losses with standard errors, alignment, other input scales."""
    summary = {**summary, "comparators": shown(_comparators(run, config))}
    numbers, align = summary["headline"], summary["alignment"]
    lines = [header(numbers), *_losses(summary, config)]
    lines.append(row("transformer / gradient descent, same tasks", numbers, "loss_ratio"))
    if "gd_plus_plus_ratio" in numbers:
        lines.append(row("transformer / GD++, same tasks", numbers, "gd_plus_plus_ratio"))
    lines += [row(f"transformer / {name}, same tasks", numbers, f"{name}_ratio") for name in config.opponents]
    lines += [
        f"alignment on {align['tasks']} tasks: cosine of sensitivities {align['model_cos']:.4f}, mean |prediction "
        f"difference| {align['preds_diff']:.4f}, mean ‖sensitivity difference‖ {align['model_diff']:.4f}",
        f"eta/N {align['eta']:.4f} ({align['eta_source']})",
        "inputs times "
        + ", ".join(f"{row['alpha']:g}: {row['test_mse'] / row['gd_test_mse']:.3f}" for row in summary["ood"])
        + " (MSE over gradient descent's)",
    ]
    copied = summary.get("copying", {})
    return lines + [_copying_row(words, copied[name]) for name, words in COPIED.items() if name in copied]


def _comparators(run: Path, config: RegressionConfig) -> dict[str, Any]:
    """The comparators of a run that know something of its contexts, or the command that measures them, by label."""
    labels = _informed(config)
    if not labels:
        return {}
    path = run / layout.COMPARATORS
    if not path.exists():
        return {"command": f"python -m analysis.comparators --run {quote(str(run))}"}
    values = read_json(path)
    return {name: values[name] for name in labels if name in values or name not in BY_POSITION}


def _informed(config: RegressionConfig) -> dict[str, str]:
    """The comparators that have something to know, with their labels: a corruption, an order or a placement."""
    of_corruption = INFORMED if config.eval.hit_rate > 0 else {}
    return of_corruption | (BY_POSITION if comparators.positions_differ(config) else {})


def _losses(summary: Mapping[str, Any], config: RegressionConfig) -> Iterator[str]:
    """A row per loss; the comparators that know something of the contexts come before ridge."""
    numbers, corrupted = summary["headline"], config.eval.hit_rate > 0
    steps = summary["alignment"]["gd_steps"]
    labels = LABELS | ({"ridge": DISTRACTED} if config.data.num_distractors else {}) | (CORRUPTED if corrupted else {})
    if corrupted and config.data.noise_std == 0:
        labels["ridge"] = CORRUPTED["least squares"]
    for name in (key.removesuffix("_loss") for key in numbers if key.endswith("_loss")):
        if name == "ridge":
            yield from _informed_rows(summary["comparators"], config)
        label = labels.get(name, name).format(steps=steps, s="s" * (steps > 1))
        yield row(label, numbers, f"{name}_loss")
        if name == "gd" and "gd_loss_averaged" in numbers:
            yield row(AVERAGED, numbers, "gd_loss_averaged", deeper=1)


def _informed_rows(measured: Mapping[str, Any], config: RegressionConfig) -> Iterator[str]:
    if "command" in measured:
        known = "corruption" if config.eval.hit_rate > 0 else "order"
        yield f"  {f'comparators that know of the {known}:':<48}{measured['command']}"
        return
    for name, values in measured.items():
        reason = {"loss_reason": values["reason"]} if "reason" in values else {}
        yield row(_informed(config)[name], values | reason, "loss")


def _copying_row(version: str, values: Mapping[str, float]) -> str:
    published = "next_over_other_with_next"  # earlier versions did not write it
    with_next = f" ({values[published]:.1f} as published, with the following among the other)"
    return (
        f"first layer's sensitivity ({version}): own {values['own']:.3f}, following {values['next']:.3f}, "
        f"other {values['other']:.3f}; following / other {values['next_over_other']:.1f}"
        f"{with_next if published in values else ''}"
    )


ENDING = Ending(finish, summary_lines, add_attention)
