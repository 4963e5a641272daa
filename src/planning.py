"""How many seeds a study needs: n for a stated power, committed before its first value is read.

The design is pessimistic of the spread: the deviation is the upper 80 % limit of what the pilot's values say.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache

import numpy as np

from icl_lab.src.intervals import LEVEL, SCALES, Scale, transformed

POWER = 0.9
FEWEST, MOST_SEEDS = 8, 1000  # seeds of a verdict that is not provisional, and the most that are planned
UPPER = 0.8  # confidence of the limit of the deviation
NODES = 200  # of the quadrature over the sample's deviation


def n_for_power(
    values: np.ndarray,
    scale: str,
    low: float,
    high: float,
    power: float = POWER,
    level: float = LEVEL,
    spacing: float = 0.0,
) -> int | None:
    """The smallest n >= 8 that decides with this power, if the true value is the estimate of these m values.

    Decided: the interval of level `level`, wider by half of `spacing`, lies inside the range for an estimate inside it,
    and wholly outside for one outside. The true deviation is s sqrt((m - 1) / chi2_(.2, m - 1)), the upper 80 % limit.
    Shares are exact by binomials, at the estimate. `MOST_SEEDS` + 1 where more are needed, and where `spacing` alone
    reaches an end. None for a value alone and for infinite ones.
    """
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    chosen, counts = SCALES[scale], range(FEWEST, MOST_SEEDS + 1)
    if scale == "share":
        ends = max(low, 0.0), min(high, 1.0)
        enough = share_powers(float(values.mean()), np.array(counts), *ends, level) >= power
        return counts[int(np.argmax(enough))] if enough.any() else MOST_SEEDS + 1
    transforms = transformed(values, chosen)
    mean, deviation = float(transforms.mean()), _upper_deviation(transforms)
    first, last = _edges(low, high, 0.0, chosen)
    is_inside = first <= mean <= last
    edges = _edges(low, high, spacing / 2 if is_inside else -spacing / 2, chosen)
    if is_inside != (edges[0] <= mean <= edges[1]):
        return MOST_SEEDS + 1
    return FEWEST + bisect_left(counts, True, key=lambda n: power_of(mean, deviation, n, *edges, level) >= power)


def power_of(mean: float, deviation: float, n: int, low: float, high: float, level: float = LEVEL) -> float:
    """The chance that the t interval of n values lies inside [low, high] for a mean inside, outside for one outside.

    E_s[Phi((high - mean) sqrt(n) / sigma - t s / sigma) - Phi((low - mean) sqrt(n) / sigma + t s / sigma)]_+ over
    (n - 1) s^2 / sigma^2 ~ chi2_(n-1), and likewise outside. Without a deviation 1, and 0 at an edge.
    """
    from scipy.special import chdtri, ndtr, stdtrit

    if deviation == 0:
        return float(mean not in (low, high))
    nodes, weights = _quadrature()
    ratio = np.sqrt(chdtri(n - 1, (1 - nodes) / 2) / (n - 1))  # s / sigma at the quantiles of its distribution
    half = stdtrit(n - 1, (1 + level) / 2) * ratio
    below, above = ((edge - mean) * np.sqrt(n) / deviation for edge in (low, high))
    if low <= mean <= high:
        decides = np.maximum(ndtr(above - half) - ndtr(below + half), 0)
    else:
        decides = ndtr(below - half) + ndtr(-above - half)
    return float(weights @ decides / 2)


def share_powers(share: float, n: np.ndarray, low: float, high: float, level: float = LEVEL) -> np.ndarray:
    """The same for a share of n seeds [S]: the binomial chance of the counts whose Clopper-Pearson interval decides.

    The lower end of k hits is at least p where P(Bin(n, p) >= k) <= (1 - level) / 2, and likewise the upper end.
    """
    from scipy.stats import binom

    tail = (1 - level) / 2
    above_low, below_low = binom.isf(tail, n, low) + 1, binom.ppf(tail, n, low) - 1
    above_high, below_high = binom.isf(tail, n, high) + 1, binom.ppf(tail, n, high) - 1
    if low <= share <= high:
        least, most = np.where(low > 0, above_low, 0), np.where(high < 1, below_high, n)
        powers = np.maximum(binom.cdf(most, n, share) - binom.cdf(least - 1, n, share), 0)
    else:
        powers = binom.cdf(below_low, n, share) + binom.sf(above_high - 1, n, share)
    return np.asarray(powers, float)


@cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(NODES)


def _edges(low: float, high: float, margin: float, scale: Scale) -> tuple[float, float]:
    """The range's ends on the scale, nearer by a margin; at its bounds there are none, which no interval passes."""
    first = float(scale.forward(low + margin)) if low + margin > scale.lowest < low else -np.inf
    last = float(scale.forward(high - margin)) if high - margin < scale.highest > high else np.inf
    return first, last


def _upper_deviation(transforms: np.ndarray) -> float:
    from scipy.special import chdtri

    degrees = len(transforms) - 1
    return float(transforms.std(ddof=1) * np.sqrt(degrees / chdtri(degrees, UPPER)))
