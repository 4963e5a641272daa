"""Is a change of the LLC more than one of curvature, of the loss or of the learning rate? Each change with its nulls.

An LLC estimated at one nbeta and gamma changes over training without being more than something simpler:

    nothing      0, up to the chains' noise;
    curvature    the change of the quadratic prediction (`analysis.llc.prediction`), which the Hessians at both ends
                 give alone. A change within a tenth of it, or .05, is one of curvature, as in `analysis.llc.verdict`;
    loss         the change of a function of the loss that runs of other seeds follow (`of_loss`);
    rate         none between what both ends become once the learning rate falls to 0 (`annealed`).

Checkpoints need not be minima, for the prediction has a part of the slope; but chains must have sampled: not one that
escaped, has not mixed, or is saturated.

The first half of the chains finds where stages begin and end, and the second half is tested, so that no change is
tested on the noise that chose it. Tests are Welch's t over chains, at the two-sided level of three standard errors of a
normal, .0027, which eight chains against eight reach at 3.6 standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.development.of_loss import OfLoss
from icl_lab.analysis.llc.verdict import AT_LEAST, WITHIN
from icl_lab.store.llc_rows import is_known, is_sampled

LEVEL = 0.0026998  # two-sided, of three standard errors of a normal
FEWEST = 4  # chains: two of each half

Row = Mapping[str, Any]


class Estimates(NamedTuple):
    """The estimates of a run at one setting: T checkpoints, C chains.

    steps, losses [T]; llc [T, C], the LLC of each chain; predicted, predicted_error [T]: what a quadratic loss would
    give; sampled [T]: whether chains drew from a posterior at w* (`store.llc_rows.is_sampled`).
    """

    steps: np.ndarray
    losses: np.ndarray
    llc: np.ndarray
    predicted: np.ndarray
    predicted_error: np.ndarray
    sampled: np.ndarray

    @property
    def finding(self) -> np.ndarray:
        """The chains that find where stages begin and end [T, C / 2]."""
        return self.llc[:, : self.llc.shape[1] // 2]

    @property
    def testing(self) -> np.ndarray:
        """The chains on which changes are tested [T, C / 2]."""
        return self.llc[:, self.llc.shape[1] // 2 :]

    def at(self, chosen: np.ndarray) -> Estimates:
        """Those of some checkpoints."""
        return Estimates(*(values[chosen] for values in self))


class Change(NamedTuple):
    """A change of the LLC at one setting; what its nulls say it is, and the p of its differences from these.

    delta_llc, delta_llc_se: of the testing chains. delta_of_loss, delta_annealed: nan, and their p None, where no other
    seeds are given or no branch was trained. p is 1 where a null cannot be computed, so that nothing is claimed against
    it.
    """

    setting: str
    delta_loss: float
    delta_llc: float
    delta_llc_se: float
    delta_predicted: float
    delta_of_loss: float
    delta_annealed: float
    p_zero: float
    p_predicted: float
    p_of_loss: float | None
    p_annealed: float | None
    sampled: bool

    @property
    def differs(self) -> bool:
        """Whether both ends are sampled, and the change differs from all of its nulls."""
        asked = [p for p in (self.p_of_loss, self.p_annealed) if p is not None]
        return self.sampled and all(is_known(p) and p < LEVEL for p in (self.p_zero, self.p_predicted, *asked))


def estimates_of(rows: Sequence[Row], chains: Sequence[np.ndarray]) -> Estimates:
    """Rows of an LLC table at one setting, with the LLC of each of their chains."""
    columns = ("step", "loss", "predicted", "predicted_error")
    steps, losses, predicted, errors = (np.array([row.get(name, math.nan) for row in rows], float) for name in columns)
    sampled = np.array([is_sampled(row) for row in rows], bool)
    return Estimates(steps, losses, np.stack(chains), predicted, errors, sampled)


def change(
    setting: str,
    of: Estimates,
    start: int,
    end: int,
    of_loss: OfLoss | None = None,
    annealed: tuple[np.ndarray, np.ndarray] | None = None,
) -> Change:
    """The change between two checkpoints, by their places in the estimates.

    annealed: the LLC of each chain at the ends of both branches; empty where a branch's chains did not sample.
    """
    samples = of.testing[start], of.testing[end]
    delta, error = float(samples[1].mean() - samples[0].mean()), math.hypot(*map(standard_error, samples))
    predicted = float(of.predicted[end] - of.predicted[start])
    off = abs(delta - predicted) - max(WITHIN * abs(predicted), AT_LEAST)
    uncertain = float(of.predicted_error[start] ** 2 + of.predicted_error[end] ** 2)
    by_loss, p_of_loss = math.nan, None
    if of_loss is not None:
        by_loss, variance = of_loss.change(float(of.losses[start]), float(of.losses[end]))
        p_of_loss = p_value(delta - by_loss, samples, variance)
    of_branches, p_annealed = math.nan, None
    if annealed is not None:
        of_branches, p_annealed = _between(annealed, delta)
    return Change(
        setting,
        float(of.losses[end] - of.losses[start]),
        delta,
        error,
        predicted,
        by_loss,
        of_branches,
        p_value(delta, samples),
        p_value(max(off, 0.0), samples, uncertain) if is_known(off) else 1.0,
        p_of_loss,
        p_annealed,
        bool(of.sampled[start] and of.sampled[end]),
    )


def _between(branches: tuple[np.ndarray, np.ndarray], delta: float) -> tuple[float, float]:
    """The change between the ends of two branches, and its p: 1 unless it has the direction of `delta`."""
    if any(len(branch) == 0 for branch in branches):
        return math.nan, 1.0
    between = float(branches[1].mean() - branches[0].mean())
    return between, p_value(between, branches) if between * delta > 0 else 1.0


def standard_error(chains: np.ndarray) -> float:
    """The standard error of the mean over chains [C]."""
    return float(chains.std(ddof=1) / math.sqrt(len(chains)))


def p_value(difference: float, samples: Sequence[np.ndarray], variance: float = 0.0) -> float:
    """The two-sided p of a difference of means over chains by Welch's t; 1 where it is not defined.

    variance: what a null's own uncertainty adds, known without error.
    """
    from scipy.special import stdtr

    variances = [standard_error(sample) ** 2 for sample in samples]
    total = sum(variances) + variance
    if not (math.isfinite(difference) and math.isfinite(total) and total > 0):
        return 1.0
    spread = sum(own**2 / (len(sample) - 1) for own, sample in zip(variances, samples, strict=True))
    freedom = total**2 / spread if spread > 0 else math.inf
    return float(2 * stdtr(min(freedom, 1e9), -abs(difference) / math.sqrt(total)))


def claimed(changes: Sequence[Change]) -> bool:
    """Whether a stage is claimed: at every setting, of which there is one at least, and in one direction."""
    directions = {math.copysign(1, one.delta_llc) for one in changes}
    return len(directions) == 1 and all(one.differs for one in changes)


def nearest(steps: Iterable[float], step: float) -> int:
    """The place of the one of these steps that is nearest in log step."""
    return int(np.abs(np.log1p(np.fromiter(steps, float)) - math.log1p(step)).argmin())


def sampled_at_all(rows: Mapping[str, Sequence[Row]]) -> list[int]:
    """The steps of the checkpoints that are sampled at all of these settings; none where there is no setting."""
    if not rows:
        return []
    sampled = [{row["step"] for row in estimates if is_sampled(row)} for estimates in rows.values()]
    return sorted(set.intersection(*sampled))
