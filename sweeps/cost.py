"""How long packs take, roughly: what steps, compilations and analyses cost on the machine of docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence

from configs.regression import RegressionConfig
from sweeps.plan import Pack

START, COMPILE, FINISH = 4.0, 5.0, 0.6  # seconds: of a process, of a static shape, of a cell's analyses
CHANNEL = 3.3e-9  # seconds a step, on one core, for one channel of one row of one task
INNER_LAYER = 4.0  # what a layer whose rows are all computed costs, the last, which has one, costing 1
SORTED_PAIR = 8e-8  # seconds a step to put one pair in order


def step_seconds(config: RegressionConfig) -> float:
    """A training step of one run on one core."""
    tasks, model = config.training.batch_size, config.model
    channels = 2 * model.embed_size + model.mlp_width if model.embed_size else config.token_width
    layers = 1 + INNER_LAYER * (config.model.num_layers - 1)
    sorting = SORTED_PAIR * config.data.num_pairs if config.train.ordering != "random" else 0.0
    return tasks * (CHANNEL * config.num_rows * channels * layers + sorting)


def seconds(packs: Sequence[Pack], cores: int) -> float:
    """What packs take on so many cores."""
    if not packs:
        return 0.0
    training = sum(pack.steps * step_seconds(pack.shape) for pack in packs)
    shapes = len({pack.shape for pack in packs})
    finishing = FINISH * sum(len(pack.cells) for pack in packs)
    return START + COMPILE * shapes + (training + finishing) / cores
