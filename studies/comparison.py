"""Fresh values of a claim beside its committed ones: what these predict of the mean of as many further seeds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from icl_lab.src import intervals
from icl_lab.src.intervals import SCALES, Interval, clipped
from icl_lab.src.prediction import prediction_interval, shift_found
from icl_lab.studies import two_kinds
from icl_lab.studies.claim import Claim, Measurement
from icl_lab.studies.verdict import counted, scale_of

SAME = 1e-9  # relative round-off of a mean that is taken on another scale


class Comparison(NamedTuple):
    """Intervals of n fresh values and of m committed ones, alike on one scale, and of both together.

    predicted: the 90 % prediction interval of the mean of the fresh ones; None, and found nan, where the committed
    values predict nothing. found: the nearest true means below and above that n seeds find with 80 % power.
    """

    fresh: Interval
    committed: Interval | None = None
    pooled: Interval | None = None
    predicted: Interval | None = None
    found: tuple[float, float] = (math.nan, math.nan)

    @property
    def side(self) -> int:
        """0 for a fresh mean inside the prediction interval, -1 for one below, 1 above; `ValueError` without one."""
        if self.predicted is None:
            raise ValueError("nothing is predicted")
        mean, margin = self.fresh.estimate, SAME * abs(self.fresh.estimate)
        return int(mean > self.predicted.high + margin) - int(mean < self.predicted.low - margin)


def compare(
    fresh: np.ndarray, committed: np.ndarray, scale: str, spacing: float = 0.0, possible: str = ""
) -> Comparison:
    """Fresh values [n] beside committed ones [m], on a scale; those read off a grid of this spacing to half of it.

    possible: the scale whose values are possible, if that is another one.
    """
    bounds = SCALES[possible or scale]

    def interval(values: np.ndarray) -> Interval:
        return clipped(intervals.widened(intervals.of(values, scale), spacing / 2, scale), bounds)

    if not len(committed):
        return Comparison(interval(fresh))
    both = np.concatenate([committed, fresh])
    beside = Comparison(interval(fresh), interval(committed), interval(both))
    if not np.isfinite(both).all() or (len(committed) < 2 and scale != "share"):
        return beside
    predicted = prediction_interval(committed, len(fresh), scale)
    predicted = clipped(intervals.widened(predicted, spacing / 2, scale), bounds)
    below, above = shift_found(committed, len(fresh), scale)
    found = below if below >= bounds.lowest else math.nan, above if above <= bounds.highest else math.nan
    return beside._replace(predicted=predicted, found=found)


def of_claim(claim: Claim, fresh: Measurement, committed: Measurement | None) -> dict[str, Comparison]:
    """A claim's comparison, by what is compared: its mean, or of two kinds the share of one; of `every` run, both.

    Empty where no run counts, and where a value that counts is not computed. Committed values of which that is so
    count as none.
    """
    values = counted(claim, fresh)
    known = np.array([]) if committed is None else counted(claim, committed)
    known = np.array([]) if np.isnan(known).any() else known
    if not len(values) or np.isnan(values).any():
        return {}
    if claim.cut is not None:
        kinds, known_kinds = (two_kinds.on_range_side(one, claim.cut, claim.low, claim.high) for one in (values, known))
        side = "below" if two_kinds.lies_below(claim.cut, claim.high) else "above"
        return {f"share {side} {claim.cut:g}": _shares(kinds, known_kinds)}
    scale = scale_of(claim, np.concatenate([values, known]))
    compared = {"share" if scale == "share" else "mean": compare(values, known, scale, claim.spacing, claim.scale)}
    if claim.every:
        inside, known_inside = (two_kinds.within(one, claim.low, claim.high) for one in (values, known))
        compared["share in the range"] = _shares(inside, known_inside)
    return compared


def _shares(fresh: np.ndarray, committed: np.ndarray) -> Comparison:
    return compare(fresh.astype(float), committed.astype(float), "share")
