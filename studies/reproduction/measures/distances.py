"""Measures on the algorithm-distance matrix of a run, and on its turn from one algorithm to another in training."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from analysis.measures import turn
from analysis.measures.algorithm_distance import matrix
from analysis.measures.algorithms import TF
from studies.reproduction.measures.trained import Measure, compared_run


@lru_cache(maxsize=64)
def _matrix(run: Path) -> dict[tuple[str, str, str], float]:
    """The matrix by row, column and measure."""
    return {(row["row"], row["column"], row["measure"]): float(row["value"]) for row in matrix(compared_run(run))}


@lru_cache(maxsize=64)
def _cosines(run: Path) -> dict[str, np.ndarray]:
    return turn.cosines(compared_run(run), ("gd", "gd_plus_plus"))


def loss_with_replaced(labels: int, whose: str = TF) -> Measure:
    """The loss with so many labels of each context replaced by N(0, 1)."""
    return lambda run: _matrix(run)[whose, "", f"loss_replaced_{labels}"]


def cosine(whose: str) -> Measure:
    """The cosine of the transformer's sensitivities with an algorithm's."""
    return lambda run: _matrix(run)[TF, whose, "cosine"]


def nearer_than(near: str, far: str) -> Measure:
    """1 - cosine with one algorithm over that with another: below 1 the transformer is nearer to the first."""
    return lambda run: (1 - cosine(near)(run)) / (1 - cosine(far)(run))


def cosine_at(whose: str, step: int) -> Measure:
    """The cosine with an algorithm at a snapshot."""
    return lambda run: float(_cosines(run)[whose][_cosines(run)["step"] == step][0])


def step_of_turn(run: Path) -> float:
    """The step from which it is nearer to GD++ than to gradient descent for good; infinite if it never is."""
    found = _cosines(run)
    at = turn.turn(found["step"], found["gd"], found["gd_plus_plus"])
    return at.step if at else float("inf")
