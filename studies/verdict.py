"""What a measurement says of a claim: the 90 % interval against the accepted range, two one-sided tests at 5 %.

reproduced: the interval lies inside the range. contradicted: wholly outside it. no effect: inside the values that were
committed as no effect. undecided: neither, or a number cannot be computed, or inside while a control that is declared
is not measured or cannot be computed. not counted: it
would be reproduced or undecided, but the control's value lies in the range too, so the number is no evidence; a
contradiction counts whatever the control's value. not run: it is not measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icl_lab.src import intervals
from icl_lab.src.intervals import Interval
from icl_lab.studies.claim import UNBOUNDED, Claim, Measurement

VERDICTS = ("reproduced", "contradicted", "no effect", "undecided", "not counted", "not run")
SKEWED = {"nonnegative": UNBOUNDED, "fraction": 0.5}  # scale -> the upper ends below which values are skewed upwards
NEAR_ONE = 0.5  # lower ends of fractions above which values are skewed downwards
VOIDED = ("reproduced", "undecided")  # by a control in the range
FEW = 5  # seeds below which a page says so
WITHOUT_CONTROL = "its control is not measured"
CONTROL_NOT_COMPUTED = "its control is not computed"
NOT_COMPUTED = "it is not computed for a run"
NOBODY = "no run learnt"
EVERY = 0.5  # the share of runs that an `every` claim must show to be exceeded: 5 of 5 do


class Judgement(NamedTuple):
    """A verdict, the interval it follows from, the estimate of the control, and the seeds that would decide.

    share: of an `every` claim, of the runs that are in the range; n_all: the seeds, with those that did not learn.
    because: why it is undecided, where that is not its interval.
    """

    verdict: str
    interval: Interval | None = None
    control: float | None = None
    seeds_needed: int | None = None
    share: Interval | None = None
    n_all: int = 0
    because: str = ""


def judge(claim: Claim, measurement: Measurement | None) -> Judgement:
    """The judgement of a claim by its own range."""
    judgement = verdict_of(claim, measurement)
    if measurement is None or judgement.interval is None or judgement.verdict != "undecided" or judgement.because:
        return judgement
    values = _counted(claim, measurement)
    return judgement._replace(seeds_needed=intervals.seeds_for(values, _scale(claim, values), claim.low, claim.high))


def verdict_of(claim: Claim, measurement: Measurement | None) -> Judgement:
    """The judgement without the seeds that would decide."""
    if measurement is None:
        return Judgement("not run")
    learnt, n_all = _counted(claim, measurement), len(measurement.values)
    if not len(learnt) or np.isnan(learnt).any():
        return Judgement("undecided", n_all=n_all, because=NOT_COMPUTED if len(learnt) else NOBODY)
    interval = _interval(claim, learnt)
    control = _control(claim, measurement)
    share = intervals.clopper_pearson(int(_inside(claim, learnt).sum()), len(learnt)) if claim.every else None
    verdict = _of_every(share) if share else _of_interval(claim, interval)
    because = ""
    if verdict == "reproduced" and control is None and (claim.control_names or measurement.control_values):
        because = CONTROL_NOT_COMPUTED if measurement.control_values else WITHOUT_CONTROL
        verdict = "undecided"
    elif verdict in VOIDED and control is not None and claim.low <= control <= claim.high:
        verdict = "not counted"
    return Judgement(verdict, interval, control, None, share, n_all, because)


def before_revision(claim: Claim, measurement: Measurement | None) -> str:
    """The verdict by the range before it was revised; "" for a claim with the range that it always had."""
    if claim.earlier is None:
        return ""
    return verdict_of(claim._replace(low=claim.earlier.low, high=claim.earlier.high), measurement).verdict


def _counted(claim: Claim, measurement: Measurement) -> np.ndarray:
    """The values that a verdict is based on: for a claim on runs that learnt, theirs; None is a value, nan is none."""
    left_out = [claim.among is not None and value is not None and np.isnan(value) for value in measurement.values]
    values: np.ndarray = np.array(measurement.values, float)[~np.array(left_out, bool)]
    return values


def _scale(claim: Claim, values: np.ndarray) -> str:
    """The scale of the interval: a logarithmic one where skewed values would pass an end too often."""
    if claim.high < SKEWED.get(claim.scale, -np.inf) and (values > 0).all():
        return "log"
    if claim.scale == "fraction" and claim.low > NEAR_ONE and (values < 1).all():
        return "complement"
    return claim.scale


def _interval(claim: Claim, values: np.ndarray) -> Interval:
    scale = _scale(claim, values)
    interval = intervals.widened(intervals.of(values, scale), claim.spacing / 2, scale)
    return intervals.clipped(interval, intervals.SCALES[claim.scale])


def _control(claim: Claim, measurement: Measurement) -> float | None:
    """The estimate of the control; None without one, and where the measure cannot be computed for it."""
    values = np.array(measurement.control_values, float)
    return None if not len(values) or np.isnan(values).any() else intervals.of(values, claim.scale).estimate


def _inside(claim: Claim, values: np.ndarray) -> np.ndarray:
    inside: np.ndarray = np.isfinite(values) & (claim.low <= values) & (values <= claim.high)
    return inside


def _of_interval(claim: Claim, interval: Interval) -> str:
    if interval.n < 2 and claim.scale != "share":
        return "undecided"
    is_number = bool(np.isfinite(interval.estimate))
    if is_number and claim.low <= interval.low and interval.high <= claim.high:
        return "reproduced"
    if is_number and claim.no_effect and claim.no_effect[0] <= interval.low and interval.high <= claim.no_effect[1]:
        return "no effect"
    return "contradicted" if interval.high < claim.low or interval.low > claim.high else "undecided"


def _of_every(share: Interval) -> str:
    """One run outside contradicts it; with fewer than 5 runs, all inside say little."""
    if share.estimate < 1:
        return "contradicted"
    return "reproduced" if share.low > EVERY else "undecided"
