"""How long packs take, roughly: what steps, compilations and analyses cost on the machine of docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence

from configs.registry import family_of
from configs.run import RunConfig
from sweeps.plan import Pack

START, COMPILE, FINISH = 4.0, 5.0, 0.6  # seconds: of a process, of a static shape, of a cell's analyses


def step_seconds(config: RunConfig) -> float:
    """A training step of one run on one core."""
    return config.training.batch_size * family_of(config).task_seconds(config)


def seconds(packs: Sequence[Pack], cores: int) -> float:
    """What packs take on so many cores."""
    if not packs:
        return 0.0
    training = sum(pack.steps * step_seconds(pack.shape) for pack in packs)
    shapes = len({pack.shape for pack in packs})
    finishing = FINISH * sum(len(pack.cells) for pack in packs)
    return START + COMPILE * shapes + (training + finishing) / cores
