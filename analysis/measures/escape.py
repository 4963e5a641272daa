"""When a run leaves its initial plateau, read from its losses over training.

A run has left the plateau at the first record from which its loss is, and stays, below halfway between that of
predicting zero and that of the algorithm it comes to be. On a plateau of exponential growth, where an overlap with
the solution grows as scale * exp(rate * step), that is at log(1 / scale) / rate plus a constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.store.rundir import read_metrics

FIELDS = ("eval_gd_loss",)  # of the records, besides the loss


class Escape(NamedTuple):
    """An escape at `step`, give or take `half_width`: half the distance of the two records between which it is.

    Infinite, with no width, if there is none by the last record.
    """

    step: float
    half_width: float


NEVER = Escape(float("inf"), 0.0)


def halfway(zero_loss: float, learnt_loss: float, share: float = 0.5) -> float:
    """The loss at a share of the way from the plateau's, that of predicting zero, to the one that is learnt."""
    return zero_loss + share * (learnt_loss - zero_loss)


def escape(
    steps: Sequence[float] | np.ndarray, losses: Sequence[float] | np.ndarray, below: float, for_good: bool = True
) -> Escape:
    """The first step from which the losses [T] are below a bound: `for_good`, or at all; NEVER if there is none.

    It is halfway between the record before and the first one that is below; a loss that is not a number is not below.
    Below from the first record on, the escape is there, with no width. On a noiseless plateau that ends on another one,
    noise of the second makes "for good" late: there the first time is meant.
    """
    is_below = np.asarray(losses, float) < below
    if not is_below.any() or (for_good and not is_below[-1]):
        return NEVER
    first = int(np.flatnonzero(~is_below)[-1]) + 1 if for_good and not is_below.all() else int(np.argmax(is_below))
    if first == 0:
        return Escape(float(steps[0]), 0.0)
    low, high = float(steps[first - 1]), float(steps[first])
    return Escape((low + high) / 2, (high - low) / 2)


def escape_in(
    records: Sequence[Mapping[str, Any]], zero_loss: float, share: float = 0.5, for_good: bool = True
) -> Escape:
    """The same of a run's metrics, whose `eval_gd_loss` is what is learnt; non-finite values are null there."""
    losses = [float("nan") if record["eval_loss"] is None else float(record["eval_loss"]) for record in records]
    below = halfway(zero_loss, float(records[-1]["eval_gd_loss"]), share)
    return escape([float(record["step"]) for record in records], losses, below, for_good)


def escape_of(run: Path, zero_loss: float, share: float = 0.5, for_good: bool = True) -> Escape:
    """The escape of a run with a baseline of gradient descent from a plateau of this loss."""
    return escape_in(read_metrics(run, FIELDS), zero_loss, share, for_good)
