"""Measures on the distances of a run and the algorithms, over training too, and on their losses with labels replaced.

Claims and figures share what is computed here for a run; predictions are on its test tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis import algorithm_distance
from icl_lab.analysis import algorithm_distance as turn
from icl_lab.analysis.loaded_run import ComparedRun, baselines_of, load_compared
from icl_lab.analysis.shifts import replaced_labels
from icl_lab.families.regression.baselines import defined, names_of
from icl_lab.src.registries import ALGORITHM, ALWAYS, MODEL

# not of this study: what predicts zero, whose sensitivity has no direction, and solvers that are given eigenvalues
LEFT_OUT = ("zero", "momentum", "chebyshev", "newton_schulz_identity")
Measure = Callable[[Path], float]

WITH_DIRECTION = tuple(name for name in names_of(ALWAYS, ALGORITHM) if name not in LEFT_OUT)
DESCENTS = ("gd", "gd_own_steps", "gd_plus_plus", "gd_plus_plus_paper")  # whose losses with replaced labels are shown
REPLACED = (0, 1, 2, 4)  # labels of each context


@lru_cache(maxsize=256)
def compared_run(run: Path) -> ComparedRun:
    """A finished run of linear regression, loaded once for all claims on it."""
    return load_compared(run)


@lru_cache(maxsize=256)
def distances(run: Path) -> dict[tuple[str, str, str], float]:
    """What `algorithm_distance.pairs` measures of the transformer and the algorithms, by row, column and measure."""
    loaded = compared_run(run)
    predictors = {MODEL: loaded.predict, **defined(baselines_of(loaded, WITH_DIRECTION))}
    rows = algorithm_distance.pairs(loaded.config, predictors)
    return {(row["row"], row["column"], row["measure"]): float(row["value"]) for row in rows}


@lru_cache(maxsize=256)
def over_training(run: Path) -> tuple[Mapping[str, Any], ...]:
    """The rows of the transformer and each algorithm that is defined, at the snapshots of a run that kept them."""
    rows = algorithm_distance.over_training(compared_run(run), WITH_DIRECTION)
    return tuple(row for row in rows if row["column"])


@lru_cache(maxsize=256)
def cosines(run: Path) -> dict[str, np.ndarray]:
    """`turn.cosines_of` a run that kept snapshots, with all algorithms that are defined."""
    return turn.cosines_of([row for row in over_training(run) if row["measure"] == "cosine"])


@lru_cache(maxsize=256)
def replaced_losses(run: Path) -> dict[str, tuple[float, ...]]:
    """The losses with so many labels of each context replaced by N(0, 1), in the order of `REPLACED`."""
    loaded = compared_run(run)
    predictors = {MODEL: loaded.predict, **defined(baselines_of(loaded, DESCENTS))}
    losses = replaced_labels(loaded.config, predictors, REPLACED)
    return {name: tuple(float(losses[count][name].mean()) for count in losses) for name in predictors}


def between_pairs(run: Path) -> dict[tuple[str, str, str], float]:
    """`distances` without the losses, which are of one predictor."""
    return {(row, column, name): value for (row, column, name), value in distances(run).items() if column}


def at_snapshots(run: Path) -> dict[tuple[str, int, str], float]:
    """What is measured of the transformer with respect to the algorithms over training, by algorithm, step, measure."""
    return {(row["column"], int(row["step"]), row["measure"]): float(row["value"]) for row in over_training(run)}


def loss_with_replaced(labels: int, whose: str = MODEL) -> Measure:
    """The loss with so many labels of each context replaced by N(0, 1)."""
    return lambda run: replaced_losses(run)[whose][REPLACED.index(labels)]


def between(measure: str, whose: str) -> Measure:
    """A measure of the transformer with respect to an algorithm: "cosine", "difference" or "loss_ratio"."""
    return lambda run: distances(run)[MODEL, whose, measure]


def of_another(whose: str, of: str, measure: str) -> Measure:
    """The same of a baseline in the transformer's place."""
    return lambda run: distances(run)[whose, of, measure]


def loss_of(whose: str) -> Measure:
    """The loss of the transformer or a baseline on the test tasks."""
    return lambda run: distances(run)[whose, "", "loss"]


def nearer_than(near: str, far: str) -> Measure:
    """1 - cosine with one algorithm over that with another: below 1 the transformer is nearer to the first."""
    one, other = (between("cosine", name) for name in (near, far))
    return lambda run: (1 - one(run)) / (1 - other(run))


def cosine_at(whose: str, step: int) -> Measure:
    """The cosine with an algorithm at a snapshot."""
    return lambda run: float(cosines(run)[whose][cosines(run)["step"] == step][0])


def turn_from(before: str) -> Measure:
    """The step from which it is nearer to GD++ than to an algorithm for good; infinite if it never is."""

    def measure(run: Path) -> float:
        similarities = cosines(run)
        at = turn.turn(similarities["step"], similarities[before], similarities["gd_plus_plus"])
        return at.step if at else float("inf")

    return measure
