"""Where the stages of a curve begin and end, found by half of its chains; and how many of them chance makes.

`false_stages` simulates whole curves of which a null is true (the quadratic prediction, or a function of the loss) with
the noise of the run's own chains, finds their stages and tests them by the rule of the run itself. What is claimed
there is false.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icl_lab.analysis.development import nulls
from icl_lab.analysis.development.milestones import DRAWS, Fit, Milestone, Stage, fit, milestones, stages
from icl_lab.analysis.development.nulls import Estimates
from icl_lab.analysis.development.of_loss import OfLoss
from icl_lab.analysis.development.smooth_curve import LEAST


class Found(NamedTuple):
    """A fitted curve with its milestones and the stages between these; a stage's ends are places of checkpoints."""

    fit: Fit
    milestones: list[Milestone]
    stages: list[tuple[Stage, int, int]]


def found_stages(of: Estimates, draws: int = DRAWS) -> Found | None:
    """The stages of the finding chains at sampled checkpoints; None with fewer of these than a fit takes.

    A stage begins and ends at the sampled checkpoints that are nearest to its milestones; one between a checkpoint and
    itself is none.
    """
    chosen = np.flatnonzero(of.sampled)
    if len(chosen) < LEAST:
        return None
    steps, finding = of.steps[chosen], of.finding[chosen]
    fitted = fit(steps, finding.mean(axis=1), np.array([nulls.standard_error(chains) for chains in finding]))
    kept = milestones(fitted, count=draws)
    between = stages(fitted, kept, of.losses[chosen]) if kept else []
    ends = [(_place(chosen, steps, one.start), _place(chosen, steps, one.end)) for one in between]
    parts = [(one, start, end) for one, (start, end) in zip(between, ends, strict=True) if start != end]
    return Found(fitted, kept, parts)


def largest_change(of: Estimates) -> tuple[int, int] | None:
    """The sampled checkpoints of the least and of the largest LLC of the finding chains, in order of step.

    Every curve has it, also one without a plateau; None with fewer than two sampled checkpoints.
    """
    chosen = np.flatnonzero(of.sampled)
    if len(chosen) < 2:
        return None
    means = of.finding[chosen].mean(axis=1)
    start, end = sorted((int(chosen[means.argmin()]), int(chosen[means.argmax()])))
    return start, end


def _place(chosen: np.ndarray, steps: np.ndarray, step: float) -> int:
    return int(chosen[nulls.nearest(steps, step)])


def false_stages(
    of: Estimates,
    truth: np.ndarray,
    scatter: float,
    of_loss: OfLoss | None,
    count: int,
    rng: np.random.Generator,
) -> float:
    """The share of simulated curves of which something is claimed where LLC(t) = truth(t) + scatter, by noisy chains.

    A stage, or the largest change.

    truth [T]: at sampled checkpoints of `of`, whose chains' spread is that of the simulated ones; scatter: the standard
    deviation of checkpoints about it. No branches are simulated, so that the share is an upper bound with them.
    """
    known = of.at(of.sampled)
    spread = known.llc.std(axis=1, ddof=1)[:, None]
    claims = 0
    for _ in range(count):
        places = truth + scatter * rng.standard_normal(len(truth))
        llc = places[:, None] + spread * rng.standard_normal(known.llc.shape)
        drawn = known._replace(llc=llc)
        found, largest = found_stages(drawn, draws=1), largest_change(drawn)
        ends = [(start, end) for _, start, end in (found.stages if found else [])] + ([largest] if largest else [])
        claims += any(nulls.change("", drawn, start, end, of_loss).differs for start, end in ends)
    return claims / count
