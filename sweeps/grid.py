"""Grids of settings, and their flags: the product of the axes gives the points of a sweep, each with its config."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.configs.family import AUTO, Family, Flag
from icl_lab.lab.configs.identity import depends_on_nothing, with_dependencies
from icl_lab.lab.configs.keys import leaves
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.registry import family_of_model, models
from icl_lab.lab.configs.run import RunConfig, Seeds, seeds_of, with_seeds
from icl_lab.lab.flag_types import SEED, Either, whole_number
from icl_lab.runners.flags import list_values, preset_for_depth, reader
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.fields import Meaning

MAX_POINTS = 100_000  # of a plan; more are surely a typing error, and too many runs for one folder
# fields that must not be set: no effect, or rows that could not be distinguished -> what to use instead
RESERVED = {
    "preset": "; every model has its default one",
    "data_seed": ": --seeds",
    "name": ": --models",
    "plugins": ": --plugin",
}


@dataclass(frozen=True)
class Grid:
    """Models times seeds times the values of each axis; "auto" keeps the model's own value.

    `settings` are config fields that all points share, by key. `data_offset` is added to the seed of the data, not to
    that of the initialisation.
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
                require(axis in known, f"{axis} is not an axis of {model}; {its}")
        for name, values in [("models", self.models), ("seeds", self.seeds), *self.axes.items()]:
            require(len(values) > 0, f"{name} is an empty list; it needs at least one value")
        for name, instead in RESERVED.items():
            require(name not in self.settings, f"{name} cannot be set in a sweep{instead}")

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
        of_model = {model: preset_for_depth(model, "default", self.settings).to_dict() for model in self.models}
        for model, *values in product(self.models, *self.axes.values()):
            point, keys = dict(zip(self.axes, values, strict=True)), axes_of(model)
            config, chosen = deepcopy(of_model[model]), {keys[axis]: value for axis, value in point.items()}
            set_values(config, self._seeds(self.seeds[0]), chosen, self.settings)
            with _named(model, point):
                resolved = resolve(config)
            resolved_seeds = seeds_of(resolved)
            with _named(model, point):
                changes = [self._seeds(seed) for seed in self.seeds]
                seeds = [
                    Seeds(each.get("data_seed", resolved_seeds.data), each.get("init_seed", resolved_seeds.init))
                    for each in changes
                ]
                seeded = [with_seeds(resolved, each) for each in seeds]
            if depends_on_nothing(resolved):
                yield resolved, seeds
                continue
            for config in seeded:
                with _named(model, point):
                    depending = with_dependencies(config)
                yield depending, [seeds_of(config)]

    def _seeds(self, seed: int) -> dict[str, Any]:
        """The fields that a seed sets, without those in `settings`."""
        fields = {"data_seed": seed + self.data_offset, "init_seed": seed}
        return {name: value for name, value in fields.items() if name not in self.settings}


def axes_of(model: str) -> dict[str, str]:
    """{axis: config key} of a model's family."""
    return {flag.name: flag.key for flag in family_of_model(model).axes}


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


# --- flags ---


def add_flags(built: cli.Parser, family: Family, defaults: Mapping[str, Sequence[Any]]) -> None:
    """Adds the flags of a family's grid, every axis as a list, with these defaults."""
    cli.add_list(built, "--models", str, defaults.get("models", tuple(family.models)[:1]), _models(family))
    cli.add_list(built, "--seeds", SEED, defaults.get("seeds", (0, 1, 2)), "seeds of data and initialisation")
    for flag in family.axes:
        options = [f"--{name}" for name in (flag.name, *flag.short)]
        text = str(Meaning(flag.text, flag.choices or ()))
        cli.add_list(built, options, or_auto(flag), defaults.get(flag.name, (AUTO,)), text)
        cli.add_former_names(built, flag.name, flag.former)
    cli.add_word_lists(built, family.lists)
    built.config_keys = [key for key in leaves(preset(next(iter(family.models))).to_dict()) if key not in RESERVED]
    if "steps" not in [flag.name for flag in family.axes]:
        built.add_argument("--steps", type=whole_number, help="training steps; default: the preset's")
    built.epilog = "--config.KEY=VALUE sets any field of the config, as in --config.eval_tasks=512."


def _models(family: Family) -> str:
    return f"models to train: {', '.join(family.models)}"


def or_auto(flag: Flag) -> Callable[[str], Any]:
    """A reader of an axis that also accepts "auto", which keeps the model's own value."""
    return Either((AUTO,), AUTO, reader(flag))


def grid_of(flags: argparse.Namespace, family: Family, overrides: Mapping[str, str]) -> Grid:
    """The grid that flags ask for. Axes at "auto" are left out, so that models of other families need not have them."""
    values_of = {flag.name: getattr(flags, flag.name) for flag in family.axes}
    axes = {name: values for name, values in values_of.items() if values != [AUTO]}
    steps = {} if "steps" in values_of else {"training.steps": flags.steps}
    lists = {key: value for key, value in list_values(family, flags).items() if value is not None}
    return Grid(tuple(flags.models), axes, tuple(flags.seeds), {**steps, **lists, **overrides})
