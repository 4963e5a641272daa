"""What the figures on one layer's solutions show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from icl_lab.src import one_layer, solutions
from icl_lab.src.one_layer import Point, Setting
from icl_lab.src.solutions import DESCENT, MIXED
from icl_lab.studies.curve_rows import Row, Series
from icl_lab.studies.solutions import measures
from icl_lab.studies.solutions.measures import DIM, LEAST_PAIRS, PAIRS
from icl_lab.studies.solutions.population import PRESET, STEPS, found

OVER_LEAST = (0.5, 0.7, 0.85, 0.95, 1.05, 1.2, 1.5, 2.0, 3.0)  # N over N*
SHOWN = 24  # seeds whose paths are drawn
OPTIMIZERS = {PRESET: "Adam", measures.SGD: "SGD"}
GRID = np.unique(np.geomspace(100, STEPS, 60).round(-1))


def shares(seed: int, _: str) -> Series:
    """Whether a training finds the mixed minimum, against N over N*, for each D."""
    return {
        ("", f"D = {dim}"): (
            [round(ratio * least) / least for ratio in OVER_LEAST],
            [measures.finds(dim, round(ratio * least))(seed) for ratio in OVER_LEAST],
        )
        for dim, least in LEAST_PAIRS.items()
    }


def paths(seed: int, _: str) -> Series:
    """A training's loss over that of gradient descent, with Adam, by the solution that it finds."""
    last = found(DIM, PAIRS, PRESET, seed)
    steps, losses = measures.records(PRESET, seed)
    kept = np.unique(np.searchsorted(steps, np.geomspace(50, steps[-1], 120)))
    return {("", last.solution): (steps[kept], losses[kept] / last.best)}


def waiting(seed: int, _: str) -> Series:
    """Whether a training that does not come to gradient descent is still at the plateau of rank one or above it."""
    return {
        ("", label): (GRID, (measures.left_rank_one(arm, seed).step > GRID).astype(float))
        for arm, label in OPTIMIZERS.items()
        if found(DIM, PAIRS, arm, seed).solution != DESCENT
    }


def patterns(_: Sequence[Path]) -> list[Row]:
    """The weights of three stationary points, as W_K^T W_Q and P W_V: what is not read is 0."""
    setting = Setting(DIM, PAIRS)
    mixed = solutions.mixed(setting)
    assert mixed is not None, "at D = 2 it is a minimum at every N"
    points = {DESCENT: solutions.gradient_descent(setting), MIXED: mixed, "rank one": solutions.rank_one(setting)}
    best = one_layer.loss_of(setting, points[DESCENT])
    return [
        {"row": f"{name}, loss x {loss:.2g}", "matrix": which, "i": i, "j": j, "value": float(matrix[i, j])}
        for name, point in points.items()
        for loss in [one_layer.loss_of(setting, point) / best]
        for which, matrix in enumerate(_products(solutions.balanced(point)))
        for i, j in np.ndindex(*matrix.shape)
    ]


def _products(point: Point) -> tuple[np.ndarray, np.ndarray]:
    """(B; b^T) with a column of zeros for the label of the query, and zeros above (p, p_y)."""
    scores = np.vstack([point.scores, point.label_scores])
    read = np.append(point.p, point.p_y)
    return np.hstack([scores, np.zeros((DIM + 1, 1))]), np.vstack([np.zeros((DIM, DIM + 1)), read])
