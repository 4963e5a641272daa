"""Estimates how long packs take on the machine of docs/performance.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from icl_lab.lab.configs.run import RunConfig
from icl_lab.sweeps.plan import Pack, Template

START, COMPILE, FINISH = 4.0, 5.0, 0.6  # seconds per process, per static shape, per cell's analyses


def step_seconds(config: RunConfig) -> float:
    """Seconds of one training step of one run on one core."""
    return config.training.batch_size * config.task_seconds()


def seconds(packs: Sequence[Pack], width: int, cores: int) -> float:
    """Seconds that packs, each padded to `width` trainings, take on this many cores."""
    if not packs:
        return 0.0
    steps: Counter[Template] = Counter()
    for pack in packs:
        steps[pack.cells[0].template] += width * pack.cells[0].config.training.steps
    training = sum(count * step_seconds(template.shape) for template, count in steps.items())
    shapes = len({template.shape for template in steps})
    finishing = FINISH * sum(len(pack.cells) for pack in packs)
    return START + COMPILE * shapes + (training + finishing) / cores
