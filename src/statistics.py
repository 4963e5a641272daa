"""Statistics: standard errors over tasks; over seeds t intervals, contrasts, Holm's correction, equivalence tests.

S seeds are the unit: a treated and a control condition are arrays [S] of the same seeds in the same order, which share
their keys, so that differences [S] are what varies. SciPy is imported late, for commands that only check their flags.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.src.checks import ConfigError, same_shape

LEVEL = 0.95  # of intervals
ALPHA = 0.05  # of the equivalence test, whose interval is of level 1 - 2 ALPHA
MARGIN = 0.01  # of a loss, below which it is called no effect


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """The mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def means_and_errors(values: Mapping[str, ArrayLike]) -> dict[str, float]:
    """The mean of each array over tasks, by name, and as NAME_se its standard error; in float64."""
    numbers: dict[str, float] = {}
    for name, value in values.items():
        numbers[name], numbers[f"{name}_se"] = mean_and_error(np.asarray(value, np.float64))
    return numbers


def ratio_and_error(numerator: np.ndarray, denominator: np.ndarray) -> tuple[float, float]:
    """The ratio of two means over the same tasks, and its standard error (delta method on the paired values)."""
    same_shape(numerator=numerator, denominator=denominator)
    ratio = numerator.mean() / denominator.mean()
    residual = numerator - ratio * denominator
    return float(ratio), float(residual.std(ddof=1) / math.sqrt(residual.size) / denominator.mean())


def with_error(name: str, value_and_error: tuple[float, float]) -> dict[str, Any]:
    """A number of the summary with its standard error, NAME and NAME_se."""
    return dict(zip((name, f"{name}_se"), value_and_error, strict=True))


def not_defined(name: str, reason: ConfigError | str) -> dict[str, Any]:
    """A number of the summary that is not defined: null, with its standard error and the reason."""
    return {name: None, f"{name}_se": None, f"{name}_reason": str(reason)}


class Contrast(NamedTuple):
    """A treated condition against its control; `low` and `high` are the ends of 95 % intervals."""

    n: int
    difference: float
    low: float
    high: float
    p: float
    d_z: float
    relative: float
    relative_low: float
    relative_high: float


class Equivalence(NamedTuple):
    """Two one-sided tests of the mean relative change; `low` and `high` are the ends of its 90 % interval."""

    n: int
    change: float
    low: float
    high: float
    p: float
    equivalent: bool


def mean_and_interval(values: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """The mean over runs (axis 0) and the half width of its t interval: t_(n-1) s / sqrt(n); nan for a single run."""
    from scipy.special import stdtrit

    count = len(values)
    if count == 0:
        raise ValueError("there is no mean of no values")
    mean = values.mean(axis=0)
    if count == 1:
        return mean, np.full_like(mean, np.nan, dtype=float)
    return mean, stdtrit(count - 1, (1 + level) / 2) * values.std(axis=0, ddof=1) / np.sqrt(count)


def contrast(treated: np.ndarray, control: np.ndarray) -> Contrast:
    """The paired t test of treated against control [S]; `d_z` is mean / standard deviation of the differences.

    `relative` is the difference over the control's mean, and its interval the difference's over the same: the mean is
    taken as known. Identical arrays differ by 0 with p = 1. Without a spread d_z is nan, for one seed also p and ends.
    """
    _check_paired(treated, control)
    differences = treated - control
    count = len(differences)
    mean, half = map(float, mean_and_interval(differences))
    spread = float(differences.std(ddof=1)) if count > 1 else np.nan
    base = abs(float(control.mean())) or np.nan
    ends = mean - half, mean + half
    return Contrast(
        count,
        mean,
        *ends,
        p=float(np.minimum(2 * _tail(abs(mean), spread, count), 1.0)),
        d_z=mean / spread if spread else np.nan,
        relative=mean / base,
        relative_low=ends[0] / base,
        relative_high=ends[1] / base,
    )


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p values [m]: the k-th smallest is max_{i <= k} min(1, (m - i + 1) p_(i)); nan is not counted.

    Rejecting where it is at most alpha keeps the chance of any false rejection at alpha, however tests depend.
    """
    values = np.asarray(p_values, float)
    if ((values < 0) | (values > 1)).any():
        raise ValueError("p values must be between 0 and 1")
    adjusted = np.full(values.shape, np.nan)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]  # nan sorts to the end
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)
    return adjusted


def equivalence(treated: np.ndarray, control: np.ndarray, margin: float = MARGIN) -> Equivalence:
    """Two one-sided paired t tests (Schuirmann 1987) that the mean of treated/control - 1 lies within +- margin.

    `p` is the larger of the two; `equivalent` where it is below .05, which is where the 90 % interval lies within the
    margin. Identical arrays are equivalent with p = 0; one seed shows nothing: p is nan.
    """
    _check_paired(treated, control)
    if not margin > 0:
        raise ValueError(f"margin is {margin}; it must be above 0")
    if (control == 0).any():
        raise ValueError("a control of 0 has no relative change")
    changes = treated / control - 1
    count = len(changes)
    mean, half = map(float, mean_and_interval(changes, 1 - 2 * ALPHA))
    spread = float(changes.std(ddof=1)) if count > 1 else np.nan
    p = _tail(margin - abs(mean), spread, count)  # the end that is nearer has the larger p
    return Equivalence(count, mean, mean - half, mean + half, p, bool(p < ALPHA))


def _check_paired(treated: np.ndarray, control: np.ndarray) -> None:
    if treated.ndim != 1 or treated.shape != control.shape:
        raise ValueError(f"shapes {treated.shape} and {control.shape} are not one value for each of the same seeds")


def _tail(distance: float, spread: float, count: int) -> float:
    """P(T_(n-1) >= distance / (spread / sqrt(n))); without spread 0 where the distance is positive, else 1."""
    from scipy.special import stdtr

    if spread == 0:
        return 0.0 if distance > 0 else 1.0
    return float(stdtr(count - 1, -distance * np.sqrt(count) / spread)) if count > 1 else np.nan
