"""A grid of settings: the product of its axes is the planned points of a sweep, each with the config it means."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from configs.dependencies import with_dependencies
from configs.family import AUTO
from configs.overrides import resolve, set_values
from configs.registry import family_of, family_of_model, models
from configs.run import RunConfig
from runners.flags import preset_of_depth
from src.checks import ConfigError, require

MOST_POINTS = 100_000  # of a plan; more are a slip of the finger, and no folder holds so many runs
# settings that would reach nothing, or make rows that cannot be told apart -> what to use instead
RESERVED = {
    "preset": "; every model has its default one",
    "data_seed": ": --seeds",
    "name": ": --models",
    "plugins": ": --plugin",
}


@dataclass(frozen=True)
class Grid:
    """Models times seeds times the values of each axis of their family; "auto" leaves the model's own value.

    `settings` are config fields that are the same everywhere, by key, as text or values. With a `data_offset` tasks
    and data are those of the seed that much further on, while the initialisation is the seed's own.
    """

    models: Sequence[str] = field(default_factory=lambda: models()[:1])
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    settings: Mapping[str, Any] = field(default_factory=dict)
    data_offset: int = 0

    def __post_init__(self) -> None:
        for model in self.models:
            known = axes_of(model)
            for axis in self.axes:
                its = f"its axes are {', '.join(known)}" if known else "it has none but --models, --seeds and --steps"
                require(axis in known, f"{axis} is no axis of {model}; {its}")
        for name, values in [("models", self.models), ("seeds", self.seeds), *self.axes.items()]:
            require(len(values) > 0, f"{name} is an empty list; it needs at least one value")
        for name, instead in RESERVED.items():
            require(name not in self.settings, f"{name} is no field to set in a sweep{instead}")

    @property
    def size(self) -> int:
        """How many points it has, counted and not made."""
        return len(self.models) * len(self.seeds) * math.prod(len(values) for values in self.axes.values())

    def points(self) -> Iterator[RunConfig]:
        """The configs as asked for, the seed running fastest."""
        for model, *values in product(self.models, *self.axes.values()):
            point = dict(zip(self.axes, values, strict=True))
            config = preset_of_depth(model, "default", self.settings)
            set_values(config, self._seeds(self.seeds[0]))
            keys = axes_of(model)
            set_values(config, {keys[axis]: value for axis, value in point.items() if value != AUTO})
            set_values(config, self.settings)
            with _named(model, point):
                resolved = resolve(config)
            for seed in self.seeds:  # a thousandfold faster than to resolve each
                with _named(model, point):
                    changes: dict[str, Any] = dict(self._seeds(seed))
                    seeded = with_dependencies(replace(resolved, **changes))
                yield seeded

    def _seeds(self, seed: int) -> dict[str, Any]:
        """The fields of a seed, less those that are the same everywhere."""
        fields = {"data_seed": seed + self.data_offset, "init_seed": seed}
        return {name: value for name, value in fields.items() if name not in self.settings}


def axes_of(model: str) -> dict[str, str]:
    """The axes of a model's family, each with its key in the config."""
    return {flag.name: flag.key for flag in family_of_model(model).axes}


def check_number(grids: Sequence[Grid]) -> int:
    """How many points grids have together; `ConfigError` if these are more than can be planned."""
    number = sum(grid.size for grid in grids)
    require(number <= MOST_POINTS, f"the grid has {number} rows, and a plan at most {MOST_POINTS}; plan it in parts")
    return number


@contextmanager
def _named(model: str, point: Mapping[str, Any]) -> Iterator[None]:
    """An error says of which point it is."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{model} with {_in_words(point)}: {error}" if point else str(error)) from None


def _in_words(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in point.items() if value != AUTO)


def canonical(config: RunConfig) -> RunConfig:
    """The config with the same meaning that all its synonyms share, so that they are trained once."""
    found: RunConfig = family_of(config).canonical(replace(config, preset="default"))
    return found
