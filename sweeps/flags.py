"""The flags of a sweep's grid: models, seeds and the axes of the family."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.configs.family import AUTO, Family, Flag, Meaning
from icl_lab.lab.configs.keys import leaves
from icl_lab.lab.configs.presets import preset
from icl_lab.lab.flag_types import SEED, Either, whole_number
from icl_lab.runners.flags import list_values, reader
from icl_lab.sweeps.grid import RESERVED, Grid


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
