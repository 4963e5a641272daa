"""Measures over training: from the metrics of a run, or from its snapshots."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from icl_lab.analysis.over_training import over_training
from icl_lab.store.metrics import read_metrics
from icl_lab.studies.algorithm_distances import Measure, compared_run
from icl_lab.studies.reproduction.measures.trained import zero_loss

LEARNT = 0.3  # a loss below the plateau at .4


def steps_until_learnt(run: Path) -> float:
    """The first logged step whose test loss is below the plateau; infinite if none is."""
    return next((float(r["step"]) for r in read_metrics(run) if _number(r["eval_loss"]) < LEARNT), float("inf"))


def steps_until_near_the_end(run: Path) -> float:
    """The first logged step whose test loss is at most 1.05 times the last."""
    losses = _losses(run)
    steps = [float(record["step"]) for record in read_metrics(run)]
    return steps[int(np.argmax(losses <= 1.05 * losses[-1]))]


def overfits(run: Path) -> float:
    """The last test loss over the last training loss."""
    last = read_metrics(run)[-1]
    return _number(last["eval_loss"]) / _number(last["train_loss"])


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
    return np.array([_number(record["eval_loss"]) for record in read_metrics(run)])


def _number(value: float | None) -> float:
    """A number from a run's metrics; null, a non-finite value, becomes infinite."""
    return float("inf") if value is None else float(value)


@lru_cache(maxsize=64)
def at_snapshots(run: Path) -> dict[str, np.ndarray]:
    """The columns of `analysis.over_training`, of a run that kept snapshots."""
    rows = over_training(compared_run(run))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def onset_of_copying(run: Path) -> float:
    """The step at which a tenth of the copying is there over that at which a tenth of the learning is.

    Copying goes from the sensitivity to the next token at the start to that at the end; learning from the loss of
    predicting zero, the plateau's, to the last. Infinite if the layer does not come to copy (the next token's is not
    twice the others'), nan if the loss stays on the plateau.
    """
    columns = at_snapshots(run)
    if not (columns["tf_loss"] < LEARNT).any():
        return float("nan")
    if columns["next"][-1] < 2 * columns["other"][-1]:
        return float("inf")
    copying, learning = (
        _first_tenth(columns["step"], columns[name], start)
        for name, start in (("next", columns["next"][0]), ("tf_loss", zero_loss(run)))
    )
    return copying / learning


def _first_tenth(steps: np.ndarray, values: np.ndarray, start: float) -> float:
    """The first step at which a tenth of the way from the start to the last value is made."""
    return float(steps[np.argmax((values - start) / (values[-1] - start) >= 0.1)])
