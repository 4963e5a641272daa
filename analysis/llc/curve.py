"""A curve in place of a point: the LLC over nbeta and gamma, where it has a plateau, and its limit there.

At fixed gamma / nbeta every loss turns quadratic as nbeta grows, and at fixed gamma the global coefficient is the
limit: so there is no extrapolation in gamma. A local LLC is a plateau on which the chains stay near w*. A point counts
if the verdict's answer there is a plateau, and so it is, with the same degree, at every point of the curve within half
a decade of it in both, of which there is one or more. From such points

    eps -> 0     2 LLC(eps / 2) - LLC(eps), chain by chain: the error of SGLD is linear in eps
    nbeta        only where the multiplicity m is known: LLC = lambda - (m - 1) / (log nbeta + c), c from two nbeta
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from icl_lab.analysis.llc.any_model import Problem, estimate, spectrum_at
from icl_lab.analysis.llc.descent import descended
from icl_lab.analysis.llc.estimate import LEVEL, Estimate, t_quantile
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.spectrum import Spectrum
from icl_lab.analysis.llc.verdict import LOCALISED, PLATEAU
from icl_lab.src import intervals
from icl_lab.store.llc_rows import ESCAPED, NOT_MIXED, OFF_MINIMUM, SADDLE, SATURATED, STEP_TOO_LONG

NEIGHBOURS = 0.5 + 1e-9  # of log10 of nbeta and gamma: half a decade
SAME_DEGREE = 0.2  # by how much degrees may differ beyond their errors
NO_PLATEAU = "no plateau at these settings"
REMEDIES = {  # the first reason that occurs -> what to try next
    SATURATED: "the draws reach the null predictor: raise gamma, or nbeta",
    ESCAPED: "the chains leave w*: raise gamma",
    SADDLE: "w* is a saddle: descend from it first (--descend 200), or raise gamma",
    OFF_MINIMUM: "w* is not a minimum: descend from it first (--descend 200), or take a later checkpoint",
    STEP_TOO_LONG: "the steps are too long: leave --eps out",
    NOT_MIXED: "the chains are too short: raise --thin or --burn_in and --draws, or take --sampler sghmc",
}
AFTER_DESCENT = {
    SADDLE: "the descent ends at a saddle: descend further, or raise gamma",
    OFF_MINIMUM: "the descent has not reached a minimum: descend further, or raise gamma",
}


class Limit(NamedTuple):
    """The LLC at the best point of a plateau, extrapolated to eps = 0, and to lambda where the multiplicity is
    known.
    """

    nbeta: float
    gamma: float
    value: float
    low: float
    high: float
    coefficient: float | None
    said: str


class Curve(NamedTuple):
    """The estimates, which of them count for a plateau, the limit there, and a sentence."""

    estimates: list[Estimate]
    counts: list[bool]
    limit: Limit | None
    said: str

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each point."""
        for one, counts in zip(self.estimates, self.counts, strict=True):
            yield one.row() | {"on_plateau": counts}


def curve_of(
    problem: Problem,
    settings: Settings,
    nbetas: Sequence[float],
    gammas: Sequence[float],
    multiplicity: int | None = None,
    root: Any = None,
    step: int = 0,
    spectrum: Spectrum | None = None,
) -> Curve:
    """The LLC at every nbeta and gamma, from one descent, if one is asked for, and one spectrum.

    eps as the settings say (None: chosen at each point); spectrum: that at w*, if it is known.
    """
    moved = (0.0, 0.0)
    if settings.descend:
        begin = descended(problem.split, problem.data, problem.mask, settings.descend)
        problem, moved, spectrum = problem._replace(split=begin.split), (begin.distance, begin.gain), None
    spectrum = spectrum_at(problem) if spectrum is None else spectrum

    def at(nbeta: float, gamma: float, eps: float | None) -> Estimate:
        own = replace(settings, nbeta=nbeta, gamma=gamma, eps=eps, descend=0)
        found = estimate(problem, own, root=root, step=step, spectrum=spectrum)
        return replace(found, descent=moved, settings=replace(found.settings, descend=settings.descend))

    found = [at(nbeta, gamma, settings.eps) for nbeta in nbetas for gamma in gammas]
    counts = on_plateau(found)
    if not any(counts):
        return Curve(found, counts, None, f"{NO_PLATEAU}; {next_step(found)}")
    points = [one for one, counted in zip(found, counts, strict=True) if counted]
    best = min(points, key=lambda one: one.high - one.low)
    finer = at(best.settings.nbeta, best.settings.gamma, best.settings.step_size / 2) if takes_steps(best) else best
    limit = extrapolated(best, finer, points, multiplicity)
    return Curve(found, counts, limit, limit.said)


