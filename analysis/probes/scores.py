"""Scores of linear probes: cross-validated over contexts, with bootstrap intervals over contexts.

A probe is ridge regression on standardised features, its penalty chosen for each coordinate by leave-one-out within the
contexts that it is fitted on; of flags it is logistic regression. What it says of a context was fitted on others.

    R^2    1 - sum_b (y_b - y^_b)^2 / sum_b (y_b - mean y)^2, mean over the target's coordinates
    AUROC  P(y^ of a flagged one > y^ of one that is not) + P(equal) / 2, mean over coordinates

Intervals are those of resampled contexts, whose predictions stay as they are: the probe is not fitted again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

FOLDS = 5
PENALTIES = tuple(10.0**power for power in range(-10, 5, 2))  # of ridge regression, on standardised features
SEED = 0  # of the folds, and of the bootstrap
RESAMPLED = 400  # times, for an interval
LEVEL = 0.95
CONSTANT = "the target is the same in every context"


class Score(NamedTuple):
    """R^2 or AUROC with the ends of its 95 % interval."""

    score: float
    low: float
    high: float


def fitted_on(contexts: int) -> int:
    """How many of so many contexts a probe is fitted on, in the fold that has fewest."""
    return contexts - -(-contexts // FOLDS)


def varying(target: np.ndarray) -> np.ndarray:
    """Which coordinates of a target [B, C] differ between contexts by more than rounding: [C]."""
    values = target.astype(np.float64)
    spread: np.ndarray = values.max(axis=0) - values.min(axis=0) > 1e-9 * np.abs(values).max(axis=0)
    return spread


def out_of_fold(features: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """What probes of features [B, F] say of targets [B, C], [B, C]: flags, if they are, or numbers."""
    said = np.zeros(targets.shape)
    for fitted, left in _folds(len(features)):
        mean, deviation = features[fitted].mean(axis=0), features[fitted].std(axis=0)
        scaled = (features - mean) / np.where(deviation > 0, deviation, 1.0)
        fit = _of_flags if targets.dtype == bool else _of_numbers
        said[left] = fit(scaled[fitted], targets[fitted], scaled[left])
    return said


def _folds(contexts: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold

    yield from KFold(FOLDS, shuffle=True, random_state=SEED).split(np.empty(contexts))


def _of_numbers(features: np.ndarray, targets: np.ndarray, left: np.ndarray) -> np.ndarray:
    from sklearn.linear_model import RidgeCV

    probe: Any = RidgeCV(PENALTIES, alpha_per_target=targets.shape[1] > 1).fit(features, targets)
    return np.asarray(probe.predict(left)).reshape(len(left), -1)


def _of_flags(features: np.ndarray, flags: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Decision values; 0 where the contexts have one kind alone, of which there is nothing to fit."""
    from sklearn.linear_model import LogisticRegression

    def decided(column: np.ndarray) -> np.ndarray:
        if column.all() or not column.any():
            return np.zeros(len(left))
        return np.asarray(LogisticRegression(max_iter=1000).fit(features, column).decision_function(left))

    return np.stack([decided(column) for column in flags.T], axis=1)


def score(said: np.ndarray, targets: np.ndarray) -> Score:
    """R^2 of numbers [B, C], or the AUROC of flags, over the coordinates that vary."""
    kept = varying(targets)
    measure = _areas if targets.dtype == bool else _shares
    values = measure(said[:, kept], targets[:, kept], _times(len(targets))).mean(axis=1)
    low, high = np.nanquantile(values[1:], ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Score(float(values[0]), float(low), float(high))


@lru_cache(maxsize=2)
def _times(contexts: int) -> np.ndarray:
    """How often each context is taken [R, B]: once, then as often as it is drawn."""
    draw = np.random.default_rng(SEED)
    drawn = draw.multinomial(contexts, np.full(contexts, 1 / contexts), RESAMPLED)
    return np.concatenate([np.ones((1, contexts)), drawn])


def _shares(said: np.ndarray, targets: np.ndarray, times: np.ndarray) -> np.ndarray:
    """R^2 [R, C] of coordinates [B, C], their contexts taken so many times [R, B]."""
    spread = times @ (targets - targets.mean(axis=0)) ** 2
    shares: np.ndarray = 1 - (times @ (said - targets) ** 2) / np.where(spread > 0, spread, np.nan)
    return shares


def _areas(said: np.ndarray, flags: np.ndarray, times: np.ndarray) -> np.ndarray:
    """AUROC [R, C] of coordinates [B, C], their contexts taken so many times [R, B]."""
    return np.stack([_area(*column, times) for column in zip(said.T, flags.T, strict=True)], axis=1)


def _area(said: np.ndarray, flags: np.ndarray, times: np.ndarray) -> np.ndarray:
    """AUROC [R] of a coordinate [B], its contexts taken so many times [R, B]."""
    order = np.argsort(said, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(said[order]) != 0])  # of what is equal
    flagged, others = (np.add.reduceat(times[:, order] * part[order], starts, axis=1) for part in (flags, ~flags))
    below = np.cumsum(others, axis=1) - others / 2
    pairs = flagged.sum(axis=1) * others.sum(axis=1)
    area: np.ndarray = np.sum(flagged * below, axis=1) / np.where(pairs > 0, pairs, np.nan)
    return area
