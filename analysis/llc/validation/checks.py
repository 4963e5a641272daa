"""A check of the LLC estimator: what it has to give, what it gave, and whether that is near enough.

What is estimated is a loss of `models`, by `any_model.llc`. Singular losses are estimated at eps and at eps / 2 and
extrapolated linearly to eps = 0; their burn-in is two relaxations of a flat direction, 2 / (eps gamma) steps each (a
tenth with friction .1), and four more are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from icl_lab.analysis.llc.any_model import llc
from icl_lab.analysis.llc.estimate import LEVEL, NO_INTERVAL, Estimate
from icl_lab.analysis.llc.validation.models import KnownLoss, made
from icl_lab.analysis.llc.validation.quadrature import Answer
from icl_lab.analysis.llc.validation.targets import Target
from icl_lab.src import intervals
from icl_lab.src.checks import require
from icl_lab.store.llc_rows import BETWEEN, NONE

ERRORS = 3.0  # standard errors, those of answer and estimate together, within which an estimate has to be
WITHIN, OF_LAMBDA = 0.05, 0.1  # of the answer, and of lambda
RELAXATIONS = 2.0  # of a flat direction, in a burn-in
FRICTION = 0.1  # of sghmc: what divides its relaxation

Answers = Mapping[tuple[str, float, float], Target]  # by formula, nbeta and gamma


class Steps(NamedTuple):
    """The settings of chains: their step and length, how a step is made, and the samples in it (None, all)."""

    eps: float
    nbeta: float
    gamma: float
    chains: int
    burn_in: int = 200
    draws: int = 600
    thin: int = 20
    sampler: str = "sgld"
    batch_size: int | None = None


class Check(NamedTuple):
    """A row of the table: lambda, the answer at (nbeta, gamma), the estimate, and whether the target was met.

    coefficient, multiplicity: lambda at w*; answer: what the estimate has to give, with its error, and by what; gap:
    answer / lambda - 1. low, high: the 95 % t interval over chains. met: within `within` of the answer and `ERRORS`
    standard errors, and within a tenth of lambda where of_lambda asks for it (it says why not, else). verdict, reasons:
    those of the estimate, at the smaller eps. steps: of a chain, burn-in included.
    """

    section: str
    case: str
    sampler: str
    coefficient: float
    multiplicity: int
    answer: float
    answer_error: float
    by: str
    gap: float
    estimate: float
    low: float
    high: float
    within: float
    of_lambda: str
    met: bool
    verdict: str
    reasons: str
    eps: float = math.nan
    nbeta: float = math.nan
    gamma: float = math.nan
    chains: int = 0
    steps: int = 0


class Found(NamedTuple):
    """What an estimator gave: the estimate of each chain [C], the verdict and the reasons against it."""

    means: np.ndarray
    verdict: str
    reasons: str


def known_answer(answers: Answers, formula: str, nbeta: float, gamma: float) -> tuple[KnownLoss, Answer]:
    """The loss of a formula, and its answer in the table of targets; `ConfigError` if that has none."""
    row = answers.get((formula, nbeta, gamma))
    require(row is not None, f"the targets have no {formula} at nbeta {nbeta:g}, gamma {gamma:g}: make llc-targets")
    assert row is not None
    return made(formula), Answer(row.answer, row.answer_error, row.by)


def estimated(model: KnownLoss, steps: Steps, **more: Any) -> Estimate:
    """`any_model.llc` of a loss at its w*, on its data."""
    null_loss = model.null_loss if math.isfinite(model.null_loss) else None
    data = jax.tree.map(np.float32, model.data)
    settings = {"null_loss": null_loss, "friction": FRICTION} | steps._asdict() | more
    return llc(model.losses, np.asarray(model.point, np.float32), data, **settings)


def found_by(estimate: Estimate) -> Found:
    """The means of chains, and what is said of them."""
    means = estimate.settings.nbeta * estimate.excess.mean(axis=1)
    return Found(means, estimate.verdict, BETWEEN.join(estimate.reasons))


def at_its_eps(
    section: str, model: KnownLoss, steps: Steps, answer: Answer, within: float = WITHIN, **more: Any
) -> Check:
    """The check of one estimate."""
    return judged(section, model, steps, found_by(estimated(model, steps, **more)), answer, within)


def extrapolated(section: str, model: KnownLoss, pair: Sequence[Steps], answer: Answer) -> Check:
    """2 m(eps / 2) - m(eps) of pairs of chains: the error of SGLD is linear in eps."""
    coarse, fine = (found_by(estimated(model, steps)) for steps in pair)
    return judged(section, model, pair[1], fine._replace(means=2 * fine.means - coarse.means), answer)


def halved(eps: float, nbeta: float, gamma: float, chains: int, sampler: str = "sgld") -> tuple[Steps, Steps]:
    """Settings with a long enough burn-in at eps and at eps / 2."""
    burn_in, draws, friction = 300, 600, FRICTION if sampler == "sghmc" else 1.0
    sizes = [(size, math.ceil(RELAXATIONS * 2 * friction / (size * gamma) / burn_in)) for size in (eps, eps / 2)]
    one, half = (Steps(size, nbeta, gamma, chains, burn_in, draws, thin, sampler) for size, thin in sizes)
    return one, half


def chains_for(model: KnownLoss) -> int:
    """As many as estimate lambda to about 1 %: each parameter of a chain counts for as much."""
    return max(16, 1024 // len(model.point))


def judged(section: str, model: KnownLoss, steps: Steps, found: Found, answer: Answer, within: float = WITHIN) -> Check:
    """The check of what was found; chains that diverged have no estimate, which meets nothing."""
    interval, error = NO_INTERVAL, math.nan
    if np.isfinite(found.means).all():
        interval = intervals.of(found.means, "linear", LEVEL)
        error = float(found.means.std(ddof=1)) / math.sqrt(len(found.means))
    of_lambda = near_lambda(model, answer, interval.estimate)
    return Check(
        section=section,
        case=model.name,
        sampler=steps.sampler,
        coefficient=model.local.value,
        multiplicity=model.local.multiplicity,
        answer=answer.value,
        answer_error=answer.error,
        by=answer.by,
        gap=answer.value / model.local.value - 1 if model.local.value else math.nan,
        estimate=interval.estimate,
        low=interval.low,
        high=interval.high,
        within=within,
        of_lambda=of_lambda,
        met=meets(interval.estimate, error, answer, within) and of_lambda != "missed",
        verdict=found.verdict,
        reasons=found.reasons,
        eps=steps.eps,
        nbeta=steps.nbeta,
        gamma=steps.gamma,
        chains=steps.chains,
        steps=(steps.burn_in + steps.draws) * steps.thin,
    )


def meets(estimate: float, error: float, answer: Answer, within: float) -> bool:
    """Whether an estimate of this standard error is near enough; not if a number is not finite."""
    if not all(map(math.isfinite, (estimate, error, answer.value))):
        return False
    off = abs(estimate - answer.value)
    return off <= within * abs(answer.value) and off <= ERRORS * math.hypot(error, answer.error)


def near_lambda(model: KnownLoss, answer: Answer, estimate: float) -> str:
    """Whether the estimate is within a tenth of lambda: "met" or "missed", or why that is not asked.

    It is asked where the multiplicity is 1 and the answer itself is near enough that 5 % more stay within the tenth.
    """
    value, multiplicity = model.local
    if not math.isfinite(value) or value == 0:
        return "not asked: no lambda"
    if multiplicity > 1:
        return f"not asked: multiplicity {multiplicity}"
    gap = answer.value / value - 1
    if abs(gap) > OF_LAMBDA - WITHIN:
        return f"not asked: gap {gap:+.0%}"
    return "met" if abs(estimate / value - 1) <= OF_LAMBDA else "missed"


def with_verdict(check: Check, *allowed: str) -> Check:
    """The same, which is met if the verdict is one of these, and the number is near the answer unless there is none."""
    if allowed == (NONE,):
        return check._replace(met=check.verdict == NONE, of_lambda="not asked: there is no estimate")
    is_near = abs(check.estimate - check.answer) <= check.within * abs(check.answer)
    return check._replace(met=is_near and check.verdict in allowed)
