"""Validates the LLC estimator: each of its numbers where the answer is known, with a target that it meets or misses.

Quadratics are compared with the value that SGLD has at its eps. Singular losses are estimated at eps and at eps / 2 and
extrapolated linearly to eps = 0; their burn-in is two relaxations of a flat direction, 2 / (eps gamma) steps each, and
four more are drawn. A target is about the number: whether the diagnostics call its chains healthy stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from analysis.measures import llc_cases as cases
from analysis.measures.llc import LEVEL
from analysis.measures.llc_cases import Case
from analysis.measures.llc_chains import chain_means, estimate, reference
from analysis.measures.llc_health import HEALTHY, TRENDING, trend
from analysis.measures.llc_settings import Settings
from baselines import learning_coefficients as known
from src import intervals

ERRORS = 3.0  # standard errors within which an exact value has to be
RELAXATIONS = 2.0  # of a flat direction, in a burn-in
REPETITIONS = 200  # of an estimate, for the coverage of its intervals


class Known(NamedTuple):
    """The value that an estimate is compared with, where it is from, and how near it has to be.

    within: relative; errors: standard errors of the estimate, infinite where the two differ by more than chance, as a
    value at a finite nbeta and its limit do.
    """

    value: float
    source: str
    within: float
    errors: float = ERRORS

    def meets(self, estimate: float, error: float = 1.0) -> bool:
        """Whether an estimate of this standard error is near enough."""
        off = abs(estimate - self.value)
        return off <= min(self.within * abs(self.value), self.errors * error)


class Check(NamedTuple):
    """A row of the table: what was estimated, what is known, and whether the target was met.

    low, high: the 95 % t interval over chains; coefficient: lambda, the value at infinite nbeta; eps: the smallest;
    steps: of a chain, burn-in included.
    """

    section: str
    case: str
    known: float
    source: str
    within: float
    estimate: float
    low: float
    high: float
    met: bool
    health: str
    coefficient: float = math.nan
    eps: float = math.nan
    nbeta: float = math.nan
    gamma: float = math.nan
    chains: int = 0
    steps: int = 0


class Matrices(NamedTuple):
    """A deep linear network, and the gamma and eps at nbeta = 1e4 at which its chains forget w* in time.

    gamma is as large as lambda allows: more of it relaxes chains faster, and takes more from the estimate.
    """

    widths: tuple[int, ...]
    rank: int
    gamma: float
    eps: float


COLD = 1e4  # nbeta of matrices
GOLDEN = (
    Matrices((4, 4, 4), 2, 10, 1.5e-5),
    Matrices((5, 3, 5), 0, 5, 5e-5),
    Matrices((5, 4, 5), 0, 10, 5e-5),
    Matrices((4, 3, 8), 0, 10, 5e-5),
    Matrices((8, 3, 4), 0, 10, 5e-5),
    Matrices((3, 8, 4), 0, 10, 2.5e-5),
    Matrices((8, 8, 8, 8), 0, 6, 1e-5),
    Matrices((8, 8, 8, 8), 4, 20, 5e-6),
    Matrices((10, 10, 10), 3, 10, 7e-6),
)
FURTHER = (
    Matrices((2, 2, 2), 0, 3, 5e-5),
    Matrices((6, 2, 6), 1, 10, 1.5e-5),
    Matrices((3, 5, 4), 1, 10, 1.5e-5),
    Matrices((5, 5, 5), 2, 10, 1.2e-5),
    Matrices((6, 4, 3), 3, 10, 1e-5),
    Matrices((6, 3, 6), 2, 10, 1.2e-5),
    Matrices((6, 5, 4, 3), 0, 5, 3e-5),
    Matrices((4, 4, 4, 4), 1, 5, 7e-6),
    Matrices((5, 3, 4, 5), 1, 5, 7e-6),
    Matrices((8, 4, 4, 6), 2, 10, 5e-6),
)
CROSSINGS = ((1, 1), (0, 1), (0, 2), (1, 2), (2, 2), (1, 3))
NOTHING = intervals.Interval(math.nan, math.nan, math.nan, 0)
HMC = (80, 160)  # burn-in and draws
BY_RANK = (10, 5, 10)  # widths of the regression whose rank goes from 0 to 5


# --- sections: the checks of one case after the other ---


def quadratics() -> Iterator[list[Check]]:
    """Minima of full and of lower rank, at steps of half and nearly all that is healthy; and off a minimum."""
    steep, flat, regular = np.array([1.0, 10.0, 100.0]), np.array([1.0, 10.0, 0.0, 0.0]), np.ones(10)
    for h, nbeta, gamma, eps, off in (
        (steep, 100.0, 10.0, 5e-5, 0.0),
        (steep, 100.0, 10.0, 9e-5, 0.0),
        (flat, 1e3, 10.0, 5e-5, 0.0),
        (regular, 1e4, 1.0, 1e-5, 0.0),
        (regular, 1e3, 1e3, 1e-4, 0.1),
    ):
        settings = Settings(eps, nbeta, gamma, data="full", chains=128, burn_in=200, draws=600, thin=20)
        exact = Known(known.quadratic(h, nbeta, gamma, eps, h * off), "closed form", 0.03)
        coefficient = math.nan if off else known.regular(int(np.count_nonzero(h))).value
        yield [_at_its_eps("quadratic", cases.quadratic(h, off), settings, exact, coefficient)]


def rescalings() -> Iterator[list[Check]]:
    """A ReLU unit whose weights are scaled by c and 1 / c: the function is the same, and so is the coefficient."""
    for scale in (1.0, 0.25, 4.0):
        case = cases.relu_unit(scale)
        settings = Settings(1e-6, COLD, 1.0, data="full", chains=128, burn_in=200, draws=600, thin=20)
        steepest = np.array([2 * case.null_loss * (scale**2 + scale**-2)])
        exact = Known(known.quadratic(steepest, COLD, 0.0, settings.eps), "closed form", 0.03)
        yield [_at_its_eps("rescaling", case, settings, exact, 0.5)]


def crossings() -> Iterator[list[Check]]:
    """Losses without a Hessian at w*, compared with quadrature at the same nbeta and gamma."""
    nbeta, gamma, eps = 145.0, 1.0, 8e-4
    for powers in CROSSINGS:
        exact = Known(known.crossing(powers, nbeta, gamma), "quadrature", 0.05)
        coefficient, pair = known.normal_crossing(powers).value, _halved(eps, nbeta, gamma, 512)
        yield [_extrapolated("crossing", cases.crossing(*powers), pair, exact, coefficient)]
    exact = Known(10 * known.crossing((0, 2), nbeta, gamma), "quadrature", 0.05)
    coefficient = known.sum_of_powers([2] * 10).value
    yield [_extrapolated("crossing", cases.powers(2, 10), _halved(eps, nbeta, gamma, 64), exact, coefficient)]


def matrices() -> Iterator[list[Check]]:
    """Reduced-rank regression and deep linear networks: HMC against lambda, SGLD against HMC and against lambda."""
    for shape in GOLDEN + FURTHER:
        case = cases.deep_linear(shape.widths, shape.rank)
        limit = Known(known.deep_linear(shape.widths, shape.rank).value, "Aoyagi", 0.1, math.inf)
        hmc = _by_hmc("matrices, HMC", case, COLD, shape.gamma, limit)
        exact, pair = Known(hmc.estimate, "HMC", 0.05, math.inf), _halved(shape.eps, COLD, shape.gamma, _chains(case))
        sgld = _extrapolated("matrices, SGLD", case, pair, exact, limit.value)
        found = intervals.Interval(sgld.estimate, sgld.low, sgld.high, sgld.chains)
        met = limit.meets(sgld.estimate)
        cold = _check("matrices, lambda", case.name, limit, found, met, sgld.health, limit.value)
        yield [hmc, sgld, _with(cold, pair[1])]


def ranks() -> Iterator[list[Check]]:
    """The LLC rises with the rank of the solution: 100 parameters, one setting for all, plain SGLD at one eps."""
    highest = -math.inf
    for rank in range(min(BY_RANK) + 1):
        limit = Known(known.deep_linear(BY_RANK, rank).value, "Aoyagi", 0.1, math.inf)
        settings = Settings(8e-6, COLD, 5.0, data="full", chains=16, burn_in=250, draws=500, thin=200)
        check = _at_its_eps("by rank", cases.deep_linear(BY_RANK, rank), settings, limit, limit.value)
        yield [check._replace(met=check.met and check.estimate > highest)]
        highest = check.estimate


def coverages() -> Iterator[list[Check]]:
    """How often the 95 % t interval of eight chains covers, and how often the trend speaks up.

    The slowest direction relaxes in 364 steps. Where three of them are left out the interval covers; where none is it
    does not, which the trend has to say.
    """
    h = np.array([100.0, 100.0] + [1.0] * 8)
    long = Settings(5e-5, 100.0, 10.0, data="full", chains=8, burn_in=120, draws=400, thin=10)
    share, flagged = _covered(h, long)
    met = 0.90 <= share.estimate <= 0.99
    yield [_with(_coverage("burn-in of 3.3 relaxations", share, met, flagged), long)]
    short = replace(long, burn_in=0, draws=80)
    share, flagged = _covered(h, short)
    met = share.estimate < 0.90 <= flagged
    yield [_with(_coverage("no burn-in, which the trend has to flag", share, met, flagged), short)]


def limits() -> Iterator[list[Check]]:
    """Extrapolation to infinite nbeta, where the last two quarters agree: made for HMC, refused to short SGLD."""
    nbetas = (1e3, COLD)
    case, coefficient = cases.crossing(1, 1), known.normal_crossing((1, 1)).value
    limit = Known(coefficient, "normal crossing", 0.1, math.inf)
    drawn = [nbeta * _hmc_excess(case, nbeta, 1.0, 1024) for nbeta in nbetas]
    means, refused = in_nbeta(nbetas, drawn)
    check = _judged("to infinite nbeta", f"{case.name}, HMC", means, limit, refused or HEALTHY, coefficient)
    yield [check._replace(nbeta=COLD, gamma=1.0, chains=len(means), steps=sum(HMC))]
    case, coefficient = cases.deep_linear((8, 8, 8, 8), 0), known.deep_linear((8, 8, 8, 8), 0).value
    runs = [Settings(1e-6, nbeta, 1.0, data="full", chains=16, burn_in=50, draws=400, thin=20) for nbeta in nbetas]
    drawn = [settings.nbeta * estimate(case, settings)[1]["excess"][:, settings.burn_in :] for settings in runs]
    refused = in_nbeta(nbetas, drawn)[1]
    limit = Known(coefficient, "Aoyagi", 0.1, math.inf)
    check = _check("to infinite nbeta", f"{case.name}, short SGLD", limit, NOTHING, bool(refused), refused, coefficient)
    yield [_with(check, runs[-1])]


# --- parts ---


def in_nbeta(nbetas: Sequence[float], estimates: Sequence[np.ndarray]) -> tuple[np.ndarray, str]:
    """The limit [C] of estimates [C, T] by a line in 1 / log nbeta, and why it must not be used ("" if it may).

    nbeta E[L] = lambda - (m - 1) / log nbeta + ... (Watanabe 2013), which holds of draws that have settled alone.
    """
    moved = max((trend(values, since=-2) for values in estimates), key=abs)
    refused = f"not extrapolated: {moved:+.1f} standard errors between the last two quarters"
    design = np.stack([np.ones(len(nbetas)), 1 / np.log(nbetas)], axis=1)
    means = np.stack([values.mean(axis=1) for values in estimates])
    return np.linalg.lstsq(design, means, rcond=None)[0][0], refused if abs(moved) > TRENDING else ""


def _at_its_eps(section: str, case: Case, settings: Settings, exact: Known, coefficient: float) -> Check:
    row, traces = estimate(case, settings)
    return _with(
        _judged(section, case.name, chain_means(traces, settings), exact, row["health"], coefficient), settings
    )


def _extrapolated(section: str, case: Case, pair: tuple[Settings, Settings], exact: Known, coefficient: float) -> Check:
    """2 m(eps / 2) - m(eps) of pairs of chains: the error of SGLD is linear in eps."""
    rows, traces = zip(*(estimate(case, settings) for settings in pair), strict=True)
    coarse, fine = map(chain_means, traces, pair)
    health = next((row["health"] for row in rows if row["health"] != HEALTHY), HEALTHY)
    return _with(_judged(section, case.name, 2 * fine - coarse, exact, health, coefficient), pair[1])


def _by_hmc(section: str, case: Case, nbeta: float, gamma: float, exact: Known) -> Check:
    """HMC, whose health is that the first and the last quarter of the draws agree."""
    excess = _hmc_excess(case, nbeta, gamma, chains := 2 * _chains(case))
    moved = trend(excess)
    health = f"the draws still move: {moved:+.1f} standard errors" if abs(moved) > ERRORS else HEALTHY
    check = _judged(section, case.name, nbeta * excess.mean(axis=1), exact, health, exact.value)
    return check._replace(nbeta=nbeta, gamma=gamma, chains=chains, steps=sum(HMC))


def _chains(case: Case) -> int:
    """As many as estimate lambda to about 1 %: each parameter of a chain counts for as much."""
    return max(16, 1024 // len(case.centre))


def _hmc_excess(case: Case, nbeta: float, gamma: float, chains: int) -> np.ndarray:
    return np.asarray(reference(case, nbeta, gamma, chains, *HMC).excess, np.float64)


def _halved(eps: float, nbeta: float, gamma: float, chains: int) -> tuple[Settings, Settings]:
    """Settled settings at eps and at eps / 2."""
    burn_in, draws = 300, 600
    sizes = [(size, math.ceil(RELAXATIONS * 2 / (size * gamma) / burn_in)) for size in (eps, eps / 2)]
    one, half = (
        Settings(size, nbeta, gamma, data="full", chains=chains, burn_in=burn_in, draws=draws, thin=thin)
        for size, thin in sizes
    )
    return one, half


def _covered(h: np.ndarray, settings: Settings) -> tuple[intervals.Interval, float]:
    """The share of repetitions whose interval covers the exact value, and of those that the trend flags."""
    exact = known.quadratic(h, settings.nbeta, settings.gamma, settings.eps)
    _, traces = estimate(cases.quadratic(h), replace(settings, chains=REPETITIONS * settings.chains))
    kept = traces["excess"][:, settings.burn_in :].reshape(REPETITIONS, settings.chains, -1)
    found = [intervals.of(settings.nbeta * excess.mean(axis=1), "linear", LEVEL) for excess in kept]
    covered = sum(interval.low <= exact <= interval.high for interval in found)
    flagged = sum(abs(trend(excess)) > TRENDING for excess in kept)
    return intervals.clopper_pearson(covered, REPETITIONS, LEVEL), flagged / REPETITIONS


def _coverage(name: str, share: intervals.Interval, met: bool, flagged: float) -> Check:
    nominal = Known(LEVEL, "95 % t interval", 0.05)
    return _check("coverage", name, nominal, share, met, f"the trend flags {flagged:.0%}", math.nan)


def _judged(section: str, name: str, means: np.ndarray, exact: Known, health: str, coefficient: float) -> Check:
    """The check of chain means [C]."""
    interval, error = intervals.of(means, "linear", LEVEL), means.std(ddof=1) / math.sqrt(len(means))
    return _check(section, name, exact, interval, exact.meets(interval.estimate, error), health, coefficient)


def _check(
    section: str,
    name: str,
    exact: Known,
    interval: intervals.Interval,
    met: bool,
    health: str,
    coefficient: float,
) -> Check:
    ends = interval.estimate, interval.low, interval.high
    return Check(section, name, exact.value, exact.source, exact.within, *ends, met, health, coefficient)


def _with(check: Check, settings: Settings) -> Check:
    steps = (settings.burn_in + settings.draws) * settings.thin
    return check._replace(
        eps=settings.eps, nbeta=settings.nbeta, gamma=settings.gamma, chains=settings.chains, steps=steps
    )


SECTIONS: Mapping[str, Callable[[], Iterator[list[Check]]]] = {
    "quadratic": quadratics,
    "rescaling": rescalings,
    "crossing": crossings,
    "matrices": matrices,
    "by rank": ranks,
    "coverage": coverages,
    "to infinite nbeta": limits,
}
