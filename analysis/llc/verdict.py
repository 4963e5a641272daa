"""What an estimate measures: an LLC, a curvature, or nothing that has a name, with the reasons.

Two questions are asked of an estimate, of which each has three answers:

    pull     plateau (it depends on neither nbeta nor gamma), localised (gamma sets it), undecided
    order    quadratic (it is what the Hessian alone predicts), higher order, undecided

    plateau and quadratic        LLC: the rank of the Hessian / 2
    localised and quadratic      curvature: of the Hessian, at this pull
    plateau and higher order     LLC at this nbeta
    else                         undecided

and before these, whether the chains drew from a posterior around a minimum at all: reasons of seven kinds, of which one
is enough for "none". All thresholds of this laboratory are here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from icl_lab.analysis.llc.derivatives import Slopes
from icl_lab.analysis.llc.prediction import Prediction
from icl_lab.store.llc_rows import (
    AT_THIS_NBETA,
    CURVATURE,
    ESCAPED,
    LLC,
    NONE,
    NOT_COMPUTED,
    NOT_MIXED,
    OFF_MINIMUM,
    SADDLE,
    SATURATED,
    STEP_TOO_LONG,
    UNDECIDED,
)

PLATEAU, LOCALISED, QUADRATIC, HIGHER = "plateau", "localised", "quadratic", "higher order"
FLAT = 0.1  # logarithmic derivatives below which an estimate is on a plateau
NOT_TWO = 0.5  # from a degree of 2, beyond which no loss is quadratic whatever its estimate
WITHIN, AT_LEAST = 0.1, 0.05  # of the prediction, within which an estimate is quadratic; and where that is below .5
NEAR = 1 / 3  # of |w*|: draws nearer than this are near w*
PART = 0.1  # of the prediction: a part of slope, of minibatches or of step size above it spoils an estimate
MOST_SATURATED = 0.3  # of the way to the null predictor
RELAXED = 0.9  # of the quadratic prediction that a chain of this length shows
UNSTABLE = 1.0  # eps (nbeta h_max + gamma): a step as long as the steepest direction's width
CHANCE = 0.05  # of a trend beyond its limit, by chance
UNMIXED = 1.2  # R-hat (Brooks and Gelman 1998): a chain's half holds two or so independent draws, or fewer
REJECTED = 0.1  # mean Metropolis acceptance: the steps are too long for the target


class Evidence(NamedTuple):
    """What an estimate is judged by; nan or None for what is not known, which is a reason only if it is asked for.

    t: the quantile of the two-sided 95 % interval of as many chains, which is also the trend's limit.
    """

    value: float
    error: float
    t: float
    slopes: Slopes
    prediction: Prediction | None
    distance: float
    norm: float | None
    saturation: float | None
    saturation_cause: str
    trend: float
    r_hat: float | None
    r_hat_cause: str
    acceptance: float | None
    stability: float | None
    relaxed: float | None
    relaxation: float
    burn_in: int
    divergence: str


class Judged(NamedTuple):
    """The verdict, both answers, and the reasons against."""

    verdict: str
    pull: str
    order: str
    reasons: tuple[str, ...]


def judge(of: Evidence) -> Judged:
    """The verdict."""
    reasons = tuple(reasons_against(of))
    order = _order(of)
    pull = _pull(of, order, reasons)
    if reasons:
        return Judged(NONE, pull, order, reasons)
    return Judged(VERDICTS.get((pull, order), UNDECIDED), pull, order, ())


VERDICTS = {(PLATEAU, QUADRATIC): LLC, (LOCALISED, QUADRATIC): CURVATURE, (PLATEAU, HIGHER): AT_THIS_NBETA}


def _order(of: Evidence) -> str:
    """Whether the interval of the estimate lies within a tenth of the quadratic prediction, or outside it.

    The margin is .05 where the prediction is below .5, and the interval is widened by the prediction's own error. A
    loss whose degree is clearly not 2 is of higher order, also where its estimate meets the prediction by chance.
    """
    if of.prediction is None or not math.isfinite(of.prediction.total) or not math.isfinite(of.value):
        return UNDECIDED
    margin = max(WITHIN * abs(of.prediction.total), AT_LEAST)
    off = of.value - of.prediction.total
    half = of.t * math.hypot(of.error, of.prediction.error)
    if abs(of.slopes.degree - 2) - of.t * of.slopes.degree_error > NOT_TWO:
        return HIGHER
    if abs(off) + half <= margin:
        return QUADRATIC
    return HIGHER if abs(off) - half > margin else UNDECIDED


def _pull(of: Evidence, order: str, reasons: tuple[str, ...]) -> str:
    """Whether both logarithmic derivatives are below .1, with their intervals; a quadratic has its own exactly."""
    if order == QUADRATIC and of.prediction is not None:
        found = [(of.prediction.d_nbeta, 0.0), (of.prediction.d_gamma, 0.0)]
    else:
        found = [(of.slopes.d_nbeta, of.slopes.d_nbeta_error), (of.slopes.d_gamma, of.slopes.d_gamma_error)]
    if any(not (math.isfinite(value) and math.isfinite(error)) for value, error in found):
        return UNDECIDED
    if abs(found[1][0]) - of.t * found[1][1] > FLAT:
        return LOCALISED
    flat = all(abs(value) + of.t * error < FLAT for value, error in found)
    return PLATEAU if flat and not reasons and is_near(of.distance, of.norm) else UNDECIDED


def is_near(distance: float, norm: float | None) -> bool:
    """Whether draws are near w*, which is not asked where w* = 0."""
    return norm is not None and math.isfinite(norm) and (norm == 0 or distance < NEAR * norm)


def reasons_against(of: Evidence) -> list[str]:
    """The reasons why chains did not draw from a posterior around a minimum, each `word: sentence`."""
    if of.divergence:
        return [f"{NOT_COMPUTED}: {of.divergence}"]
    return [reason for reason in (*_of_place(of), *_of_chains(of)) if reason]


def _of_place(of: Evidence) -> list[str]:
    """Where the chains are: at a minimum, near w*, below the null predictor's loss."""
    found = []
    if not math.isfinite(of.value):
        found.append(f"{NOT_COMPUTED}: llc is {of.value}")
    prediction = of.prediction
    if prediction is not None and math.isnan(prediction.curvature):
        found.append(
            f"{SADDLE}: the Hessian has an eigenvalue of {prediction.h_min:.3g}, so that nbeta h_min + gamma is below 0"
        )
    elif prediction is not None:
        size = max(abs(prediction.curvature), abs(of.value))
        if abs(prediction.slope) > PART * size:
            found.append(f"{OFF_MINIMUM}: the slope at w* adds {prediction.slope:.3g} to {prediction.curvature:.3g}")
        if math.isfinite(prediction.noise) and abs(prediction.noise) > PART * size:
            found.append(f"{OFF_MINIMUM}: minibatch noise adds {prediction.noise:.3g} to {prediction.curvature:.3g}")
        if math.isfinite(prediction.step) and abs(prediction.step) > PART * size:
            found.append(f"{STEP_TOO_LONG}: the step size adds {prediction.step:.3g} to {prediction.curvature:.3g}")
    if of.value + of.t * of.error < 0:
        found.append(f"{OFF_MINIMUM}: the draws lie below L(w*)")
    if of.norm is not None and 0 < of.norm < of.distance:
        found.append(f"{ESCAPED}: draws are at distance {of.distance:.3g} from a w* of length {of.norm:.3g}")
    if of.saturation_cause:
        found.append(f"{NOT_COMPUTED}: {of.saturation_cause}")
    elif of.saturation is not None and not -math.inf < of.saturation <= MOST_SATURATED:
        found.append(
            f"{SATURATED}: draws are {of.saturation:.2f} of the way to the null predictor"
            if math.isfinite(of.saturation)
            else f"{NOT_COMPUTED}: saturation is {of.saturation}"
        )
    return found


