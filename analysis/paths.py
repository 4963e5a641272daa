"""Losses along paths: between the parameters of two models, and between two tasks of a pool.

Models in one basin have no barrier between them. Raventos et al. 2023 (Fig. 11) compare models of M tasks with one of
infinitely many, on fresh tasks. The paper does not define the barrier; this is the usual one (Frankle et al. 2020).

Between tasks dMMSE falls back on the nearer one, and ridge does not: w_a = (|w_i| + |w_j|)/2 (a w_i + (1 - a) w_j) /
|a w_i + (1 - a) w_j|, so that the norm stays (Raventos et al. 2023, Fig. 5).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.diversity.task import EvalSet, make_eval_set, pool_of, predictions_of
from icl_lab.families.task import task_key
from icl_lab.src.checks import require, same_shape
from icl_lab.src.prng import Purpose
from icl_lab.src.sequences import sequences_with

POINTS = 11  # of a path
PAIRS, SEQUENCES = 24, 64  # of tasks; sequences for each point of a path


def losses_between(one: LoadedRun, other: LoadedRun, eval_set: EvalSet, points: int = POINTS) -> np.ndarray:
    """Losses [P] (squared error / D) of (1 - a) theta_1 + a theta_2, a from 0 to 1; `ConfigError` if shapes differ."""
    shapes = [jax.tree.map(np.shape, dict(decoder.params)) for decoder in (one, other)]
    require(shapes[0] == shapes[1], f"{one.run} and {other.run} are models of different shapes: no line joins them")
    dim = one.config.data.dim
    losses = []
    for a in np.linspace(0, 1, points):
        predictions = predictions_of(one.model, _between(one.params, other.params, a), eval_set.batch)
        losses.append(np.mean((predictions - eval_set.targets) ** 2) / dim)
    return np.array(losses)


def _between(one: Any, other: Any, a: float) -> Any:
    return jax.tree.map(lambda x, y: ((1 - a) * np.asarray(x) + a * np.asarray(y)).astype(np.float32), one, other)


def barrier(losses: np.ndarray) -> float:
    """max_a [loss(a) - ((1 - a) loss(0) + a loss(1))]: 0 where no point of the line [P] is above its chord."""
    return float(np.max(above_chord(losses)))


def above_chord(losses: np.ndarray) -> np.ndarray:
    """loss(a) - ((1 - a) loss(0) + a loss(1)) at each point of a line [P]."""
    above: np.ndarray = losses - np.linspace(losses[0], losses[-1], len(losses))
    return above


def weight_distance(one: LoadedRun, other: LoadedRun) -> float:
    """The Euclidean distance of two models' parameters, over the mean of their norms."""
    first, second = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(d.params)]) for d in (one, other))
    return float(2 * np.linalg.norm(first - second) / (np.linalg.norm(first) + np.linalg.norm(second)))


def path(one: np.ndarray, other: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The tasks w_a [P, D] on the way from `other` (a = 0) to `one` (a = 1)."""
    same_shape(one=one, other=other)
    mixed = shares[:, None] * one + (1 - shares[:, None]) * other
    norm = (np.linalg.norm(one) + np.linalg.norm(other)) / 2
    tasks: np.ndarray = norm * mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return tasks


def losses_on_paths(loaded: LoadedRun, points: int = POINTS) -> dict[str, np.ndarray]:
    """Losses [P] (squared error / D) along the paths between pairs of the pool's first tasks, averaged over pairs.

    Of the model (tf), ridge and dmmse, on the same sequences; a runs from 0 to 1. `ConfigError` without two tasks.
    """
    config = loaded.config
    count = config.data.num_tasks
    require(
        2 <= count < math.inf, f"{loaded.run} was trained on {count} tasks; a path needs a finite pool of at least 2"
    )
    shares = np.linspace(0, 1, points)
    tasks = np.asarray(pool_of(config, int(min(count, 8))))
    pairs = list(combinations(range(len(tasks)), 2))[:PAIRS]
    ways = np.stack([path(tasks[i], tasks[j], shares) for i, j in pairs])  # [pairs, P, D]
    w = jnp.asarray(np.repeat(ways.reshape(-1, config.data.dim), SEQUENCES, axis=0), jnp.float32)
    eval_set = make_eval_set(config, sequences_with(task_key(config, Purpose.PATH), config.data, w))
    predictions = {"tf": predictions_of(loaded.model, loaded.params, eval_set.batch), **eval_set.references}
    shape = (len(pairs), points, SEQUENCES, -1)
    return {
        name: np.mean((values - eval_set.targets) ** 2, axis=1).reshape(shape[:3]).mean(axis=(0, 2)) / config.data.dim
        for name, values in predictions.items()
    }


def share_of_dmmse(losses: dict[str, np.ndarray]) -> float:
    """Where the model's loss lies at the middle of the paths: 0 at ridge's, 1 at dMMSE's."""
    middle = {name: values[len(values) // 2] for name, values in losses.items()}
    return float((middle["tf"] - middle["ridge"]) / (middle["dmmse"] - middle["ridge"]))
