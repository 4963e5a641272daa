"""A run of the family regression as it trains and at its end: its parameters, analysis batch, analyses, and summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.tree_util import Partial

from analysis.measures import (
    alignment,
    attention_maps,
    attention_stats,
    comparators,
    copying,
    headline,
    ood_eval,
    weights,
)
from analysis.ood_eval import ALPHAS
from analysis.subject import Subject, load_subject
from configs.identity import config_id
from configs.regression import RegressionConfig
from curricula.context import Context
from families.regression import (
    LOGGED,
    GradientDescent,
    compare_with_gd,
    evaluation_context,
    find_gd,
    first_training_context,
)
from plots.run_figures import draw_run
from runners.finish import Wanted, end
from src.batch import Batch
from src.config import ContextConfig
from src.model import Model
from store import layout
from store.atomic import write_json, write_npy, write_npz
from store.params import write_params

# name in the summary -> how it is measured; copying is what the first layer of interleaved tokens does
MEASURES: dict[str, Callable[[Subject], Any]] = {
    "headline": headline.headline,
    "alignment": alignment.write,
    "ood": lambda subject: ood_eval.write(subject, list(ALPHAS)),
    "copying": copying.write,
}


class Setting(NamedTuple):
    """What a run is looked at with: its evaluation context, and the gradient descent it is held against."""

    context: Context
    gd: GradientDescent


def prepare(config: RegressionConfig) -> Setting:
    """The setting of a config."""
    return Setting(evaluation_context(config), find_gd(config))


def look(model: Model, params: Any, setting: Setting) -> dict[str, float]:
    """A moment of a training: losses on the evaluation batch, and how far the model is from gradient descent."""
    gd = setting.gd
    values = compare_with_gd(model, gd.steps, params, np.float32(gd.step_size), setting.context.batch)
    return {"test_loss": float(values["tf_loss"])} | {name: float(values[name]) for name in LOGGED}


def finish(
    run: Path, config: RegressionConfig, model: Model, params: Any, setting: Setting, wanted: Wanted
) -> Iterator[None]:
    """Writes all that a finished run leaves, ending with the status "done". The same files come from a second call.

    Between its parts it gives control back, so that a signal need not wait for all of them.
    """
    context, gd = setting
    write_params(run, params, {"config_id": config_id(config), "step": config.training.steps})
    _write_contexts(run, config, context)
    yield
    subject = Subject(run, config, model, params, jax.tree.map(np.asarray, context.batch), gd)
    _write_predictions(subject)
    if wanted.attention_batch is not None:
        attention_maps.write(subject, wanted.attention_batch)
        yield
    if wanted.corruption:
        attention_stats.write(subject, context, wanted.figures)
    if wanted.corruption or comparators.take_a_second(config):
        comparators.write(subject)
        yield
    weights.write(subject)
    yield
    measured = {}
    for name, measure in MEASURES.items():
        if name != "copying" or config.model.tokens == "interleaved":
            measured[name] = measure(subject)
            yield
    contexts = {"contexts": {name: asdict(getattr(config, name)) for name in ("base", "train", "eval")}}
    yield from end(run, config, contexts | measured, wanted.figures)


def capture_missing_attention(run: Path, attention: int | None) -> None:
    """Captures the attention of a run that finished without it, if it is asked for."""
    if attention is None or (run / layout.ATTENTION_SUMMARY).exists():
        return
    attention_maps.write(load_subject(run), attention)
    draw_run(run)


def _write_contexts(run: Path, config: RegressionConfig, context: Context) -> None:
    """The evaluation batch and what was done to it; the first training batch's orders and masks; both in words."""
    first = first_training_context(config)
    write_npz(run / layout.ANALYSIS_BATCH, jax.tree.map(np.asarray, context.batch)._asdict())
    for folder in (run, run / layout.ANALYSIS):
        write_npy(folder / layout.ORDERING_INDEX, np.asarray(context.index))
        write_npy(folder / layout.NOISE_MASK, np.asarray(context.hit))
    write_npy(run / layout.ANALYSIS / f"train_{layout.ORDERING_INDEX}", np.asarray(first.index))
    write_npy(run / layout.ANALYSIS / f"train_{layout.NOISE_MASK}", np.asarray(first.hit))
    words = {"train": _in_words(config.train, first), "eval": _in_words(config.eval, context)}
    write_json(run / layout.ANALYSIS_METADATA, words)


def _in_words(settings: ContextConfig, context: Context) -> dict[str, Any]:
    """The settings, and whether each changed any context of this batch."""
    index, ordered, hit = (np.asarray(part) for part in (context.index, context.ordered, context.hit))
    return asdict(settings) | {
        "order_had_effect": bool((ordered != np.arange(ordered.shape[1])).any()),
        "noise_had_effect": bool(hit.any()) and not settings.adds_nothing,
        "placement_had_effect": bool((index != ordered).any()),
    }


@jax.jit
def _predictions(predictors: dict[str, Partial], batch: Batch) -> dict[str, jax.Array]:
    return {name: predict(batch) for name, predict in predictors.items()}


def _write_predictions(subject: Subject) -> None:
    found = _predictions({"tf": subject.predict, "gd": subject.gd.predict}, subject.batch)
    write_npz(subject.run / layout.PREDICTIONS, {name: np.asarray(found[name]) for name in ("tf", "gd")})
