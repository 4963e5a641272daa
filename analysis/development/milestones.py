"""Milestones of a training and the stages between them, from local learning coefficients over its checkpoints.

A milestone is a plateau of LLC over u = log(step + 1): a stretch where |d LLC / du| of the fitted curve is below a
bound, at the place where it is least, separated from the next plateau or an end of the training by a rise or fall
larger than its own uncertainty (Hoogland et al. 2024, where the last choice was by hand). Between milestones are
stages, of type A where the LLC rises and B where it falls.

    fitted = fit(steps, llc, errors)
    plateaus = milestones(fitted)
    table = stages(fitted, plateaus, loss)
    kinks = change_points(steps, llc, fitted.noise)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.development.change_points import ChangePoint, Segmentation, change_points
from icl_lab.analysis.development.smooth_curve import LEAST, Fit, change_error, draws, fit, log_step, step_of
from icl_lab.src import intervals

__all__ = ["LEAST", "ChangePoint", "Fit", "Milestone", "Segmentation", "Stage", "change_points", "fit"]
__all__ += ["milestones", "of_seeds", "stages", "within"]

BOUND = 0.047  # of the curve's height, per log step: the published |slope| < 8 of a curve of height 170
Z = 3.0  # standard errors that a change must exceed
KNOWN = 0.5  # of the prior's standard deviation, above which a place is too far from checkpoints to have a plateau
DRAWS = 1000  # of the posterior
LEVEL = 0.90  # of intervals
SIDES = {(True, True): "both", (True, False): "before", (False, True): "after"}
RISES, FALLS, UNDECIDED = "A", "B", "undecided"


class Milestone(NamedTuple):
    """A plateau: its place (log step), its step, and the steps since and until which |slope| is below the bound.

    slope: there, with its standard error. sides: where the LLC changes significantly, "both", "before" (the training
    ends on the plateau) or "after" (it begins on it). support: the share of posterior draws that have it, between the
    steepest places on either side; low, high: the steps of a 90 % interval of its place in those; spread: its standard
    deviation in log step. nan without a draw that has it.
    """

    place: float
    step: float
    since: float
    until: float
    slope: float
    slope_se: float
    sides: str
    support: float
    low: float
    high: float
    spread: float
    basin: tuple[float, float]


class Stage(NamedTuple):
    """A stage: from one step to another, its type (A, B or undecided), changes of LLC and loss, standard errors.

    That of the LLC is the posterior's; that of the loss is the uncertainty of the milestones' places times the
    loss's slope there: all checkpoints are measured on the same tasks.
    """

    start: float
    end: float
    type: str
    delta_loss: float
    delta_loss_se: float
    delta_llc: float
    delta_llc_se: float


class OfSeeds(NamedTuple):
    """A milestone over seeds: how many of them have it, and the 90 % t interval of its log step, as steps."""

    seeds: int
    having: int
    share: float
    step: float
    low: float
    high: float


class _Plateau(NamedTuple):
    """A plateau on a grid: its index, first and last index below the bound, and whether the LLC changes beside it."""

    place: int
    first: int
    last: int
    before: bool
    after: bool


# --- milestones ---


def milestones(
    fitted: Fit,
    bound: float = BOUND,
    z: float = Z,
    count: int = DRAWS,
    rng: np.random.Generator | None = None,
) -> list[Milestone]:
    """The milestones of a fitted curve, in order; with `count` draws for their uncertainty (default: of seed 0).

    bound: of |slope|, in heights of the curve per log step, so that the scale of the LLC is no matter.
    """
    if not (bound > 0 and z > 0 and count >= 1):
        raise ValueError(f"bound {bound:g} and z {z:g} must be above 0, and draws, {count}, 1 or more")
    limit = bound * float(np.ptp(fitted.mean))
    plateaus = _plateaus(fitted, fitted.mean, fitted.slope, limit, z)
    if not plateaus:
        return []
    drawn = zip(*draws(fitted, count, np.random.default_rng(0) if rng is None else rng), strict=True)
    others = [
        np.array([fitted.grid[one.place] for one in _plateaus(fitted, curve, slope, limit, z)])
        for curve, slope in drawn
    ]
    return [_milestone(fitted, plateaus, number, others) for number in range(len(plateaus))]


def _plateaus(fitted: Fit, curve: np.ndarray, slope: np.ndarray, limit: float, z: float) -> list[_Plateau]:
    """The plateaus of a curve on the grid of a fit, whose covariances say which changes are significant."""
    if not fitted.has_shape:
        return []
    steepness = slope**2 + np.clip(np.diag(fitted.slope_covariance), 0, None)

    def is_significant(start: int, end: int) -> bool:
        return bool(abs(curve[end] - curve[start]) > z * change_error(fitted, start, end))

    known = np.diag(fitted.covariance) < (KNOWN * fitted.height) ** 2
    kept = [stretch for stretch in _slow(slope, limit) if known[stretch[0]]]
    while close := [
        number for number in range(len(kept) - 1) if not is_significant(kept[number][0], kept[number + 1][0])
    ]:
        pair = min(close, key=lambda number: abs(curve[kept[number + 1][0]] - curve[kept[number][0]]))
        kept.pop(max((pair, pair + 1), key=lambda number: float(steepness[kept[number][0]])))
    ends = [0, *(place for place, _, _ in kept), len(curve) - 1]
    changes = [is_significant(start, end) for start, end in pairwise(ends)]
    plateaus = [_Plateau(*stretch, changes[number], changes[number + 1]) for number, stretch in enumerate(kept)]
    return [one for one in plateaus if one.before or one.after]


def _slow(slope: np.ndarray, limit: float) -> list[tuple[int, int, int]]:
    """(where |slope| is least, first, last index) of every stretch below the limit, or across 0, inside the ends."""
    turns = np.flatnonzero(np.diff(np.sign(slope)) != 0)
    slow = np.abs(slope) < limit
    slow[turns[:, None] + [0, 1]] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[False], slow, [False]]).astype(int)))
    stretches = edges.reshape(-1, 2) - [0, 1]
    minima = [
        (int(first + np.argmin(np.abs(slope[first : last + 1]))), int(first), int(last)) for first, last in stretches
    ]
    return [one for one in minima if 0 < one[0] < len(slope) - 1]


def _milestone(fitted: Fit, plateaus: Sequence[_Plateau], number: int, others: Sequence[np.ndarray]) -> Milestone:
    """A plateau with its uncertainty, from the draws' plateaus."""
    here, grid = plateaus[number], fitted.grid
    basin = _basin(fitted, plateaus, number)
    near = [_nearest(places, grid[here.place], basin) for places in others]
    having = np.array([place for place in near if place is not None])
    low, high = np.quantile(having, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if len(having) else (np.nan, np.nan)
    return Milestone(
        float(grid[here.place]),
        float(step_of(grid[here.place])),
        float(step_of(grid[here.first])),
        float(step_of(grid[here.last])),
        float(fitted.slope[here.place]),
        float(np.sqrt(max(fitted.slope_covariance[here.place, here.place], 0.0))),
        SIDES[here.before, here.after],
        len(having) / len(others),
        float(step_of(low)),
        float(step_of(high)),
        float(having.std()) if len(having) else np.nan,
        basin,
    )


def _basin(fitted: Fit, plateaus: Sequence[_Plateau], number: int) -> tuple[float, float]:
    """The log steps between which a plateau is the same: the steepest places before and after it, or the ends."""
    here, steep = plateaus[number], np.abs(fitted.slope)
    start = plateaus[number - 1].place if number else 0
    end = plateaus[number + 1].place if number + 1 < len(plateaus) else len(steep) - 1
    low = start + int(np.argmax(steep[start : here.place + 1])) if here.before else 0
    high = here.place + int(np.argmax(steep[here.place : end + 1])) if here.after else len(steep) - 1
    return float(fitted.grid[low]), float(fitted.grid[high])


def _nearest(places: np.ndarray, place: float, basin: tuple[float, float]) -> float | None:
    """The nearest of places in a basin, None if there is none."""
    inside = places[(places >= basin[0]) & (places <= basin[1])]
    return float(inside[np.argmin(np.abs(inside - place))]) if len(inside) else None


def of_seeds(milestone: Milestone, seeds: Sequence[Sequence[Milestone]]) -> OfSeeds:
    """A milestone over seeds, each with its own milestones: the nearest in log step, in its basin, is the same one."""
    near = [
        _nearest(np.array([candidate.place for candidate in candidates]), milestone.place, milestone.basin)
        for candidates in seeds
    ]
    having = np.array([place for place in near if place is not None])
    if not len(having):
        return OfSeeds(len(seeds), 0, 0.0, np.nan, np.nan, np.nan)
    interval = intervals.of(having, "linear", LEVEL)
    ends = (interval.low, interval.high) if len(having) > 1 else (np.nan, np.nan)
    steps = (float(step_of(place)) for place in (interval.estimate, *ends))
    return OfSeeds(len(seeds), len(having), len(having) / len(seeds), *steps)


def within(milestone: Milestone, others: Sequence[Milestone]) -> Milestone | None:
    """The nearest of another curve's milestones whose interval overlaps this one's; None if there is none.

    An interval that is not known is the place alone.
    """
    low, high = _ends(milestone)
    near = [one for one in others if _ends(one)[0] <= high and _ends(one)[1] >= low]
    return min(near, key=lambda one: abs(one.place - milestone.place), default=None)


def _ends(milestone: Milestone) -> tuple[float, float]:
    known = np.isfinite(milestone.low)
    return (min(milestone.low, milestone.step), max(milestone.high, milestone.step)) if known else (milestone.step,) * 2


# --- stages ---


def stages(fitted: Fit, curve_milestones: Sequence[Milestone], loss: np.ndarray, z: float = Z) -> list[Stage]:
    """The stages between milestones, from the first checkpoint to the last; loss [T] at the fit's checkpoints.

    Between checkpoints the loss is a line in log step.
    """
    places = [float(fitted.grid[0]), *(one.place for one in curve_milestones), float(fitted.grid[-1])]
    spreads = [0.0, *(one.spread for one in curve_milestones), 0.0]
    at, indices = log_step(fitted.steps), np.searchsorted(fitted.grid, places).clip(0, len(fitted.grid) - 1)
    losses = np.interp(places, at, loss)
    slopes = np.array([_slope_of(at, np.asarray(loss, float), place) for place in places])
    errors = np.abs(slopes) * spreads
    steps, rises = step_of(np.array(places)), np.diff(fitted.mean[indices])
    rows = []
    for number, rise in enumerate(rises.tolist()):
        error = change_error(fitted, int(indices[number]), int(indices[number + 1]))
        kind = RISES if rise > z * error else FALLS if rise < -z * error else UNDECIDED
        fell = float(losses[number + 1] - losses[number]), float(np.hypot(*errors[number : number + 2]))
        rows.append(Stage(float(steps[number]), float(steps[number + 1]), kind, *fell, rise, error))
    return rows


def _slope_of(at: np.ndarray, loss: np.ndarray, place: float) -> float:
    """The slope of the loss in log step between the checkpoints about a place."""
    after = int(np.clip(np.searchsorted(at, place, "right"), 1, len(at) - 1))
    return float((loss[after] - loss[after - 1]) / (at[after] - at[after - 1]))
