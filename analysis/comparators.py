"""Comparators of a run on corrupted contexts, each named by what it knows.

python -m analysis.comparators --run DIR

All see a context's pairs and none sees which were hit; order and placement matter to the last two alone:

    gd_clean_step  a step size that is best on clean tasks; nothing of the corruption
    gd_tuned_step  a step size that is best on separate tasks of this corruption
    linear_mmse    the corruption, its p and sigma, and the distribution of tasks; linear in the labels
    mask_bayes     the same, without being linear: no predictor that does not know the placement has a smaller error
    gd_positions   a step size for each position, best on separate tasks with this order, noise and placement
    gd_positions_trained   the same of the training contexts: what one step learnt there loses here

On clean contexts the first two are gradient descent and the next two ridge: least squares without observation noise.
The last two take one step, whatever the model; in random order it is gradient descent's.
Writes comparators.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import ComparedRun, load_compared
from icl_lab.baselines.gradient_descent import gd, search_step_size
from icl_lab.baselines.linear_mmse import linear_mmse
from icl_lab.baselines.mask_bayes import mask_bayes
from icl_lab.baselines.position_weighted import best_step_sizes, position_weighted_gd
from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.regression.task import (
    GradientDescent,
    corrupted_step_size_batch,
    find_gd,
    make_test_batch,
    position_steps_batch,
)
from icl_lab.src import registries
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, same_shape
from icl_lab.src.config import ContextConfig, ModelConfig, TrainConfig
from icl_lab.src.statistics import mean_and_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_json

Comparator = Callable[[Batch], ArrayLike]

# One program for all batches of a shape, whatever the step size.
_gd = jax.jit(gd, static_argnames="steps")
_linear_mmse = jax.jit(linear_mmse, static_argnames=("data", "context"))
_position_weighted_gd = jax.jit(position_weighted_gd)


def tuned_gd(config: RegressionConfig) -> GradientDescent:
    """Gradient descent at the step size that is best on separate tasks with the evaluation's corruption.

    As many steps as `find_gd` takes. Where nothing is corrupted the two are the same.
    """
    if config.eval.hit_rate == 0:
        return find_gd(config)
    steps, context = gd_steps(config.model), config.eval
    source = (
        f"line search on {config.step_size_tasks} separate tasks with {context.noise_mode}, p = {context.noise_p:g}"
    )
    return GradientDescent(steps, search_step_size(corrupted_step_size_batch(config), steps), source)


def gd_clean_step(config: RegressionConfig, gd: GradientDescent) -> Comparator:
    """Gradient descent as the run has it: it knows a step size for clean tasks, and nothing of the corruption."""
    return partial(_gd, step_size=gd.step_size, steps=gd.steps)


def gd_tuned_step(config: RegressionConfig, gd: GradientDescent) -> Comparator:
    """Gradient descent that knows the best step size for this corruption, found on separate tasks: `tuned_gd`."""
    return gd_clean_step(config, tuned_gd(config))


def linear(config: RegressionConfig, gd: GradientDescent) -> Comparator:
    """The best predictor that is linear in the labels; it knows p, sigma and the tasks' distribution: `linear_mmse`."""
    return partial(_linear_mmse, data=config.data, context=config.eval)


def bayes(config: RegressionConfig, gd: GradientDescent) -> Comparator:
    """The best predictor that does not know which pairs were hit; it knows what `linear_mmse` does: `mask_bayes`."""
    return partial(mask_bayes, data=config.data, context=config.eval)


def position_steps(config: RegressionConfig, context: ContextConfig) -> np.ndarray:
    """The step size of each position [N] that is best on separate tasks with a context's order, noise and placement."""
    return _position_steps(replace(config, train=ContextConfig(), eval=ContextConfig()), context)


@lru_cache(maxsize=64)  # where training and evaluation have the same contexts they are fitted once
def _position_steps(config: RegressionConfig, context: ContextConfig) -> np.ndarray:
    return best_step_sizes(position_steps_batch(config, context)).step_sizes


