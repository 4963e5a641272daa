"""Comparators of a run on corrupted contexts, each named by what it knows.

All see a context's pairs and none sees which were hit, so order and placement do not matter to any of them:

    gd_clean_step  a step size that is best on clean tasks; nothing of the corruption
    gd_tuned_step  a step size that is best on separate tasks of this corruption
    linear_mmse    the corruption, its p and sigma, and the distribution of tasks; linear in the labels
    mask_bayes     the same, without being linear: no predictor that does not know the placement has a smaller error

On clean contexts the first two are gradient descent and the last two ridge: least squares without observation noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike

from analysis.compared_run import ComparedRun
from analysis.measures.test_set import mean_and_error
from baselines.gradient_descent import gd, search_step_size
from baselines.linear_mmse import linear_mmse
from baselines.mask_bayes import MAX_PAIRS, mask_bayes
from configs.regression import RegressionConfig
from families.regression import GradientDescent, corrupted_step_size_batch, find_gd, gd_steps, make_test_batch
from src.batch import Batch
from src.checks import ConfigError
from src.config import ContextConfig, ModelConfig, TrainConfig
from store import layout
from store.atomic import write_json

A_SECOND = 2**25  # masks times tasks that `mask_bayes` takes about a second for

Comparator = Callable[[Batch], ArrayLike]

# One program for all batches of a shape, whatever the step size.
_gd = jax.jit(gd, static_argnames="steps")
_linear_mmse = jax.jit(linear_mmse, static_argnames=("data", "context"))


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


# name -> how it is made from a run's config, which has the corruption in `eval`, and the run's gradient descent
COMPARATORS: dict[str, Callable[[RegressionConfig, GradientDescent], Comparator]] = {
    "gd_clean_step": gd_clean_step,
    "gd_tuned_step": gd_tuned_step,
    "linear_mmse": linear,
    "mask_bayes": bayes,
}


def take_a_second(config: RegressionConfig) -> bool:
    """Whether a run's pairs are corrupted, and measuring its comparators takes about a second or less."""
    pairs = config.data.num_pairs
    masks = 2**pairs if pairs <= MAX_PAIRS else 0
    return config.eval.hit_rate > 0 and gd_steps(config.model) == 1 and masks * config.test_tasks <= A_SECOND


def half_errors(predictors: Mapping[str, Comparator], batch: Batch) -> dict[str, np.ndarray]:
    """Half the squared error [B] of each predictor, float64, all on the same tasks: compare them paired."""
    y_query = np.asarray(batch.y_query, np.float64)
    return {name: 0.5 * (np.asarray(f(batch), np.float64) - y_query) ** 2 for name, f in predictors.items()}


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
        train=ContextConfig(),
        base=ContextConfig(),
    )
    values = _losses(evaluated, loaded.gd)
    write_json(loaded.run / layout.COMPARATORS, values)
    return values


@lru_cache(maxsize=64)  # the runs of a sweep have evaluations in common, also those of several models
def _losses(config: RegressionConfig, gd: GradientDescent) -> dict[str, Any]:
    batch = make_test_batch(config)
    found: dict[str, dict[str, Any]] = {}
    for name, make in COMPARATORS.items():
        try:
            loss, error = mean_and_error(half_errors({name: make(config, gd)}, batch)[name])
            found[name] = {"loss": loss, "loss_se": error}
        except ConfigError as reason:
            found[name] = {"loss": None, "loss_se": None, "reason": str(reason)}
    return {"tasks": config.test_tasks, "tuned_step_size": float(tuned_gd(config).step_size), **found}
