"""What a measurement says of a claim: the interval over seeds against the accepted range, two one-sided tests at 5 %.

`words.MEANINGS` says what each verdict means. The interval is a 90 % interval for seeds that are read once; where they
were read at several numbers it is as wide as these looks need to err in 5 % together (`studies.looks`). A claim with a
control that is not measured is not reproduced, and one whose rival reaches the range, or cannot be told from the model,
is uninformative; so is one whose weak control, of few untrained networks, lies in the range by its estimate. A
contradiction counts whatever the control's value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from icl_lab.src import intervals
from icl_lab.src.intervals import Interval
from icl_lab.src.planning import n_for_power
from icl_lab.studies import two_kinds
from icl_lab.studies.claim import THEORY, UNBOUNDED, Claim, Measurement, Rival
from icl_lab.studies.history import Revision
from icl_lab.studies.looks import level_of
from icl_lab.studies.two_kinds import Gap
from icl_lab.studies.words import (
    AS_PREDICTED,
    CONTRADICTED,
    DECIDED,
    HOLDS,
    NO_EFFECT,
    NOT_RUN,
    OTHER_SCALE,
    REPRODUCED,
    TWO_KINDS,
    UNDECIDED,
    UNINFORMATIVE,
    of_few_seeds,
)

SKEWED = {"nonnegative": UNBOUNDED, "fraction": 0.5}  # scale -> the upper ends below which values are skewed upwards
NEAR_ONE = 0.5  # lower ends of fractions above which values are skewed downwards
VOIDED = (*HOLDS, TWO_KINDS, UNDECIDED)  # by a control
WITHOUT_CONTROL = "its control is not measured"
CONTROL_NOT_COMPUTED = "its control is not computed"
NOT_COMPUTED = "it is not computed for a run"
NOBODY = "no run learnt"
MAJORITY = 0.5  # the share of runs that an `every` claim, or one of two kinds, must show to be exceeded


class Judgement(NamedTuple):
    """A verdict, what the numbers alone say, and what they follow from.

    says: the verdict before the rules on few seeds, scale and control. control: the interval of its values, difference:
    of the paired differences from a rival, on the scale on which means are taken. share: of an `every` claim, and of
    one with a cut and runs on both sides of it, of the runs in the range. kinds: of the runs on the range's side of the
    cut. gap: between two kinds of runs. n_all: the seeds, with those that did not learn. because: why it is undecided
    or uninformative.
    """

    verdict: str
    says: str = ""
    interval: Interval | None = None
    control: Interval | None = None
    difference: Interval | None = None
    share: Interval | None = None
    kinds: Interval | None = None
    gap: Gap | None = None
    n_all: int = 0
    because: str = ""
    n_needed: int | None = None


def judge(claim: Claim, measurement: Measurement | None, looks: Sequence[int] = ()) -> Judgement:
    """The judgement of a claim, with the seeds of a further reading that would decide it with 90 % power."""
    judgement = verdict_of(claim, measurement, looks)
    if measurement is None or judgement.interval is None or judgement.says != UNDECIDED or judgement.because:
        return judgement
    values = counted(claim, measurement)
    needed = n_for_power(values, scale_of(claim, values), claim.low, claim.high, spacing=claim.spacing)
    return judgement._replace(n_needed=needed)


def verdict_of(claim: Claim, measurement: Measurement | None, looks: Sequence[int] = ()) -> Judgement:
    """The judgement without the seeds that would decide. looks: the numbers of seeds at which it was read."""
    if measurement is None:
        return Judgement(NOT_RUN, NOT_RUN)
    learnt, n_all = counted(claim, measurement), len(measurement.values)
    if not len(learnt) or np.isnan(learnt).any():
        return Judgement(UNDECIDED, UNDECIDED, n_all=n_all, because=NOT_COMPUTED if len(learnt) else NOBODY)
    judgement = _by_numbers(claim, learnt, level(looks))._replace(n_all=n_all)
    judgement = _beside_control(claim, measurement, judgement)
    if judgement.verdict == judgement.says and claim.smaller and judgement.says in DECIDED:
        judgement = judgement._replace(verdict=OTHER_SCALE)
    if judgement.verdict == judgement.says:
        judgement = judgement._replace(verdict=of_few_seeds(judgement.says, len(learnt)))
    return judgement


def level(looks: Sequence[int]) -> float:
    """The level of the interval that is judged by, of seeds that were read at these numbers."""
    return level_of(tuple(looks)) if len(looks) > 1 else intervals.LEVEL


def holds(claim: Claim) -> str:
    """The word where its numbers bear it out: a paper's finding is reproduced, a prediction comes true."""
    return REPRODUCED if claim.about == "paper" and claim.source != THEORY else AS_PREDICTED


def before_revision(claim: Claim, earlier: Revision, measurement: Measurement | None, looks: Sequence[int] = ()) -> str:
    """What the numbers say by the range before it was revised; "" without numbers, or another range."""
    if measurement is None or (earlier.low, earlier.high) == (claim.low, claim.high):
        return ""
    return verdict_of(claim._replace(low=earlier.low, high=earlier.high), measurement, looks).says


