"""What the claims on one layer's solutions measure: of a training on the population loss, by its seed, and of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

from icl_lab.analysis.loaded_run import load_run
from icl_lab.analysis.plateau import Divergence, Escape, escape, factors_escape, halfway
from icl_lab.analysis.solutions import solution
from icl_lab.src import one_layer, solutions
from icl_lab.src.prng import key
from icl_lab.src.solutions import DESCENT, MIXED
from icl_lab.studies.solutions import population
from icl_lab.studies.solutions.population import PRESET, config_of, found, trained

# D -> N*: the mixed point is a minimum where there are more pairs, by its Hessian (`solutions.least_pairs_of_mixed`)
LEAST_PAIRS = {3: 14.5, 4: 37.0, 5: 67.9, 6: 107.0}
DIM, PAIRS = 2, 10  # where settings of training are compared
SGD = "sgd"

OfSeed = Callable[[int], float]


def finds(dim: int, pairs: int, wanted: str = MIXED, arm: str = PRESET) -> OfSeed:
    """1 where the training of a seed finds this solution, else 0."""
    return lambda seed: float(found(dim, pairs, arm, seed).solution == wanted)


def is_known(seed: int) -> float:
    """1 where a training ends at one of the solutions or on a plateau, 0 where it is still moving."""
    return float(found(DIM, PAIRS, PRESET, seed).solution != solutions.MOVING)


@lru_cache(maxsize=4096)
def derived(arm: str, seed: int) -> Divergence:
    """When the flow of fourth order from a training's initial weights ends the first plateau, and in which part."""
    config = config_of(DIM, PAIRS, arm)
    params = population.initial(config, arm, key(seed))
    layer = {name: np.asarray(part) for name, part in params[f"{config.model.layer_names[0]}/attention"].items()}
    return factors_escape(layer, config.data, config.training.lr)


def as_derived(arm: str, from_seed: OfSeed = lambda seed: seed) -> OfSeed:
    """1 where a training finds gradient descent if, and only if, the flow from these weights diverges in the trace."""

    def measure(seed: int) -> float:
        descends = found(DIM, PAIRS, arm, seed).solution == DESCENT
        return float(descends != derived(arm, int(from_seed(seed))).rank_one)

    return measure


def another(seed: int) -> float:
    """The seed beside one, of the same block."""
    return seed ^ 1


def over_derived(from_seed: OfSeed = lambda seed: seed) -> OfSeed:
    """With SGD: the step at which a training leaves the plateau of zero, over the one derived from initial weights."""

    def measure(seed: int) -> float:
        return left_zero(SGD, seed).step / derived(SGD, int(from_seed(seed))).step

    return measure


def distance_from_derived(from_seed: OfSeed = lambda seed: seed) -> OfSeed:
    """The relative distance of these two steps."""
    return lambda seed: abs(over_derived(from_seed)(seed) - 1)


def left_zero(arm: str, seed: int) -> Escape:
    """When a training is halfway from the loss of predicting zero to that of the plateau of rank one."""
    setting = one_layer.setting_of(config_of(DIM, PAIRS, arm).data)
    levels = (one_layer.loss_of(setting, point(setting)) for point in (solutions.zero, solutions.rank_one))
    steps, losses = records(arm, seed)
    return escape(steps, losses, halfway(*levels), for_good=False)


def left_rank_one(arm: str, seed: int) -> Escape:
    """When a training is halfway from the loss of the plateau of rank one to that of the mixed point."""
    setting = one_layer.setting_of(config_of(DIM, PAIRS, arm).data)
    mixed = solutions.mixed(setting)
    assert mixed is not None, "at D = 2 it is a minimum at every N"
    levels = one_layer.loss_of(setting, solutions.rank_one(setting)), one_layer.loss_of(setting, mixed)
    steps, losses = records(arm, seed)
    return escape(steps, losses, halfway(*levels), for_good=False)


def records(arm: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The steps of a training's records, and its losses there."""
    block = trained(DIM, PAIRS, arm, seed // population.BLOCK)
    return block.steps, block.losses[:, seed % population.BLOCK]


def run_finds(wanted: str) -> Callable[[Path], float]:
    """1 where a run on sampled batches has found this solution, else 0."""
    return lambda run: float(solution(load_run(run)).solution == wanted)
