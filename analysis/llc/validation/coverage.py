"""How often the 95 % t interval of eight chains covers the answer, over 200 repetitions of an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator

from icl_lab.analysis.llc.estimate import LEVEL, t_quantile
from icl_lab.analysis.llc.mixing import trend
from icl_lab.analysis.llc.validation.checks import Answers, Check, Steps, estimated, known_answer
from icl_lab.analysis.llc.validation.models import KnownLoss, made
from icl_lab.analysis.llc.validation.targets import of_quadratic
from icl_lab.src import intervals

REPETITIONS = 200
CHAINS = 8
LOWEST, HIGHEST = 0.90, 0.99  # share of intervals that cover


def coverages(answers: Answers) -> Iterator[list[Check]]:
    """A quadratic, with and without a burn-in, and a crossing.

    The quadratic's slowest direction relaxes in 364 steps. Where three of them are left out the interval covers; where
    none is it does not, which the trend has to flag. The crossing is estimated at an eps whose bias is a tenth of the
    interval.
    """
    slow = made(f"quadratic({(100.0, 100.0) + (1.0,) * 8})")
    long = Steps(5e-5, 100.0, 10.0, CHAINS, burn_in=120, draws=400, thin=10)
    exact = of_quadratic(slow, long.nbeta, long.gamma, long.eps)
    share, flagged = covered(slow, long, exact)
    name = f"{slow.name}: burn-in of 3.3 relaxations"
    yield [_check(name, long, share, flagged, LOWEST <= share.estimate <= HIGHEST)]
    short = long._replace(burn_in=0, draws=80)
    share, flagged = covered(slow, short, exact)
    name = f"{slow.name}: no burn-in, which the trend has to flag"
    yield [_check(name, short, share, flagged, share.estimate < LOWEST <= flagged)]
    singular, answer = known_answer(answers, "crossing(1, 1)", 145.0, 1.0)
    steps = Steps(2e-4, 145.0, 1.0, CHAINS, burn_in=200, draws=600, thin=200)
    share, flagged = covered(singular, steps, answer.value)
    yield [_check(singular.name, steps, share, flagged, LOWEST <= share.estimate <= HIGHEST)]


def covered(model: KnownLoss, steps: Steps, exact: float) -> tuple[intervals.Interval, float]:
    """The share of repetitions whose interval covers the exact value, and of those that the trend flags."""
    found = estimated(model, steps._replace(chains=REPETITIONS * CHAINS), predict=False)
    kept = found.excess.reshape(REPETITIONS, CHAINS, -1)
    means = [intervals.of(steps.nbeta * excess.mean(axis=1), "linear", LEVEL) for excess in kept]
    count = sum(interval.low <= exact <= interval.high for interval in means)
    flagged = sum(abs(trend(excess)) > t_quantile(CHAINS) for excess in kept)
    return intervals.clopper_pearson(count, REPETITIONS, LEVEL), flagged / REPETITIONS


def _check(name: str, steps: Steps, share: intervals.Interval, flagged: float, met: bool) -> Check:
    """The check of a share of repetitions against the level of the intervals."""
    return Check(
        section="coverage",
        case=name,
        sampler=steps.sampler,
        coefficient=math.nan,
        multiplicity=1,
        answer=LEVEL,
        answer_error=0.0,
        by="95 % t interval",
        gap=math.nan,
        estimate=share.estimate,
        low=share.low,
        high=share.high,
        within=0.05,
        of_lambda="",
        met=met,
        verdict="",
        reasons=f"the trend flags {flagged:.0%}",
        eps=steps.eps,
        nbeta=steps.nbeta,
        gamma=steps.gamma,
        chains=CHAINS,
        steps=(steps.burn_in + steps.draws) * steps.thin,
    )
