"""Confidence intervals over seeds, each on the scale on which the values of its kind are spread evenly.

S seeds are the unit, values are [S]. SciPy is imported late, for commands that only check their flags.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from icl_lab.src.statistics import mean_and_interval

LEVEL = 0.90  # of two ends of 5 % each, which is what two one-sided tests at 5 % need
ROUNDING = 1e-6  # of a cosine in float32, which can be above 1


class Scale(NamedTuple):
    """The transform under which means are taken, its inverse, and the range of possible values."""

    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    lowest: float
    highest: float


def _minus_log_complement(values: Any) -> Any:
    """-log(1 - v)."""
    return -np.log1p(np.negative(values))


def _from_minus_log_complement(transforms: Any) -> Any:
    return -np.expm1(np.negative(transforms))


# linear: values of either sign. log: losses, ratios, distances and times, whose mean is then the geometric one.
# nonnegative and fraction: those that can be exactly 0. complement: R^2 and fractions near 1, by the log of 1 - v.
# fisher: cosines and correlations. share: 0 or 1 for each seed, whose mean is the share of the seeds.
# rank: rank correlations of few things, which can be exactly 1; rank_difference: of two rank correlations.
# difference: of two fractions or AUROCs. change: relative, of what is positive.
SCALES = {
    "linear": Scale(np.positive, np.positive, -np.inf, np.inf),
    "nonnegative": Scale(np.positive, np.positive, 0.0, np.inf),
    "fraction": Scale(np.positive, np.positive, 0.0, 1.0),
    "log": Scale(np.log, np.exp, 0.0, np.inf),
    "complement": Scale(_minus_log_complement, _from_minus_log_complement, -np.inf, 1.0),
    "fisher": Scale(np.arctanh, np.tanh, -1.0, 1.0),
    "share": Scale(np.positive, np.positive, 0.0, 1.0),
    "rank": Scale(np.positive, np.positive, -1.0, 1.0),
    "rank_difference": Scale(np.positive, np.positive, -2.0, 2.0),
    "difference": Scale(np.positive, np.positive, -1.0, 1.0),
    "change": Scale(np.positive, np.positive, -1.0, np.inf),
}


class Interval(NamedTuple):
    """An estimate of n values and its interval's ends; without an interval these are the bounds of the scale."""

    estimate: float
    low: float
    high: float
    n: int


def of(values: np.ndarray, scale: str, level: float = LEVEL) -> Interval:
    """The interval of the mean on a scale: t on the transformed values, Clopper-Pearson for shares.

    g^-1(mean g(v) +- t_(S-1) s / sqrt(S)). If a value is infinite (a run that diverged or did not reach a threshold),
    it is instead the median with its interval by order statistics. One value has no interval. `ValueError` for no
    values, for nan, and for values that the scale does not have.
    """
    chosen = SCALES[scale]
    if not len(values) or np.isnan(values).any():
        raise ValueError(f"the interval of {values} is not defined")
    finite = values[np.isfinite(values)]
    possible = (finite >= chosen.lowest - ROUNDING) & (finite <= chosen.highest + ROUNDING)
    if not possible.all() or (scale == "log" and (finite <= 0).any()):
        raise ValueError(f"values {values} are not possible on the scale {scale!r}")
    if scale == "share":
        return clopper_pearson(int(values.sum()), len(values), level)
    if len(finite) < len(values):
        return clipped(median(np.where(np.isinf(values), np.inf, values), level), chosen)
    mean, half = map(float, mean_and_interval(transformed(values, chosen), level))
    ends = (chosen.lowest, chosen.highest) if np.isnan(half) else chosen.inverse([mean - half, mean + half])
    return clipped(Interval(float(chosen.inverse(mean)), float(ends[0]), float(ends[1]), len(values)), chosen)


def transformed(values: np.ndarray, scale: Scale) -> np.ndarray:
    """A cosine or R^2 of exactly 1 has no finite transform: it is taken as the float64 before."""
    if scale in (SCALES["fisher"], SCALES["complement"]):
        values = np.clip(values, -1 + 1e-15 if scale is SCALES["fisher"] else None, 1 - 1e-15)
    return np.asarray(scale.forward(values), float)


def clipped(interval: Interval, scale: Scale) -> Interval:
    """Its ends within what is possible; an infinite upper end stays, for it says that runs diverged."""
    low, high = (float(np.clip(end, scale.lowest, scale.highest)) for end in (interval.low, interval.high))
    return interval._replace(low=low, high=interval.high if np.isinf(interval.high) else high)


def clopper_pearson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """The exact interval of a share: each end is where the binomial tail beyond the count is (1 - level) / 2."""
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return Interval(successes / n, low, high, n)


def median(values: np.ndarray, level: float = LEVEL) -> Interval:
    """The median between the k-th smallest and the k-th largest value, k the largest with binomial coverage >= level.

    P(the median is below the k-th smallest) = P(Bin(S, 1/2) < k). Up to 4 values have no such k at 90 %.
    """
    ordered, n = np.sort(values), len(values)
    k = rank(n, level)
    ends = (ordered[k - 1], ordered[-k]) if k else (-np.inf, np.inf)
    middle = ordered[(n - 1) // 2] if np.isinf(ordered[n // 2]) else np.median(values)
    return Interval(float(middle), float(ends[0]), float(ends[1]), n)


def rank(n: int, level: float = LEVEL) -> int:
    """The k of the median's interval between the k-th smallest and the k-th largest of n values; 0 without one."""
    from scipy.special import bdtr

    return int(np.sum([bdtr(k, n, 0.5) <= (1 - level) / 2 for k in range(n)]))


def widened(interval: Interval, by: float, scale: str) -> Interval:
    """An interval of values read off a grid: wider by half the spacing at each end, within what is possible."""
    ends = interval._replace(low=interval.low - by, high=interval.high + by)
    return clipped(ends, SCALES[scale])
