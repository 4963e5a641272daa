"""Measures of plateaus: when runs escape, and what that is over the closed forms of the same initial weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icl_lab.analysis import algorithm_distance, plateau
from icl_lab.analysis.plateau import escape_of
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import evaluation_context
from icl_lab.src.data_config import DataConfig
from icl_lab.store.metrics import read_metrics
from icl_lab.store.rundir import read_config
from icl_lab.studies.algorithm_distances import compared_run, cosines
from icl_lab.studies.curve_rows import ABOVE, Curve, Series

Measure = Callable[..., float]

ADAM_EPSILON = 1e-8  # optax.scale_by_adam's
DIRECT = 450  # steps by which a run of the default rate has learnt, if it stays on no second plateau


@lru_cache(maxsize=64)
def _zero_loss(data: DataConfig, config: RegressionConfig) -> float:
    targets = np.asarray(evaluation_context(config).batch.y_query, np.float64)
    return float(0.5 * np.mean(targets**2))


def zero_loss(run: Path) -> float:
    """The loss of predicting zero on the tasks of a run's records."""
    config = read_config(run)
    return _zero_loss(config.data, config)


@lru_cache(maxsize=1024)
def left(run: Path) -> float:
    """The step at which a run leaves the initial plateau: 1/(2D) of the way to gradient descent's loss is first made.

    That is half of what one direction of the inputs gives. Infinite if it never is.
    """
    return escape_of(run, zero_loss(run), 1 / (2 * read_config(run).data.dim), for_good=False).step


@lru_cache(maxsize=1024)
def learnt(run: Path) -> float:
    """The step at which half of the way is made, which one direction of the inputs does not give."""
    return escape_of(run, zero_loss(run)).step


def deviation(run: Path) -> float:
    """The standard deviation of initial weights, (init_scale / layers / fan-in)^1/2."""
    config = read_config(run)
    return math.sqrt(config.model.init_scale / config.model.num_layers / config.architecture.width)


def exponent(run: Path, other: Path) -> float:
    """-d log step / d log deviation between two runs: 2 is one over the scale squared, 0 no dependence."""
    return math.log(left(run) / left(other)) / math.log(deviation(other) / deviation(run))


# --- compared with closed forms ---


def steps_of_a_factor_e(run: Path) -> float:
    """1 / log(1 + lr lambda): the steps in which merged matrices grow by a factor e."""
    config = read_config(run)
    return 1 / math.log1p(config.training.lr * plateau.growth_rate(config.data))


def slope_over_derived(run: Path, other: Path) -> float:
    """The slope of the escape's step on log(1 / deviation) between two runs, over the derived one."""
    slope = (left(run) - left(other)) / math.log(deviation(other) / deviation(run))
    return slope / steps_of_a_factor_e(run)


@lru_cache(maxsize=512)
def derived(run: Path) -> plateau.Divergence:
    """When a run leaves, in closed form from the initial weights: merged, or the flow of four factors.

    Under Adam the latter at the rate lr / epsilon, which is Adam's where gradients are far below epsilon.
    """
    loaded = compared_run(run)
    config, weights = loaded.config, _initial(run)
    if config.model.merged:
        share = 1 / (2 * config.data.dim)
        return plateau.Divergence(plateau.merged_escape(weights, config.data, config.training.lr, share), False)
    adam = config.training.optimizer == "adamw"
    return plateau.factors_escape(weights, config.data, config.training.lr / (ADAM_EPSILON if adam else 1.0))


def _initial(run: Path) -> dict[str, np.ndarray]:
    """The first layer's weights before training."""
    params: Any = jax.tree.map(np.asarray, compared_run(run).untrained().params)
    weights: dict[str, np.ndarray] = params["layer_0/attention"]
    return weights


def over_derived(run: Path) -> float:
    """The step at which a run leaves over the derived one."""
    return left(run) / derived(run).step


def over_derived_of_another(run: Path) -> float:
    """The same over the step that is derived from the initial weights of the next seed."""
    loaded = compared_run(run)
    config = loaded.config
    other = replace(config, init_seed=config.init_seed + 1)
    weights: Any = jax.tree.map(np.asarray, replace(loaded, config=other).untrained().params)["layer_0/attention"]
    return left(run) / plateau.factors_escape(weights, config.data, config.training.lr).step


def distance_from_derived(run: Path) -> float:
    """|step at which a run leaves / derived step - 1|."""
    return abs(over_derived(run) - 1)


def distance_from_derived_of_another(run: Path) -> float:
    """The same from the step that is derived from the initial weights of the next seed."""
    return abs(over_derived_of_another(run) - 1)


