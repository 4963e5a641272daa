"""Losses on tasks interpolated between two tasks of the pool: dMMSE falls back on the nearer one, ridge does not.

w_a = (|w_i| + |w_j|)/2 (a w_i + (1 - a) w_j) / |a w_i + (1 - a) w_j|, so that the norm stays. Raventos et al. 2023,
Fig. 5.
"""

from __future__ import annotations

import math
from itertools import combinations

import jax.numpy as jnp
import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.diversity.task import make_eval_set, pool_of, predictions_of
from icl_lab.families.task import task_key
from icl_lab.src.checks import require, same_shape
from icl_lab.src.prng import Purpose
from icl_lab.src.sequences import sequences_with

POINTS, PAIRS, SEQUENCES = 11, 24, 64  # of a path; paths; sequences for each point of one


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
    require(2 <= count < math.inf, f"{loaded.run} was trained on {count} tasks; a path joins two of a pool")
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
