"""What a run depends on besides its fields: arrays that its family shares among runs, and runs that it requires."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from icl_lab.lab.configs.family import Family
from icl_lab.lab.configs.identity import array_hash, config_id
from icl_lab.lab.configs.registry import family_of
from icl_lab.lab.configs.run import RunConfig

if TYPE_CHECKING:
    import numpy as np

Config = TypeVar("Config", bound=RunConfig)


def with_dependencies(config: Config) -> Config:
    """The config with the hashes of the arrays it shares with others and the ids of the runs that it requires."""
    shared = shared_hashes(config, family_of(config).shared(config))
    requires = tuple(config_id(required) for required in required_of(config))
    same = (shared, requires) == (config.shared, config.requires)
    return config if same else replace(config, shared=shared, requires=requires)


def shared_hashes(config: RunConfig, shared: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """NAME:HASH of each shared array of a config, equal on all machines: of its `hashed_as` array, else of itself."""
    arrays = {**shared, **family_of(config).hashed_as(config)}
    return tuple(f"{name}:{array_hash(array)}" for name, array in sorted(arrays.items()))


def depends_on_nothing(config: RunConfig) -> bool:
    """Whether configs of this family share no arrays and require no runs, whatever their fields."""
    family = family_of(config)
    return (family.shared, family.required) == (Family.shared, Family.required)


def required_of(config: RunConfig) -> list[RunConfig]:
    """The configs of the runs that a run builds on."""
    return [with_dependencies(required) for required in family_of(config).required(config)]


def generation(config: RunConfig) -> int:
    """How many runs stand in a row before this one can begin."""
    return max((1 + generation(required) for required in required_of(config)), default=0)


def root(config: RunConfig) -> RunConfig:
    """The first run in the chain that a run builds on; the run itself if it requires none."""
    required = required_of(config)
    return root(required[0]) if required else config