def plateau_is_derived(run: Path) -> float:
    """1 where a run has a second plateau and the flow of its initial weights diverges in rank one, or neither; else 0.

    It has one if it learns later than 1.25 times the step at which it left the first.
    """
    return float((learnt(run) > 1.25 * left(run)) == derived(run).rank_one)


# --- two layers: gradient descent first, GD++ later ---


@lru_cache(maxsize=64)
def turned(run: Path) -> float:
    """The step from which a run is nearer to GD++ than to gradient descent for good; infinite if it never is."""
    similarities = cosines(run)
    at = algorithm_distance.turn(similarities["step"], similarities["gd"], similarities["gd_plus_plus"])
    return at.step if at else float("inf")


def turn_over_learnt(run: Path) -> float:
    """The step of the turn over that at which the run has learnt."""
    return turned(run) / learnt(run)


def lead_of_gd(run: Path) -> float:
    """Between learning and the turn: (1 - cosine with GD++) / (1 - cosine with GD), above 1 where GD is nearer.

    At the snapshot nearest to the geometric mean of the two steps; without a turn, of the first and the last.
    """
    similarities = cosines(run)
    last = min(turned(run), float(similarities["step"][-1]))
    if not learnt(run) <= last:
        return float("nan")
    at = np.argmin(np.abs(similarities["step"] - math.sqrt(learnt(run) * last)))
    return float((1 - similarities["gd_plus_plus"][at]) / (1 - similarities["gd"][at]))


# --- runs that stay ---


def learnt_by(step: float = math.inf) -> Measure:
    """1 for a run that has learnt by a step, or by the end of training."""
    return lambda run: float(learnt(run) < step)


def stays(run: Path) -> bool:
    """Whether a run stays on a second plateau: it learns later than at 1.5 times the step at which it left the first."""
    return learnt(run) > 1.5 * left(run)


def second_plateau(run: Path) -> float:
    """How far below the loss of predicting zero a run stays, in units of 1/D of gradient descent's way.

    The median of the records from 1.25 times the step at which it left the first plateau to .9 times that at which it
    has learnt, or the end.
    """
    first, last = left(run), learnt(run)
    records, zero = read_metrics(run, ("eval_gd_loss",)), zero_loss(run)
    way = zero - float(records[-1]["eval_gd_loss"])
    stays = [float(record["eval_loss"]) for record in records if 1.25 * first <= record["step"] <= 0.9 * last]
    return float(read_config(run).data.dim * (zero - np.median(stays)) / way)


def faster(run: Path, other: Path) -> float:
    """The step at which a run leaves over that of the paired run."""
    return left(run) / left(other)


# --- curves of figures ---


Place = tuple[str, str]  # a panel, and a series in it


def times(arms: Mapping[str, Place], derived_of: Mapping[str, Place]) -> Callable[[Path, str], Series]:
    """The step at which a run leaves against the deviation of its initial weights, by arm, and what is derived."""

    def curves(run: Path, name: str) -> Series:
        at, last, step = [deviation(run)], [float(read_config(run).training.steps)], left(run)
        arm = next(place for start, place in arms.items() if name.startswith(start))
        points: dict[Place, Any] = {arm: (at, [step]) if math.isfinite(step) else Curve(at, last, [ABOVE])}
        if name in derived_of:
            points[derived_of[name]] = (at, [derived(run).step])
        return points

    return curves


def turning(run: Path, name: str) -> Series:
    """Cosines of two layers over training, and the steps at which they leave the plateau and turn, at height 1."""
    similarities, panel = cosines(run), "cosine of sensitivities with the algorithm's"
    labels = {"gd": "Gradient descent", "gd_plus_plus": "GD++"}
    return {
        **{(panel, label): (similarities["step"], similarities[name]) for name, label in labels.items()},
        (panel, "leaves the plateau"): ([left(run)], [1.0]),
        (panel, "turns to GD++"): ([turned(run)], [1.0]),
    }


def shares(run: Path) -> dict[tuple[str, str], float]:
    """Whether a run has learnt by the end, and whether it did directly."""
    return {
        ("share of runs", f"learnt by step {DIRECT}"): learnt_by(DIRECT)(run),
        ("share of runs", "learnt by the end"): learnt_by()(run),
    }


def way(run: Path, name: str) -> Series:
    """How much of the way to gradient descent's loss a run has made, in units of 1/D, over training."""
    records, zero = read_metrics(run, ("eval_gd_loss",)), zero_loss(run)
    whole = (zero - float(records[-1]["eval_gd_loss"])) / read_config(run).data.dim
    made = [(zero - float(record["eval_loss"])) / whole for record in records]
    return {("", "Trained Transformer"): ([record["step"] for record in records], made)}
