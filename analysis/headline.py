"""The headline numbers: losses on many further tasks, the transformer paired with its baselines.

The squared errors of two predictors on the same task are strongly correlated, so a ratio is taken on the same tasks and
its standard error from the paired differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from analysis.subject import Subject
from baselines.bayes import bayes_penalty, ridge
from baselines.gd_step import Predictor, context_losses
from curricula.context import headline_batch
from src.batch import Batch

# name in the summary -> how the run's baseline is made
BASELINES: dict[str, Callable[[Subject], Predictor]] = {
    "gd": lambda subject: subject.gd.predict,
    "ridge": lambda subject: partial(ridge, penalty=bayes_penalty(subject.config.data)),
    "zero": lambda subject: lambda batch: jnp.zeros_like(batch.y_query),
}


def half_squared_errors(predictors: Mapping[str, Predictor]) -> Callable[[Batch], dict[str, np.ndarray]]:
    """Half the squared error [B] of each task, for each predictor: one program for all batches of a shape."""

    @jax.jit
    def errors(batch: Batch) -> dict[str, jax.Array]:
        return {name: 0.5 * (predict(batch) - batch.y_query) ** 2 for name, predict in predictors.items()}

    return lambda batch: {name: np.asarray(values, np.float64) for name, values in errors(batch).items()}


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def ratio_and_error(numerator: np.ndarray, denominator: np.ndarray) -> tuple[float, float]:
    """The ratio of two means over the same tasks, and its standard error (delta method on the paired values)."""
    ratio = numerator.mean() / denominator.mean()
    residual = numerator - ratio * denominator
    return float(ratio), float(residual.std(ddof=1) / math.sqrt(residual.size) / denominator.mean())


def headline(subject: Subject) -> dict[str, Any]:
    """Losses on the headline tasks, with standard errors; ratios to gradient descent are paired."""
    config = subject.config
    batch = headline_batch(config)
    predictors = {"tf": subject.predict} | {name: make(subject) for name, make in BASELINES.items()}
    errors_of = half_squared_errors(predictors)(batch)
    ratio, ratio_error = ratio_and_error(errors_of["tf"], errors_of["gd"])
    result: dict[str, Any] = {"tasks": config.headline_tasks, "loss_ratio": ratio, "loss_ratio_se": ratio_error}
    for name, errors in errors_of.items():
        result[f"{name}_loss"], result[f"{name}_loss_se"] = mean_and_error(errors)
    if subject.gd.steps == 1 and config.eval.noise_mode == "clean" and config.data.num_distractors == 0:
        losses = jax.jit(lambda batch: context_losses(batch, config.data, float(subject.gd.step_size)))(batch)
        averaged = np.asarray(losses, np.float64)
        result["gd_loss_averaged"], result["gd_loss_averaged_se"] = mean_and_error(averaged)
    return result
