"""Grids of settings: the product of the axes gives the points of a sweep, each with its config."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from icl_lab.lab.configs.family import AUTO
from icl_lab.lab.configs.identity import depends_on_nothing, with_dependencies
from icl_lab.lab.configs.presets import check_given, resolve, set_values
from icl_lab.lab.configs.registry import family_of_model, models
from icl_lab.lab.configs.run import RunConfig, Seeds, seeds_of, with_seeds
from icl_lab.runners.flags import preset_for_depth
from icl_lab.src.checks import ConfigError, require
from icl_lab.sweeps.axes import INIT_FROM, RESERVED, Axes, checked_keys, keys_of_lists, point_of, read_list

OF_LAYERS = ("model.num_layers", "model.recurrent")  # what values of a preset may follow
MAX_POINTS = 100_000  # of a plan; more are surely a typing error, and too many runs for one folder


@dataclass(frozen=True)
class Grid:
    """Models times seeds times the values of each axis (`sweeps.axes`); "auto" keeps the model's own value.

    `settings` are config fields that all points share, by key. `data_offset` is added to the seed of the data, not to
    that of the initialisation. What follows the number of layers in a preset is that of each point's own number.
    """

    models: Sequence[str] = field(default_factory=lambda: models()[:1])
    axes: Axes = field(default_factory=dict)
    seeds: Sequence[int] = (0,)
    settings: Mapping[str, Any] = field(default_factory=dict)
    data_offset: int = 0
    preset: str = "default"

    def __post_init__(self) -> None:
        for name, values in (("models", self.models), ("seeds", self.seeds)):
            require(len(values) > 0, f"{name} is an empty list; it needs at least one value")
        for name, instead in RESERVED.items():
            require(name not in self.settings, f"{name} cannot be set in a sweep; use {instead}")
        for model in self.models:
            presets = family_of_model(model).models[model]
            require(self.preset in presets, f"{model} has no preset {self.preset}; it has {', '.join(presets)}")
            self.keys_of(model)

    def keys_of(self, model: str) -> dict[str, str]:
        """{name: dotted key} of the fields that are swept; raises where one cannot be."""
        return checked_keys(model, self.axes)

    @property
    def by_field(self) -> bool:
        """Whether there are axes beside those of the models' families."""
        own = {flag.name for model in self.models for flag in family_of_model(model).all_axes}
        return not own.issuperset(self.axes)

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.models) * len(self.seeds) * math.prod(len(values) for values in self.axes.values())

    def points(self) -> Iterator[RunConfig]:
        """The configs, with seeds varying fastest."""
        for config, seeds in self.series():
            yield from (with_seeds(config, each) for each in seeds)

    def series(self) -> Iterator[tuple[RunConfig, list[Seeds]]]:
        """Configs with their planned seeds; a config that shares arrays or requires runs has one seed."""
        for model in self.models:
            keys, presets = self.keys_of(model), _Presets(model, self.preset, self.settings)
            lists = keys_of_lists(model, keys.values())
            for values in product(*self.axes.values()):
                point = point_of(self.axes, values)
                chosen = {keys[name]: value for name, value in point.items()}
                chosen |= {key: read_list(chosen[key]) for key in lists}
                with _named(model, point):
                    series = [*self._of_point(chosen, presets)]
                yield from series

    def _of_point(self, chosen: Mapping[str, Any], presets: _Presets) -> Iterator[tuple[RunConfig, list[Seeds]]]:
        """The configs, with their seeds, of a point whose fields have these values by key."""
        taken = {*self.settings, *chosen}
        config = presets.of(chosen)
        source = {**self.settings, **chosen}.get(INIT_FROM, AUTO)
        given = [{key: values[key] for key in values if key != INIT_FROM} for values in (chosen, self.settings)]
        set_values(config, self._seeds(self.seeds[0], taken), *given)
        resolved = resolve(config)
        check_given(resolved, *given)
        resolved = resolved if source == AUTO else replace(resolved, init_from=source)
        own, changes = seeds_of(resolved), [self._seeds(seed, taken) for seed in self.seeds]
        seeds = [Seeds(each.get("data_seed", own.data), each.get("init_seed", own.init)) for each in changes]
        seeded = [with_seeds(resolved, each) for each in seeds]
        if depends_on_nothing(resolved):
            yield resolved, seeds
        else:
            yield from ((depending, [seeds_of(depending)]) for depending in map(with_dependencies, seeded))

    def _seeds(self, seed: int, taken: Container[str]) -> dict[str, Any]:
        """The fields that a seed sets, without those that are set or swept themselves."""
        fields = {"data_seed": seed + self.data_offset, "init_seed": seed}
        return {name: value for name, value in fields.items() if name not in taken}


class _Presets:
    """The values of a model's preset, which may follow the number of layers of a point, each made once."""

    def __init__(self, model: str, name: str, settings: Mapping[str, Any]):
        self.model, self.name, self.settings = model, name, settings
        self._made: dict[tuple[str, ...], dict[str, Any]] = {}

    def of(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """The values for a point with these fields by key, to be changed."""
        layers = {key: chosen[key] for key in OF_LAYERS if chosen.get(key) not in (None, AUTO)}
        at = tuple(map(str, layers.items()))
        if at not in self._made:
            self._made[at] = preset_for_depth(self.model, self.name, layers | dict(self.settings)).to_dict()
        return deepcopy(self._made[at])


def check_number(grids: Sequence[Grid]) -> int:
    """The number of points of all grids; `ConfigError` if there are too many."""
    number = sum(grid.size for grid in grids)
    require(number <= MAX_POINTS, f"the grid has {number} rows, more than {MAX_POINTS}; plan it in parts")
    return number


@contextmanager
def _named(model: str, point: Mapping[str, Any]) -> Iterator[None]:
    """Adds the point to the message of an error."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{model} with {_point_text(point)}: {error}" if point else str(error)) from None


def _point_text(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in point.items() if value != AUTO)


def canonical(config: RunConfig) -> RunConfig:
    """The config that represents all equivalent configs, so that they are trained once."""
    representative: RunConfig = replace(config, preset="default").canonical()
    return representative
