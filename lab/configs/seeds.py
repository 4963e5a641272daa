"""Configs that differ in their seeds alone, of which a sweep has many: only the seeds are looked at."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from icl_lab.lab.configs.run import RunConfig, check_seed

Config = TypeVar("Config", bound=RunConfig)


class Seeds(NamedTuple):
    """The seeds of a run's data and of its initialisation; each is a field, `data_seed` and `init_seed`."""

    data: int = 0
    init: int = 0


def seeds_of(config: RunConfig) -> Seeds:
    """The seeds of a config."""
    return Seeds(config.data_seed, config.init_seed)


def with_seeds(config: Config, seeds: Seeds) -> Config:
    """`dataclasses.replace` of the seeds, a hundred times faster: no other field is checked again."""
    check_seed("data_seed", seeds.data)
    check_seed("init_seed", seeds.init)
    copy = object.__new__(type(config))
    vars(copy).update(vars(config), data_seed=seeds.data, init_seed=seeds.init)
    return copy
