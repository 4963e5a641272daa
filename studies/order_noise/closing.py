"""Does the gap to the closed form close? What `twolayer` gains by order, compared with a step size for each position.

A seed has a run for each order of the training's contexts and one in random order. On the test tasks, each run is
compared with one step of gradient descent whose step size at each position is best for its training: on contexts in
the training's order, and in random order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.loaded_run import load_run
from icl_lab.baselines.position_weighted import expected_loss, moments
from icl_lab.families.regression.task import make_test_batch
from icl_lab.store.rundir import read_config
from icl_lab.studies.order_noise.step_sizes import steps_of
from icl_lab.studies.runs import has_trained


class Losses(NamedTuple):
    """Losses on the test tasks in one order: the model's, those of the best step sizes, and of those read from it."""

    model: float
    best: float
    read: float


@lru_cache(maxsize=256)
def losses_of(run: Path) -> dict[str, Losses]:
    """Losses on contexts in the order of the training and in random order, by "own" and "random"."""
    loaded, steps = load_run(run), steps_of(run)
    config = loaded.config
    found = {}
    for name, ordering in (("own", config.train.ordering), ("random", "random")):
        batch = make_test_batch(replace(config, eval=replace(config.eval, ordering=ordering)))
        predictions = np.asarray(loaded.predict(batch), np.float64)
        model = 0.5 * float(np.mean((predictions - np.asarray(batch.y_query, np.float64)) ** 2))
        found[name] = Losses(
            model, *(float(expected_loss(moments(batch), np.array(steps[of]))) for of in ("predicted", "regressed"))
        )
    return found


def _ordering(run: Path) -> str:
    return str(read_config(run).train.ordering)


def changes(runs: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Measured and predicted changes of the loss: of each order, tested in it and in random order, over random order.

    The prediction is of the same tasks: both losses are those of the best step sizes.
    """
    ordered = [run for run in runs if _ordering(run) != "random"]
    (random,) = (run for run in runs if _ordering(run) == "random")
    control = losses_of(random)["random"]
    pairs = [losses_of(run)[tested] for run in ordered for tested in ("own", "random")]
    measured = np.array([one.model / control.model - 1 for one in pairs])
    return measured, np.array([one.best / control.best - 1 for one in pairs])


def have_trained(runs: Sequence[Path]) -> float:
    """1 if all of a seed's runs have trained, else 0."""
    return float(all(has_trained(run) for run in runs))


def share_of_the_prediction(runs: Sequence[Path]) -> float:
    """The slope of measured on predicted changes, without intercept: 1 where order does what theory derives."""
    measured, predicted = changes(runs)
    return float(measured @ predicted / (predicted @ predicted))


def excess(runs: Sequence[Path]) -> float:
    """The loss over that of the best step sizes, less 1: the mean over orders, each tested in its own."""
    ordered = [losses_of(run)["own"] for run in runs if _ordering(run) != "random"]
    return float(np.mean([one.model / one.best - 1 for one in ordered]))


def share_of_the_steps(runs: Sequence[Path]) -> float:
    """How much of that excess the step sizes read from the model have: the rest is no step size's."""
    ordered = [losses_of(run)["own"] for run in runs if _ordering(run) != "random"]
    return float(sum(one.read - one.best for one in ordered) / sum(one.model - one.best for one in ordered))
