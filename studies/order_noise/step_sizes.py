"""Measures on models trained in an order of the context: the step sizes that they take at its positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.loaded_run import load_run
from icl_lab.analysis.position_steps import agreement as agreement_with
from icl_lab.analysis.position_steps import position_steps
from icl_lab.baselines.position_weighted import best_step_sizes
from icl_lab.families.regression.task import position_steps_batch
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_json
from icl_lab.store.rundir import read_config
from icl_lab.studies.runs import summary_part

Measure = Callable[[Path], float]


@lru_cache(maxsize=64)
def steps_of(run: Path) -> dict[str, Any]:
    """`analysis.position_steps` of a run."""
    return position_steps(load_run(run))


def variance_explained(run: Path) -> float:
    """R^2 of the model's predictions on one step with a step size for each position."""
    return float(steps_of(run)["variance_explained"])


def agreement(reading: str) -> Measure:
    """R^2 of the step sizes of a reading, "regressed" or "differentiated", with those predicted, over positions."""
    return lambda run: float(steps_of(run)[f"{reading}_r2"])


def agreement_of_order(ordering: str) -> Measure:
    """R^2, with the step sizes predicted for a run's training, of those that are predicted for another order."""

    def measure(run: Path) -> float:
        config = read_config(run)
        ordered = position_steps_batch(config, replace(config.train, ordering=ordering))
        return agreement_with(best_step_sizes(ordered).step_sizes, np.array(steps_of(run)["predicted"]))["r2"]

    return measure


def spread(run: Path) -> float:
    """The standard deviation over positions of the step sizes read, over their mean."""
    step_sizes = np.array(steps_of(run)["regressed"])
    return float(step_sizes.std() / abs(step_sizes.mean()))


def beyond_the_prediction(run: Path) -> float:
    """The model's loss less that of the step sizes predicted for its training, over one tuned step's, same tasks."""
    headline, known = summary_part(run, "headline"), read_json(run / layout.COMPARATORS)
    with expecting(run / layout.COMPARATORS, "the losses of baselines"):
        predicted = known["gd_positions_trained"]["loss"]
    return float((headline["tf_loss"] - predicted) / headline["gd_loss"])