def takes_steps(one: Estimate) -> bool:
    """Whether a sampler's error is linear in eps, which HMC has not."""
    return one.settings.sampler != "hmc"


def on_plateau(estimates: Sequence[Estimate]) -> list[bool]:
    """Which points count: on a plateau with all their neighbours, of which there is one or more, and of one degree."""
    return [_counts(one, estimates) for one in estimates]


def _counts(one: Estimate, estimates: Sequence[Estimate]) -> bool:
    near = [other for other in estimates if other is not one and _are_neighbours(one, other)]
    return bool(near) and all(other.pull == PLATEAU and _same_degree(one, other) for other in (one, *near))


def _are_neighbours(one: Estimate, other: Estimate) -> bool:
    pairs = ((getattr(one.settings, name), getattr(other.settings, name)) for name in ("nbeta", "gamma"))
    return all(a > 0 and b > 0 and abs(math.log10(a / b)) <= NEIGHBOURS for a, b in pairs)


def _same_degree(one: Estimate, other: Estimate) -> bool:
    errors = math.hypot(one.slopes.degree_error, other.slopes.degree_error)
    apart = abs(one.degree - other.degree)
    return apart <= SAME_DEGREE + t_quantile(one.settings.chains) * errors


def extrapolated(
    coarse: Estimate, finer: Estimate, points: Sequence[Estimate], multiplicity: int | None = None
) -> Limit:
    """The limit at a point from estimates at eps and at eps / 2; lambda from the points of its gamma."""
    nbeta, gamma = coarse.settings.nbeta, coarse.settings.gamma
    means = [nbeta * one.excess.mean(axis=1) for one in (coarse, finer)]
    chains = 2 * means[1] - means[0] if finer is not coarse else means[0]
    interval = intervals.of(chains, "linear", LEVEL)
    coefficient = None
    at = f"at nbeta {nbeta:g}, gamma {gamma:g}"
    said = f"plateau: LLC {interval.estimate:.4g} [{interval.low:.4g}, {interval.high:.4g}] {at}, eps -> 0"
    if multiplicity == 1:
        coefficient = interval.estimate
    elif multiplicity is not None:
        coefficient = with_multiplicity([one for one in points if one.settings.gamma == gamma], multiplicity)
        fitted = "needs two nbeta on the plateau" if coefficient is None else f"{coefficient:.4g}"
        said += f"; lambda of multiplicity {multiplicity}: {fitted}"
    return Limit(nbeta, gamma, *interval[:3], coefficient, said)


def with_multiplicity(points: Sequence[Estimate], multiplicity: int) -> float | None:
    """lambda of LLC = lambda - (m - 1) / (log nbeta + c) through the points of the least and the largest nbeta.

    None for fewer than two nbeta, and where no c > -log nbeta fits, as where the LLC does not rise with nbeta.
    """
    ordered = sorted(points, key=lambda one: one.settings.nbeta)
    if len({one.settings.nbeta for one in ordered}) < 2:
        return None
    first, last = ordered[0], ordered[-1]
    x, y = math.log(first.settings.nbeta), math.log(last.settings.nbeta)
    rise, lost = last.value - first.value, multiplicity - 1
    if not rise > 0:
        return None
    # lost / (x + c) - lost / (y + c) = rise, with s = x + c: lost (y - x) = rise s (s + y - x)
    width = y - x
    start = (-width + math.sqrt(width**2 + 4 * lost * width / rise)) / 2
    return first.value + lost / start


def next_step(estimates: Sequence[Estimate]) -> str:
    """What to try where no point counts for a plateau, by the reasons and answers that occur."""
    words = [reason.partition(":")[0] for one in estimates for reason in one.reasons]
    free = [one for one in estimates if not one.reasons]
    if free and all(one.pull == LOCALISED for one in free):
        return "gamma sets the value wherever chains are sound: lower gamma, or raise nbeta"
    if free and any(one.pull == PLATEAU for one in free):
        return "a point is on a plateau, but it has no neighbours or not all are: add points within half a decade of it"
    if free:
        return "the intervals of the derivatives are too wide: raise --chains or --draws"
    has_descended = any(one.settings.descend for one in estimates)
    for word, remedy in (REMEDIES | (AFTER_DESCENT if has_descended else {})).items():
        if word in words:
            return remedy
    return "no estimate could be computed; the reasons are in the table"