def _of_chains(of: Evidence) -> list[str]:
    """Whether the chains moved, mixed, and in steps that are short enough."""
    found = []
    if of.stability is not None and not -math.inf < of.stability < UNSTABLE:
        found.append(f"{STEP_TOO_LONG}: eps (nbeta h_max + gamma) is {of.stability:.2g}, not below {UNSTABLE:g}")
    if of.acceptance is not None and not REJECTED <= of.acceptance < math.inf:
        found.append(
            f"{STEP_TOO_LONG}: acceptance is {of.acceptance:.2g}"
            if math.isfinite(of.acceptance)
            else f"{NOT_COMPUTED}: acceptance is {of.acceptance}"
        )
    if of.relaxed is not None and not RELAXED <= of.relaxed < math.inf:
        found.append(
            f"{NOT_MIXED}: chains of this length reach {of.relaxed:.0%} of the quadratic prediction: a flat direction "
            f"forgets w* in {of.relaxation:.3g} steps, and the burn-in has {of.burn_in}"
        )
    if not abs(of.trend) <= of.t:
        found.append(
            f"{NOT_MIXED}: {of.trend:+.1f} standard errors from the first to the last quarter of the draws"
            if not math.isnan(of.trend)
            else f"{NOT_COMPUTED}: trend is {of.trend}"
        )
    if of.r_hat_cause:
        found.append(f"{NOT_MIXED}: {of.r_hat_cause}")
    elif of.r_hat is not None and not -math.inf < of.r_hat <= UNMIXED:
        found.append(
            f"{NOT_MIXED}: R-hat is {of.r_hat:.3f}, above {UNMIXED:g}"
            if math.isfinite(of.r_hat)
            else f"{NOT_COMPUTED}: r_hat is {of.r_hat}"
        )
    return found
