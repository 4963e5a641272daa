"""The task-diversity threshold: the number of tasks above which more training brings a transformer nearer to ridge.

Raventos et al. 2023, Sec. 3. Sizes: S seeds, P pool sizes. Delta is the mean squared difference of predictions over D.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icl_lab.src.statistics import mean_and_interval

TIE = 1e-6  # of log(large / small): rounding in float32, which is no change


class Crossing(NamedTuple):
    """log2 of the threshold: mean over the seeds that have one, its 95 % interval, and each seed's [S], nan for none.

    `crossed` seeds have one; `of_mean` is the crossing of the seeds' mean log ratio, nan for none.
    """

    log2_m: float
    low: float
    high: float
    per_seed: np.ndarray
    crossed: int
    of_mean: float


def crossing(num_tasks: np.ndarray, small: np.ndarray, large: np.ndarray) -> Crossing:
    """Where a larger training budget stops to move transformers away from ridge: the sign change of log(large/small).

    num_tasks [P], increasing; small and large [S, P]: Delta_OOD(PT, ridge) of the same seeds after a small and a large
    budget. r = log(large / small) is above 0 below the threshold and not above it. Between M_i < M_(i+1), the last two
    with r_i > 0 >= r_(i+1), it is log2 M_i + (log2 M_(i+1) - log2 M_i) r_i / (r_i - r_(i+1)). |r| up to 1e-6 is a tie
    and counts as no change, r = 0, which is not above 0. A seed has none where r is never above 0 or never ceases to
    be. After the last crossing it may be above 0 again: see the curve.

    The mean and the interval are over the seeds that have a crossing, and so are conditional on having one where
    `crossed` is below S; the interval is nan for fewer than two.
    """
    _check(num_tasks, small, large)
    log2_m, ratios = np.log2(num_tasks), np.log(large) - np.log(small)
    per_seed = np.array([_last_crossing(log2_m, row) for row in ratios])
    crossings = per_seed[~np.isnan(per_seed)]
    mean, half = map(float, mean_and_interval(crossings)) if len(crossings) else (np.nan, np.nan)
    of_mean = _last_crossing(log2_m, ratios.mean(axis=0))
    return Crossing(mean, mean - half, mean + half, per_seed, len(crossings), of_mean)


def _last_crossing(x: np.ndarray, ratios: np.ndarray) -> float:
    """Where ratios [P] over x [P] last go from above 0 to not above it, linear in between; nan where they never do."""
    values = np.where(np.abs(ratios) <= TIE, 0.0, ratios)
    (changes,) = np.nonzero((values[:-1] > 0) & (values[1:] <= 0))
    if not len(changes):
        return float("nan")
    i = changes[-1]
    return float(x[i] + (x[i + 1] - x[i]) * values[i] / (values[i] - values[i + 1]))


def _check(num_tasks: np.ndarray, small: np.ndarray, large: np.ndarray) -> None:
    if small.ndim != 2 or small.shape != large.shape or small.shape[1:] != num_tasks.shape or not len(small):
        raise ValueError(f"{small.shape} and {large.shape} are not [seeds, M] for {num_tasks.shape} numbers of tasks")
    if not ((np.diff(num_tasks) > 0).all() and (num_tasks > 0).all() and np.isfinite(num_tasks).all()):
        raise ValueError("numbers of tasks must be above 0, finite and increasing; leave out a pool without end")
    if not all(((values > 0) & (values < np.inf)).all() for values in (small, large)):
        raise ValueError("Delta must be above 0 and finite for its logarithm")