def gd_positions(config: RegressionConfig, gd: GradientDescent) -> Comparator:
    """One step with a step size for each position; it knows the evaluation's order, noise and placement."""
    return partial(_position_weighted_gd, step_sizes=position_steps(config, config.eval))


def gd_positions_trained(config: RegressionConfig, gd: GradientDescent) -> Comparator:
    """One step with a step size for each position; it knows order, noise and placement of the training contexts."""
    return partial(_position_weighted_gd, step_sizes=position_steps(config, config.train))


# name -> how it is made from a run's config, which has the corruption in `eval`, and the run's gradient descent
COMPARATORS: dict[str, Callable[[RegressionConfig, GradientDescent], Comparator]] = registries.OPPONENTS.reserving(
    {
        "gd_clean_step": gd_clean_step,
        "gd_tuned_step": gd_tuned_step,
        "linear_mmse": linear,
        "mask_bayes": bayes,
        "gd_positions": gd_positions,
        "gd_positions_trained": gd_positions_trained,
    }
)
KNOW_THE_TRAINING = ("gd_positions_trained",)  # the others' losses do not depend on the training contexts


def half_errors(predictors: Mapping[str, Comparator], batch: Batch) -> dict[str, np.ndarray]:
    """Half the squared error [B] of each predictor, float64, all on the same tasks: compare them paired."""
    y_query = np.asarray(batch.y_query, np.float64)
    predictions = {name: np.asarray(predict(batch), np.float64) for name, predict in predictors.items()}
    for predicted in predictions.values():
        same_shape(predictions=predicted, y_query=y_query)
    return {name: 0.5 * (predicted - y_query) ** 2 for name, predicted in predictions.items()}


def write(loaded: ComparedRun) -> dict[str, Any]:
    """Writes comparators.json: the loss of each comparator on the test tasks, with its standard error.

    Where one is not defined the file says why, and has null in its place.
    """
    evaluated = replace(
        loaded.config,
        name=RegressionConfig.name,
        init_seed=0,
        model=ModelConfig(num_layers=loaded.gd.steps),
        training=TrainConfig(),
        base=ContextConfig(),
    )
    values = _losses(evaluated, loaded.gd)
    write_json(loaded.run / layout.COMPARATORS, values)
    return values


def _losses(config: RegressionConfig, gd: GradientDescent) -> dict[str, Any]:
    untrained = replace(config, train=ContextConfig())
    configs = {name: config if name in KNOW_THE_TRAINING else untrained for name in COMPARATORS}
    losses = {name: dict(_loss(name, known_config, gd)) for name, known_config in configs.items()}
    return {"tasks": config.test_tasks, "tuned_step_size": _tuned_step_size(untrained), **losses}


@lru_cache(maxsize=256)  # the runs of a sweep have evaluations in common, also those of several models
def _loss(name: str, config: RegressionConfig, gd: GradientDescent) -> Mapping[str, Any]:
    batch = make_test_batch(config)
    try:
        loss, error = mean_and_error(half_errors({name: COMPARATORS[name](config, gd)}, batch)[name])
    except ConfigError as reason:
        return {"loss": None, "loss_se": None, "reason": str(reason)}
    return {"loss": loss, "loss_se": error}


@lru_cache(maxsize=64)
def _tuned_step_size(config: RegressionConfig) -> float:
    return float(tuned_gd(config).step_size)


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """The loss of each comparator of a stored run, or why it has none."""
    values = write(load_compared(run))
    words = {name: _in_words(part) for name, part in values.items() if isinstance(part, Mapping)}
    return {name: value for name, value in values.items() if name not in words} | words


def _in_words(part: Mapping[str, Any]) -> str:
    if "reason" in part:
        return f"not defined: {part['reason']}"
    return f"loss {part['loss']:.4g} ± {part['loss_se']:.2g}"


COMMAND = Command(
    "comparators",
    "Measures comparators that know a run's corruption: a tuned step, the best linear predictor, Bayes over masks.",
    measure,
)


if __name__ == "__main__":
    COMMAND.launch()
