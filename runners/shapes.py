"""Which runs share a training, and which share a program: configs with all that does not matter set to one value."""

from __future__ import annotations

from dataclasses import replace

from src.config import ContextConfig, RunConfig


def training_part(config: RunConfig) -> RunConfig:
    """The config with all that training does not depend on set to one value: runs of equal ones train once."""
    same = ContextConfig()
    same_tasks = {"eval_tasks": 2, "headline_tasks": 2, "step_size_tasks": 2}
    return replace(config, preset="", base=same, eval=same, snapshots=False, **same_tasks)


def static_shape(config: RunConfig) -> RunConfig:
    """The training part with all that may differ within a pack set to one value."""
    part = training_part(config)
    train = replace(part.train, noise_p=0.0, noise_sigma=0.0)
    training = replace(part.training, lr=1.0)
    data = replace(part.data, num_tasks=0)
    return replace(part, data_seed=0, init_seed=0, data=data, training=training, train=train)
