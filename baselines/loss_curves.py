"""Losses after every step or layer: over many tasks, in chunks, and their statistics.

A path is the weights [T, B, D] after steps 1 to T; its losses are full mean squared errors over a task's Q queries, the
noise in their labels included. One number a task and step is kept, whatever the size of a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.baselines.iterations import conjugate_gradients, newton_schulz, normal_equations
from icl_lab.baselines.linear_mmse import bayes_penalty, ridge_weights
from icl_lab.src import loss_conventions
from icl_lab.src.batch import Batch
from icl_lab.src.checks import same_shape
from icl_lab.src.data_config import QueriesData
from icl_lab.src.prng import Purpose
from icl_lab.src.queries import task_chunks

TRIMMED = 0.001  # share of the tasks, those of the largest losses, that the trimmed mean leaves out
MOST_SQUARINGS = 24  # of Newton-Schulz: 2^24 steps of descent, beyond what float32 resolves

Losses = Mapping[str, Array]  # name -> losses [T, B]


def path_losses(path: Array, batch: Batch) -> Array:
    """Mean squared errors [T, B] of weights [T, B, D] on each task's queries."""
    return prediction_losses(jnp.einsum("tbd,bqd->tbq", path, batch.x_query), batch)


def prediction_losses(predictions: Array, batch: Batch) -> Array:
    """Mean squared errors [T, B] of predictions [T, B, Q]."""
    same_shape(leading=True, predictions=predictions, targets=batch.y_query)
    return jnp.mean((predictions - jnp.broadcast_to(batch.y_query, predictions.shape)) ** 2, axis=2)


def reference_losses(batch: Batch, data: QueriesData, steps: int) -> dict[str, Array]:
    """Losses of zero and of Bayes' ridge [1, B], and of conjugate gradients and Newton-Schulz after every step."""
    normal, zero = normal_equations(batch), jnp.zeros_like(batch.w)
    paths = {
        "zero": zero[None],
        "ridge": ridge_weights(batch, bayes_penalty(data))[None],
        "conjugate_gradients": conjugate_gradients(normal, min(steps, data.dim)),
        "newton_schulz": newton_schulz(normal, min(steps, MOST_SQUARINGS)),
    }
    return {name: path_losses(path, batch) for name, path in paths.items()}


def over_tasks(
    losses_of: Callable[[Batch], Losses],
    data: QueriesData,
    seed: int,
    num_tasks: int,
    purpose: Purpose = Purpose.TEST_SET,
) -> dict[str, np.ndarray]:
    """The losses [T, tasks] of a seed's tasks: `losses_of` is compiled once and called on each chunk."""
    compiled = jax.jit(losses_of)
    parts = [
        {name: np.asarray(losses)[:, :count] for name, losses in compiled(batch).items()}
        for batch, count in task_chunks(data, seed, num_tasks, purpose)
    ]
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}


def summary(losses: np.ndarray) -> dict[str, list[float]]:
    """Mean, median and trimmed mean over tasks of losses [T, tasks], with the standard errors of the two means.

    One task in a thousand on which an iteration diverges dominates the mean, but not the median or trimmed mean.
    """
    values = np.nan_to_num(np.asarray(losses, np.float64), nan=np.inf)
    count = values.shape[1]
    kept = np.sort(values, axis=1)[:, : count - int(TRIMMED * count)]
    with np.errstate(invalid="ignore", over="ignore"):  # a loss that has become infinite has no spread
        return {
            "mse": values.mean(axis=1).tolist(),
            "sem": (values.std(axis=1, ddof=1) / np.sqrt(count)).tolist(),
            "median": np.median(values, axis=1).tolist(),
            "trimmed_mean": kept.mean(axis=1).tolist(),
            "trimmed_sem": (kept.std(axis=1, ddof=1) / np.sqrt(kept.shape[1])).tolist(),
        }


def unstable_share(losses: np.ndarray, zero: np.ndarray) -> list[float]:
    """The share of tasks [T] on which losses [T, tasks] exceed those of predicting zero [1, tasks]."""
    same_shape(losses=losses[:1], zero=zero)
    bad: list[float] = (~(losses <= zero)).mean(axis=1).tolist()
    return bad


def facts(data: QueriesData, seed: int, num_tasks: int) -> dict[str, Any]:
    """What a file of losses says of the tasks it is about."""
    fields = {name: getattr(data, name) for name in ("dim", "num_pairs", "num_queries", "noise_std")}
    return {
        "num_tasks": num_tasks,
        "seed": seed,
        "data": fields,
        "loss_convention": loss_conventions.MSE_OF_QUERIES,
    }
