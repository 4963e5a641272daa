"""Two kinds of runs: a gap between sorted values that one normal group does not leave, and fresh values counted by it.

A gap proposes the cut. The cut is then frozen, and fresh seeds are counted by it (`count`).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from icl_lab.src.intervals import LEVEL, ROUNDING, SCALES, Interval, clopper_pearson, transformed

FEWEST = 8  # values of a test
ERROR = 0.001  # how often it finds a gap in one group
MAJORITY = 0.5  # the share inside the range that must be exceeded
DRAWS = 100_000

# The statistic that one normal group of 8, 9, ... 40 values exceeds with chance ERROR: 4 million simulated groups each,
# with a standard error of .025 at 8 values, .018 at 10 and below .013 from 11 on.
CRITICAL = (
    8.52,
    7.03,
    6.04,
    5.31,
    4.78,
    4.35,
    4.01,
    3.74,
    3.49,
    3.31,
    3.12,
    2.99,
    2.87,
    2.76,
    2.66,
    2.58,
    2.51,
    2.44,
    2.37,
    2.32,
    2.27,
    2.23,
    2.19,
    2.15,
    2.13,
    2.09,
    2.06,
    2.04,
    2.01,
    1.98,
    1.96,
    1.94,
    1.93,
)


class Gap(NamedTuple):
    """The largest gap, its critical value, the cut in its middle (in the values' unit), and the counts beside it."""

    statistic: float
    critical: float
    cut: float
    below: int
    above: int

    @property
    def found(self) -> bool:
        """Whether one normal group would leave such a gap in less than one study of a thousand."""
        return self.statistic > self.critical


class Count(NamedTuple):
    """Fresh values, counted: the share on the range's side of the cut, or above it, and the share inside the range."""

    on_side: Interval
    inside: Interval

    @property
    def is_reproduced(self) -> bool:
        """Whether surely more than half of such runs lie in the range."""
        return self.inside.low > MAJORITY


def gap(values: np.ndarray, scale: str, spacing: float = 0.0) -> Gap | None:
    """The largest gap between sorted values [n], on the scale, with at least two on each side.

    Its statistic is the gap over the pooled standard deviation within the two groups (n - 2 degrees), which is at least
    half of the `spacing` of the records that the values are read from, and at least their round-off. None for fewer
    than 8 values, for infinite ones, and for shares and counts, whose ties are no kinds.
    """
    if len(values) < FEWEST or scale == "share" or not np.isfinite(values).all() or (values == np.round(values)).all():
        return None
    chosen, floored = SCALES[scale], _floored(np.sort(values), scale)
    transforms = transformed(floored, chosen)
    gaps, below, deviations = largest_gaps(transforms[None])
    k, level = int(below[0]), float(chosen.inverse(transforms.mean()))
    ends = np.array([level, level + max(spacing / 2, ROUNDING * abs(level))])
    deviation = max(float(deviations[0]), float(np.diff(transformed(ends, chosen))[0]))
    statistic = float(gaps[0]) / deviation if gaps[0] else 0.0
    cut = float(chosen.inverse(transforms[k - 1 : k + 1].mean()))
    return Gap(statistic, critical(len(values)), cut, k, len(values) - k)


def critical(n: int) -> float:
    """The critical value for n values; that of the largest n in the table, which is above it, for more."""
    return CRITICAL[min(n - FEWEST, len(CRITICAL) - 1)]


def largest_gaps(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of sorted values [S, n]: the largest gap [S], how many lie below it, and the deviation within the two groups."""
    n, centred = ordered.shape[1], ordered - ordered.mean(axis=1, keepdims=True)
    steps = np.diff(centred, axis=1)[:, 1:-1]
    below = steps.argmax(axis=1) + 2
    is_below = np.arange(n) < below[:, None]
    squares = np.zeros(len(ordered))
    for group in (is_below, ~is_below):
        mean = (centred * group).sum(axis=1) / group.sum(axis=1)
        squares += ((centred - mean[:, None]) ** 2 * group).sum(axis=1)
    return steps.max(axis=1), below, np.sqrt(squares / (n - 2))


@cache
def power(separation: float, n: int, draws: int = DRAWS) -> float:
    """The chance that the gap of two equally likely kinds is found, by simulation with fixed draws.

    separation: of the two kinds' means, in standard deviations within a kind. Each value's kind is a fair coin.
    """
    rng = np.random.default_rng(0)
    values = rng.standard_normal((draws, n)) + separation * rng.integers(0, 2, (draws, n))
    gaps, _, deviations = largest_gaps(np.sort(values, axis=1))
    return float((gaps > critical(n) * deviations).mean())


def count(values: np.ndarray, cut: float, low: float, high: float, level: float = LEVEL) -> Count:
    """Fresh values counted by a frozen cut, with Clopper-Pearson intervals.

    Of a range that holds the cut both kinds may lie inside: there the first count is of the values above it.
    """
    on_side, inside = (int(those.sum()) for those in (on_range_side(values, cut, low, high), within(values, low, high)))
    return Count(clopper_pearson(on_side, len(values), level), clopper_pearson(inside, len(values), level))


def within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Which values [n] lie inside a range; infinite ones do not."""
    inside: np.ndarray = np.isfinite(values) & (low <= values) & (values <= high)
    return inside


def on_range_side(values: np.ndarray, cut: float, low: float, high: float) -> np.ndarray:
    """Which values [n] are of the kind on whose side of the cut the range lies; of a range that holds it, above it."""
    side: np.ndarray = values < cut if lies_below(cut, high) else values > cut
    return side


def lies_below(cut: float, high: float) -> bool:
    """Whether a range up to here lies below the cut."""
    return high <= cut


def _floored(values: np.ndarray, scale: str) -> np.ndarray:
    """Values whose logarithm would only be round-off, as the nearest value whose is not."""
    least = {"log": ROUNDING, "fisher": -1 + ROUNDING}.get(scale, -np.inf)
    most = 1 - ROUNDING if scale in ("fisher", "complement") else np.inf
    return np.asarray(np.clip(values, least, most))