def _by_numbers(claim: Claim, values: np.ndarray, of_level: float) -> Judgement:
    """What the values alone say: of all runs, of each, or of two kinds."""
    scale = scale_of(claim, values)
    widened = intervals.widened(intervals.of(values, scale, of_level), claim.spacing / 2, scale)
    interval = intervals.clipped(widened, intervals.SCALES[claim.scale])
    share = kinds = gap = None
    because = ""
    if claim.every:
        share = _share_inside(claim, values, of_level)
        says = _of_every(claim, share)
    elif claim.cut is not None:
        kinds, inside = two_kinds.count(values, claim.cut, claim.low, claim.high, of_level)
        share = inside if len(np.unique(values < claim.cut)) > 1 else None
        says = _of_interval(claim, interval) if share is None else _of_kinds(claim, share)
    else:
        gap = two_kinds.gap(values, scale, claim.spacing)
        says = _of_interval(claim, interval)
        if gap and gap.found:
            says, because = (
                UNDECIDED,
                f"its runs are of two kinds, apart at {gap.cut:.4g}, to be counted on fresh seeds",
            )
    return Judgement(says, says, interval, share=share, kinds=kinds, gap=gap, because=because)


def _beside_control(claim: Claim, measurement: Measurement, judgement: Judgement) -> Judgement:
    """The judgement with its control, which may void it."""
    if not (claim.has_control or measurement.control_values):
        return judgement
    control, difference = _control(claim, measurement), _difference(claim, measurement)
    judgement = judgement._replace(control=control, difference=difference)
    if control is None and judgement.says in HOLDS:
        because = CONTROL_NOT_COMPUTED if measurement.control_values else WITHOUT_CONTROL
        return judgement._replace(verdict=UNDECIDED, says=UNDECIDED, because=because)
    if control is None or judgement.says not in VOIDED:
        return judgement
    is_rival = isinstance(claim.control, Rival)
    low, high = (control.low, control.high) if is_rival else (control.estimate, control.estimate)
    if low <= claim.high and high >= claim.low:
        because = "its rival reaches the range" if is_rival else "untrained networks are in the range"
        return judgement._replace(verdict=UNINFORMATIVE, because=because)
    if difference is not None and difference.low <= 0 <= difference.high:
        return judgement._replace(verdict=UNINFORMATIVE, because="it does not differ from its rival")
    return judgement


def counted(claim: Claim, measurement: Measurement) -> np.ndarray:
    """The values that a verdict is based on: for a claim on runs that learnt, theirs; None is a value, nan is none."""
    values: np.ndarray = np.array(measurement.values, float)[~_left_out(claim, measurement)]
    return values


def _left_out(claim: Claim, measurement: Measurement) -> np.ndarray:
    """Which runs a claim on those that learnt leaves out."""
    missing = [claim.among is not None and value is not None and np.isnan(value) for value in measurement.values]
    return np.array(missing, bool)


def scale_of(claim: Claim, values: np.ndarray) -> str:
    """The scale of the interval: a logarithmic one where skewed values would pass an end too often."""
    if claim.high < SKEWED.get(claim.scale, -np.inf) and (values > 0).all():
        return "log"
    if claim.scale == "fraction" and claim.low > NEAR_ONE and (values < 1).all():
        return "complement"
    return claim.scale


def _control(claim: Claim, measurement: Measurement) -> Interval | None:
    """The interval of the control; None without one, and where the measure cannot be computed for it."""
    values = np.array(measurement.control_values, float)
    return None if not len(values) or np.isnan(values).any() else intervals.of(values, claim.scale)


def _difference(claim: Claim, measurement: Measurement) -> Interval | None:
    """The interval of the seeds' differences from a rival's, on the scale of the means; None unless all are numbers."""
    if not isinstance(claim.control, Rival) or len(measurement.control_values) != len(measurement.values):
        return None
    kept = ~_left_out(claim, measurement)
    values, rivals = (np.array(one, float)[kept] for one in (measurement.values, measurement.control_values))
    scale = intervals.SCALES[scale_of(claim, values)]
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = intervals.transformed(values, scale) - intervals.transformed(rivals, scale)
    return intervals.of(differences, "linear") if np.isfinite(differences).all() else None


def _share_inside(claim: Claim, values: np.ndarray, of_level: float) -> Interval:
    inside = two_kinds.within(values, claim.low, claim.high)
    return intervals.clopper_pearson(int(inside.sum()), len(values), of_level)


def _of_interval(claim: Claim, interval: Interval) -> str:
    if interval.n < 2 and claim.scale != "share":
        return UNDECIDED
    is_number = bool(np.isfinite(interval.estimate))
    if is_number and claim.low <= interval.low and interval.high <= claim.high:
        return holds(claim)
    if is_number and claim.no_effect and claim.no_effect[0] <= interval.low and interval.high <= claim.no_effect[1]:
        return NO_EFFECT
    return CONTRADICTED if interval.high < claim.low or interval.low > claim.high else UNDECIDED


def _of_every(claim: Claim, share: Interval) -> str:
    """One run outside contradicts it; with fewer than 5 runs, all inside say little."""
    if share.estimate < 1:
        return CONTRADICTED
    return holds(claim) if share.low > MAJORITY else UNDECIDED


def _of_kinds(claim: Claim, share: Interval) -> str:
    """By the share inside the range; no run lies at the mean."""
    return holds(claim) if share.low > MAJORITY else TWO_KINDS
