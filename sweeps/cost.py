"""Estimates how long packs take on the machine of docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence

from configs.registry import family_of
from configs.run import RunConfig
from sweeps.plan import Pack

START, COMPILE, FINISH = 4.0, 5.0, 0.6  # seconds per process, per static shape, per cell's analyses


def step_seconds(config: RunConfig) -> float:
    """Seconds of one training step of one run on one core."""
    return config.training.batch_size * family_of(config).task_seconds(config)


def seconds(packs: Sequence[Pack], cores: int) -> float:
    """Seconds that packs take on this many cores."""
    if not packs:
        return 0.0
    training = sum(pack.steps * step_seconds(pack.shape) for pack in packs)
    shapes = len({pack.shape for pack in packs})
    finishing = FINISH * sum(len(pack.cells) for pack in packs)
    return START + COMPILE * shapes + (training + finishing) / cores
