"""Of a run over its training: from its metrics, or from its snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from analysis.over_training import over_training
from report.measures.trained import subject_of
from store.rundir import read_metrics

LEARNT = 0.3  # a loss below the plateau at .4


def steps_until_learnt(run: Path) -> float:
    """The first logged step whose test loss is below the plateau; infinite if none is."""
    return next((float(r["step"]) for r in read_metrics(run) if r["test_loss"] < LEARNT), float("inf"))


def highest_loss(run: Path) -> float:
    """The largest test loss after the first fifth of the training: where a model that overfits its pool gets to."""
    losses = [record["test_loss"] for record in read_metrics(run)]
    return float(max(losses[len(losses) // 5 :]))


def last_loss(run: Path) -> float:
    """The last test loss."""
    return float(read_metrics(run)[-1]["test_loss"])


@lru_cache(maxsize=64)
def moments(run: Path) -> dict[str, np.ndarray]:
    """The columns of `analysis.over_training`, of a run that kept snapshots."""
    rows = over_training(subject_of(run))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def nearer_to_gd_plus_plus(run: Path) -> float:
    """The share of the snapshots below the plateau whose sensitivities are nearer to GD++'s than to descent's."""
    found = moments(run)
    learnt = found["tf_loss"] < LEARNT
    return float((found["gd_plus_plus_model_cos"] > found["gd_model_cos"])[learnt].mean()) if learnt.any() else 0.0


def copies_before_it_learns(run: Path) -> float:
    """The first step at which the sensitivity to the next token is halfway up, over that of the loss halfway down."""
    found = moments(run)
    copied = _first(found["step"], found["next"] - found["next"][0] >= (found["next"][-1] - found["next"][0]) / 2)
    fallen = found["tf_loss"][0] - found["tf_loss"] >= (found["tf_loss"][0] - found["tf_loss"][-1]) / 2
    return copied / _first(found["step"], fallen)


def _first(steps: Sequence[float] | np.ndarray, holds: np.ndarray) -> float:
    return float(np.asarray(steps)[np.argmax(holds)])
