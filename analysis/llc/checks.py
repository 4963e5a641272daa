"""A check of the LLC estimator: what is known, what was estimated, and whether that is near enough.

Singular losses are estimated at eps and at eps / 2 and extrapolated linearly to eps = 0; their burn-in is two
relaxations of a flat direction, 2 / (eps gamma) steps each, and four more are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.llc import cases as cases
from icl_lab.analysis.llc import known
from icl_lab.analysis.llc.cases import Case, chain_means, estimate, reference
from icl_lab.analysis.llc.estimate import LEVEL, NO_INTERVAL, t_quantile
from icl_lab.analysis.llc.mixing import trend
from icl_lab.analysis.llc.settings import Settings
from icl_lab.src import intervals
from icl_lab.store.llc_rows import NOT_MIXED

ERRORS = 3.0  # standard errors within which an exact value has to be
RELAXATIONS = 2.0  # of a flat direction, in a burn-in
REPETITIONS = 200  # of an estimate, for the coverage of its intervals
HMC = (80, 160)  # burn-in and draws
TRENDING = 2.0  # standard errors between the last two quarters, beyond which nothing is extrapolated


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
        """Whether an estimate of this standard error is near enough; not if one of the three is no finite number."""
        if not all(map(math.isfinite, (estimate, self.value, error))):
            return False
        off = abs(estimate - self.value)
        return off <= self.within * abs(self.value) and (math.isinf(self.errors) or off <= self.errors * error)


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
    reasons: str
    coefficient: float = math.nan
    eps: float = math.nan
    nbeta: float = math.nan
    gamma: float = math.nan
    chains: int = 0
    steps: int = 0


def in_nbeta(nbetas: Sequence[float], estimates: Sequence[np.ndarray]) -> tuple[np.ndarray, float]:
    """The limit [C] of estimates [C, T] by a line in 1 / log nbeta, and the largest trend of their last two quarters.

    nbeta E[L] = lambda - (m - 1) / log nbeta + ... (Watanabe 2013), which holds only for equilibrated draws.
    """
    trends = np.array([trend(values, since=-2) for values in estimates])
    design = np.stack([np.ones(len(nbetas)), 1 / np.log(nbetas)], axis=1)
    means = np.stack([values.mean(axis=1) for values in estimates])
    return np.linalg.lstsq(design, means, rcond=None)[0][0], float(trends[np.argmax(np.abs(trends))])


def at_its_eps(section: str, case: Case, settings: Settings, exact: Known, coefficient: float) -> Check:
    """The check of a case at one setting."""
    row, traces = estimate(case, settings)
    return at_settings(
        judged(section, case.name, chain_means(traces, settings), exact, row["reasons"], coefficient), settings
    )


def extrapolated(section: str, case: Case, pair: tuple[Settings, Settings], exact: Known, coefficient: float) -> Check:
    """2 m(eps / 2) - m(eps) of pairs of chains: the error of SGLD is linear in eps."""
    rows, traces = zip(*(estimate(case, settings) for settings in pair), strict=True)
    coarse, fine = map(chain_means, traces, pair)
    reasons = next(filter(None, (row["reasons"] for row in rows)), "")
    return at_settings(judged(section, case.name, 2 * fine - coarse, exact, reasons, coefficient), pair[1])


def by_hmc(section: str, case: Case, nbeta: float, gamma: float, exact: Known) -> Check:
    """HMC, with a reason against it where the first and the last quarter of the draws differ."""
    excess = hmc_excess(case, nbeta, gamma, chains := 2 * chains_for(case))
    reasons = moving(trend(excess), ERRORS)
    check = judged(section, case.name, nbeta * excess.mean(axis=1), exact, reasons, exact.value)
    return check._replace(nbeta=nbeta, gamma=gamma, chains=chains, steps=sum(HMC))


def moving(trend: float, limit: float = TRENDING) -> str:
    """The reason of a trend beyond its limit, in standard errors; "" within it."""
    return "" if abs(trend) <= limit else f"{NOT_MIXED}: {trend:+.1f} standard errors between quarters of the draws"


def chains_for(case: Case) -> int:
    """As many as estimate lambda to about 1 %: each parameter of a chain counts for as much."""
    return max(16, 1024 // len(case.centre))


def hmc_excess(case: Case, nbeta: float, gamma: float, chains: int) -> np.ndarray:
    """The excess losses [C, T] of HMC."""
    return np.asarray(reference(case, nbeta, gamma, chains, *HMC).excess, np.float64)


def halved(eps: float, nbeta: float, gamma: float, chains: int) -> tuple[Settings, Settings]:
    """Settings with a long enough burn-in at eps and at eps / 2."""
    burn_in, draws = 300, 600
    sizes = [(size, math.ceil(RELAXATIONS * 2 / (size * gamma) / burn_in)) for size in (eps, eps / 2)]
    one, half = (
        Settings(size, nbeta, gamma, data="full", chains=chains, burn_in=burn_in, draws=draws, thin=thin)
        for size, thin in sizes
    )
    return one, half


def covered(h: np.ndarray, settings: Settings) -> tuple[intervals.Interval, float]:
    """The share of repetitions whose interval covers the exact value, and of those that the trend flags."""
    exact = known.quadratic(h, settings.nbeta, settings.gamma, settings.step_size)
    _, traces = estimate(cases.quadratic(h), replace(settings, chains=REPETITIONS * settings.chains))
    kept = traces["excess"][:, settings.burn_in :].reshape(REPETITIONS, settings.chains, -1)
    confidence_intervals = [intervals.of(settings.nbeta * excess.mean(axis=1), "linear", LEVEL) for excess in kept]
    covered = sum(interval.low <= exact <= interval.high for interval in confidence_intervals)
    flagged = sum(abs(trend(excess)) > t_quantile(settings.chains) for excess in kept)
    return intervals.clopper_pearson(covered, REPETITIONS, LEVEL), flagged / REPETITIONS


def coverage(name: str, share: intervals.Interval, met: bool, flagged: float) -> Check:
    """The check of a share of repetitions against the level of the intervals."""
    nominal = Known(LEVEL, "95 % t interval", 0.05)
    return compared("coverage", name, nominal, share, met, f"the trend flags {flagged:.0%}", math.nan)


def judged(section: str, name: str, means: np.ndarray, exact: Known, reasons: str, coefficient: float) -> Check:
    """The check of chain means [C]; chains that diverged have no estimate, which meets nothing."""
    if not np.isfinite(means).all():
        return compared(section, name, exact, NO_INTERVAL, False, reasons, coefficient)
    interval, error = intervals.of(means, "linear", LEVEL), float(means.std(ddof=1)) / math.sqrt(len(means))
    return compared(section, name, exact, interval, exact.meets(interval.estimate, error), reasons, coefficient)


def compared(
    section: str,
    name: str,
    exact: Known,
    interval: intervals.Interval,
    met: bool,
    reasons: str,
    coefficient: float,
) -> Check:
    """A row of the table; its settings are put in after."""
    ends = interval.estimate, interval.low, interval.high
    return Check(section, name, exact.value, exact.source, exact.within, *ends, met, reasons, coefficient)


def at_settings(check: Check, settings: Settings) -> Check:
    """The same with the settings of its chains."""
    steps = (settings.burn_in + settings.draws) * settings.thin
    return check._replace(
        eps=settings.step_size, nbeta=settings.nbeta, gamma=settings.gamma, chains=settings.chains, steps=steps
    )
