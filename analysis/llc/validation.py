"""Validates the LLC estimator: which losses it is checked on, with a target that it meets or misses.

A target is about the number: the reasons against its chains are reported with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.llc import cases as cases
from icl_lab.analysis.llc import known
from icl_lab.analysis.llc.cases import estimate
from icl_lab.analysis.llc.checks import (
    HMC,
    Check,
    Known,
    at_its_eps,
    at_settings,
    by_hmc,
    chains_for,
    compared,
    coverage,
    covered,
    extrapolated,
    halved,
    hmc_excess,
    in_nbeta,
    judged,
    moving,
)
from icl_lab.analysis.llc.estimate import NO_INTERVAL
from icl_lab.analysis.llc.settings import Settings
from icl_lab.src import intervals


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
BY_RANK = (10, 5, 10)  # widths of the regression whose rank goes from 0 to 5


# --- sections: the checks of one case after the other ---


def quadratics() -> Iterator[list[Check]]:
    """Minima of full and of lower rank, at steps of half and nearly all that is stable; and off a minimum."""
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
        yield [at_its_eps("quadratic", cases.quadratic(h, off), settings, exact, coefficient)]


def rescalings() -> Iterator[list[Check]]:
    """A ReLU unit whose weights are scaled by c and 1 / c: the function is the same, and so is the coefficient."""
    for scale in (1.0, 0.25, 4.0):
        case = cases.relu_unit(scale)
        settings = Settings(1e-6, COLD, 1.0, data="full", chains=128, burn_in=200, draws=600, thin=20)
        steepest = np.array([2 * case.null_loss * (scale**2 + scale**-2)])
        exact = Known(known.quadratic(steepest, COLD, 0.0, settings.step_size), "closed form", 0.03)
        yield [at_its_eps("rescaling", case, settings, exact, 0.5)]


def crossings() -> Iterator[list[Check]]:
    """Losses without a Hessian at w*, compared with quadrature at the same nbeta and gamma."""
    nbeta, gamma, eps = 145.0, 1.0, 8e-4
    for powers in CROSSINGS:
        exact = Known(known.crossing(powers, nbeta, gamma), "quadrature", 0.05)
        coefficient, pair = known.normal_crossing(powers).value, halved(eps, nbeta, gamma, 512)
        yield [extrapolated("crossing", cases.crossing(*powers), pair, exact, coefficient)]
    exact = Known(10 * known.crossing((0, 2), nbeta, gamma), "quadrature", 0.05)
    coefficient = known.sum_of_powers([2] * 10).value
    yield [extrapolated("crossing", cases.powers(2, 10), halved(eps, nbeta, gamma, 64), exact, coefficient)]


def matrices() -> Iterator[list[Check]]:
    """Reduced-rank regression and deep linear networks: HMC against lambda, SGLD against HMC and against lambda."""
    for shape in GOLDEN + FURTHER:
        case = cases.deep_linear(shape.widths, shape.rank)
        limit = Known(known.deep_linear(shape.widths, shape.rank).value, "Aoyagi", 0.1, math.inf)
        hmc = by_hmc("matrices, HMC", case, COLD, shape.gamma, limit)
        exact, pair = Known(hmc.estimate, "HMC", 0.05, math.inf), halved(shape.eps, COLD, shape.gamma, chains_for(case))
        sgld = extrapolated("matrices, SGLD", case, pair, exact, limit.value)
        interval = intervals.Interval(sgld.estimate, sgld.low, sgld.high, sgld.chains)
        met = limit.meets(sgld.estimate)
        cold = compared("matrices, lambda", case.name, limit, interval, met, sgld.reasons, limit.value)
        yield [hmc, sgld, at_settings(cold, pair[1])]


def ranks() -> Iterator[list[Check]]:
    """The LLC rises with the rank of the solution: 100 parameters, one setting for all, plain SGLD at one eps."""
    highest = -math.inf
    for rank in range(min(BY_RANK) + 1):
        limit = Known(known.deep_linear(BY_RANK, rank).value, "Aoyagi", 0.1, math.inf)
        settings = Settings(8e-6, COLD, 5.0, data="full", chains=16, burn_in=250, draws=500, thin=200)
        check = at_its_eps("by rank", cases.deep_linear(BY_RANK, rank), settings, limit, limit.value)
        yield [check._replace(met=check.met and check.estimate > highest)]
        highest = check.estimate


def coverages() -> Iterator[list[Check]]:
    """How often the 95 % t interval of eight chains covers, and how often the trend flags.

    The slowest direction relaxes in 364 steps. Where three of them are left out the interval covers; where none is it
    does not, which the trend has to flag.
    """
    h = np.array([100.0, 100.0] + [1.0] * 8)
    long = Settings(5e-5, 100.0, 10.0, data="full", chains=8, burn_in=120, draws=400, thin=10)
    share, flagged = covered(h, long)
    met = 0.90 <= share.estimate <= 0.99
    yield [at_settings(coverage("burn-in of 3.3 relaxations", share, met, flagged), long)]
    short = replace(long, burn_in=0, draws=80)
    share, flagged = covered(h, short)
    met = share.estimate < 0.90 <= flagged
    yield [at_settings(coverage("no burn-in, which the trend has to flag", share, met, flagged), short)]


def limits() -> Iterator[list[Check]]:
    """Extrapolation to infinite nbeta, where the last two quarters agree: made for HMC, refused to short SGLD."""
    nbetas = (1e3, COLD)
    case, coefficient = cases.crossing(1, 1), known.normal_crossing((1, 1)).value
    limit = Known(coefficient, "normal crossing", 0.1, math.inf)
    drawn = [nbeta * hmc_excess(case, nbeta, 1.0, 1024) for nbeta in nbetas]
    means, moved = in_nbeta(nbetas, drawn)
    reasons = moving(moved)
    check = judged("to infinite nbeta", f"{case.name}, HMC", means, limit, reasons, coefficient)
    yield [check._replace(nbeta=COLD, gamma=1.0, chains=len(means), steps=sum(HMC))]
    case, coefficient = cases.deep_linear((8, 8, 8, 8), 0), known.deep_linear((8, 8, 8, 8), 0).value
    runs = [Settings(1e-6, nbeta, 1.0, data="full", chains=16, burn_in=50, draws=400, thin=20) for nbeta in nbetas]
    drawn = [settings.nbeta * estimate(case, settings)[1]["excess"][:, settings.burn_in :] for settings in runs]
    moved = in_nbeta(nbetas, drawn)[1]
    limit, reasons = Known(coefficient, "Aoyagi", 0.1, math.inf), moving(moved)
    is_refused = math.isfinite(moved) and bool(reasons)
    check = compared(
        "to infinite nbeta", f"{case.name}, short SGLD", limit, NO_INTERVAL, is_refused, reasons, coefficient
    )
    yield [at_settings(check, runs[-1])]


SECTIONS: Mapping[str, Callable[[], Iterator[list[Check]]]] = {
    "quadratic": quadratics,
    "rescaling": rescalings,
    "crossing": crossings,
    "matrices": matrices,
    "by rank": ranks,
    "coverage": coverages,
    "to infinite nbeta": limits,
}
