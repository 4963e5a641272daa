"""Measures over training: from the metrics of a run, or from its snapshots."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from analysis.measures.over_training import over_training
from store.rundir import read_metrics
from studies.reproduction.measures.trained import Measure, compared_run

LEARNT = 0.3  # a loss below the plateau at .4


def steps_until_learnt(run: Path) -> float:
    """The first logged step whose test loss is below the plateau; infinite if none is."""
    return next((float(r["step"]) for r in read_metrics(run) if _number(r["test_loss"]) < LEARNT), float("inf"))


def overfits(run: Path) -> float:
    """The last test loss over the last training loss."""
    last = read_metrics(run)[-1]
    return _number(last["test_loss"]) / _number(last["train_loss"])


def peak(run: Path) -> float:
    """The highest test loss after the first record below the plateau."""
    losses = _losses(run)
    learnt = np.flatnonzero(losses < LEARNT)
    return float(losses[learnt[0] :].max()) if learnt.size else float("inf")


def fallen_by(step: int) -> Measure:
    """The test loss at a step, if it is a tenth below an earlier peak; else infinite."""

    def measure(run: Path) -> float:
        records = [record for record in read_metrics(run) if record["step"] <= step]
        losses = _losses(run)[: len(records)]
        learnt = np.flatnonzero(losses < LEARNT)
        rose = learnt.size > 0 and losses[learnt[0] :].max() > 1.1 * losses[-1]
        return float(losses[-1]) if rose else float("inf")

    return measure


def _losses(run: Path) -> np.ndarray:
    return np.array([_number(record["test_loss"]) for record in read_metrics(run)])


def _number(value: float | None) -> float:
    """What is not finite is null in a run's metrics."""
    return float("inf") if value is None else float(value)


@lru_cache(maxsize=64)
def at_snapshots(run: Path) -> dict[str, np.ndarray]:
    """The columns of `analysis.measures.over_training`, of a run that kept snapshots."""
    rows = over_training(compared_run(run))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def nearer_to_gd_plus_plus(run: Path) -> float:
    """The share of the snapshots below the plateau whose sensitivities are nearer to GD++'s than to descent's."""
    found = at_snapshots(run)
    learnt = found["tf_loss"] < LEARNT
    return float((found["gd_plus_plus_model_cos"] > found["gd_model_cos"])[learnt].mean()) if learnt.any() else 0.0


def copies_before_it_learns(run: Path) -> float:
    """The first step at which the sensitivity to the next token is halfway to its last, over that of learning.

    Infinite if the layer does not come to copy (the next token's is not twice the others') or the loss does not fall
    below the plateau.
    """
    found = at_snapshots(run)
    learnt = found["tf_loss"] < LEARNT
    if not learnt.any() or found["next"][-1] < 2 * found["other"][-1]:
        return float("inf")
    copied = found["next"] - found["next"][0] >= (found["next"][-1] - found["next"][0]) / 2
    return float(found["step"][np.argmax(copied)] / found["step"][np.argmax(learnt)])
