"""A run to train, and which runs share a training or a program: fields that do not matter are set to one value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab.configs.family import Values
from icl_lab.lab.configs.registry import family_of
from icl_lab.lab.configs.run import RunConfig

# no effect on any step of a training
IGNORED = {
    **{"preset": "", "eval_tasks": 2, "test_tasks": 2, "snapshots": False, "keep_best": False, "log_norms": False},
    **{"stop_when": "", "patience": 0},
}
BATCHED = {
    "data_seed": 0,
    "init_seed": 0,
    "init_from": "",
    "training.lr": 1.0,
}  # may differ within a pack of any family


class Run(NamedTuple):
    """A run to train: its directory and its config."""

    directory: Path
    config: RunConfig


def training_part(config: RunConfig) -> RunConfig:
    """The config without what training does not depend on: runs with equal training parts share a training."""
    return with_values(config, {**IGNORED, **family_of(config).training_ignores})


def static_shape(config: RunConfig) -> RunConfig:
    """The training part without what may differ within a pack: runs with equal shapes share a program."""
    return with_values(training_part(config), {**BATCHED, **family_of(config).batched})


def with_values(config: RunConfig, values: Values) -> RunConfig:
    """The config with some fields replaced, by dotted name."""
    changes: dict[str, Any] = {}
    for key, value in values.items():
        section, _, field = key.rpartition(".")
        if section:
            changes[section] = replace(changes.get(section, getattr(config, section)), **{field: value})
        else:
            changes[field] = value
    return replace(config, **changes)
