"""What further seeds give if nothing has changed: the prediction interval of their mean, and the shift they would find.

m committed values predict the mean of n further ones, on the scale on which both are judged.
"""

from __future__ import annotations

import math

import numpy as np

from icl_lab.src.intervals import LEVEL, SCALES, Interval, clipped, transformed

POWER = 0.8  # with which a shift is found


def prediction_interval(values: np.ndarray, n: int, scale: str, level: float = LEVEL) -> Interval:
    """The interval in which the mean of n further values [n] lies: mean +- t_(m-1) s sqrt(1/m + 1/n) on the scale.

    For shares the equal-tailed interval of the beta-binomial distribution with Jeffreys' prior, Beta(1/2, 1/2): of n
    further seeds c + 1 to d hit, P(hits <= c) < (1 - level) / 2 and likewise above. A value alone, and infinite values,
    predict nothing: the bounds of the scale.
    """
    if scale == "share":
        return _of_a_share(int(values.sum()), len(values), n, level)
    chosen = SCALES[scale]
    if len(values) < 2 or not np.isfinite(values).all():
        return Interval(float(np.median(values)), chosen.lowest, chosen.highest, len(values))
    transforms = transformed(values, chosen)
    mean, half = float(transforms.mean()), _quantile(len(values), level) * _error(transforms, n)
    low, high = chosen.inverse([mean - half, mean + half])
    return clipped(Interval(float(chosen.inverse(mean)), float(low), float(high), len(values)), chosen)


def shift_found(
    values: np.ndarray, n: int, scale: str, power: float = POWER, level: float = LEVEL
) -> tuple[float, float]:
    """The nearest true means below and above the estimate that n further seeds would find with this power.

    Found: the new mean lies outside the prediction interval, on the shift's side. On the scale, for a true
    deviation of s, this is the noncentral t test with m - 1 degrees and noncentrality shift / (s sqrt(1/m + 1/n)); for
    shares by exact binomial tails. nan where no such shift is possible, and where nothing is predicted.
    """
    if scale == "share":
        return _of_a_share_found(values, n, power, level)
    chosen = SCALES[scale]
    if len(values) < 2 or not np.isfinite(values).all():
        return math.nan, math.nan
    transforms = transformed(values, chosen)
    shift = _noncentrality(len(values), power, level) * _error(transforms, n)
    below, above = chosen.inverse([transforms.mean() - shift, transforms.mean() + shift])
    return float(below) if below >= chosen.lowest else math.nan, float(above) if above <= chosen.highest else math.nan


def _quantile(m: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(m - 1, (1 + level) / 2))


def _error(transforms: np.ndarray, n: int) -> float:
    """The standard error of the difference of the two means."""
    return float(transforms.std(ddof=1)) * math.sqrt(1 / len(transforms) + 1 / n)


def _noncentrality(m: int, power: float, level: float) -> float:
    """The shift, in standard errors, with which T exceeds its quantile with this power."""
    from scipy.special import nctdtrinc

    return float(nctdtrinc(m - 1, 1 - power, _quantile(m, level)))


def _of_a_share(hits: int, m: int, n: int, level: float) -> Interval:
    from scipy.stats import betabinom

    further = betabinom(n, hits + 0.5, m - hits + 0.5)
    low, high = further.ppf((1 - level) / 2), further.ppf((1 + level) / 2)
    return Interval(hits / m, float(low) / n, float(high) / n, m)


def _of_a_share_found(values: np.ndarray, n: int, power: float, level: float) -> tuple[float, float]:
    """P(hits < low | p) falls as p grows, and P(hits > high | p) grows: each has one p at which it is the power."""
    from scipy.special import betaincinv

    predicted = prediction_interval(values, n, "share", level)
    low, high = round(predicted.low * n), round(predicted.high * n)
    below = float(betaincinv(low, n - low + 1, 1 - power)) if low > 0 else math.nan
    above = float(betaincinv(high + 1, n - high, power)) if high < n else math.nan
    return below, above
