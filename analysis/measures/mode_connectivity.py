"""Linear mode connectivity: the loss along the straight line between two models' parameters.

Models in one basin have no barrier between them. Raventos et al. 2023 (Fig. 11) compare models of M tasks with one of
infinitely many, on fresh tasks. The paper does not define the barrier; this is the usual one (Frankle et al. 2020).
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.diversity.task import EvalSet, predictions_of
from icl_lab.src.checks import require

POINTS = 11


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
