"""Of one trained layer that is applied again and again."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from analysis import rollout
from analysis.weights import products
from baselines.gd_step import one_step_size
from curricula.context import headline_batch
from report.measures.trained import Measure, subject_of

ROLLED = 50  # applications


@lru_cache(maxsize=64)
def rolled_out(run: Path, damping: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Half the squared errors [K, B] of rolled-out layers and the unstable tasks [B], of the run and of descent."""
    subject = subject_of(run)
    batch = headline_batch(subject.config)
    kq, pv = (part[0, 0].astype(np.float32) for part in products(subject.config, subject.params))
    descent = rollout.gd_products(subject.config.data.dim, one_step_size(subject.config.data))
    found = {}
    for name, pair in (("tf", (kq, pv)), ("gd", descent)):
        rolled = rollout.rollout(*pair, batch, ROLLED, damping)
        predictions = np.asarray(rolled.predictions, np.float64)
        errors = np.where(np.isfinite(predictions), predictions, np.inf) - np.asarray(batch.y_query, np.float64)
        found[name] = (0.5 * errors**2, np.asarray(rolled.unstable))
    return found


def furthest(damping: float) -> Measure:
    """Trimmed means of the rolled-out transformer over gradient descent's, where they are furthest from 1."""

    def measure(run: Path) -> float:
        found = rolled_out(run, damping)
        ratios = rollout.trimmed_mean(found["tf"][0]) / rollout.trimmed_mean(found["gd"][0])
        return float(ratios[np.argmax(np.abs(np.log(ratios)))])

    return measure


def end(damping: float) -> Measure:
    """The trimmed mean after all applications."""
    return lambda run: float(rollout.trimmed_mean(rolled_out(run, damping)["tf"][0])[-1])


def unstable(damping: float, whose: str = "tf") -> Measure:
    """The share of tasks whose updates grow."""
    return lambda run: float(rolled_out(run, damping)[whose][1].mean())


def lowest_mean(damping: float) -> Measure:
    """The smallest mean over tasks of any number of applications, before those that diverge are all of it."""
    return lambda run: float(np.nanmin(rolled_out(run, damping)["tf"][0].mean(axis=1)))
