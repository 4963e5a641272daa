"""The flags of a sweep's grid: a list for each axis of a family, and --sweep and --zip for any other field.

Each other flag of the runner that sets a field has one value for all runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.configs.family import AUTO, Family, Flag
from icl_lab.lab.configs.keys import leaves
from icl_lab.lab.configs.presets import preset
from icl_lab.lab.flag_types import SEEDS, Either
from icl_lab.runners.flags import add_flag, config_flags, list_values, reader, source
from icl_lab.src.checks import require
from icl_lab.src.fields import Meaning
from icl_lab.store.weights import Weights
from icl_lab.sweeps import axes as axes_of_sweep
from icl_lab.sweeps.axes import INIT_FROM, RESERVED, Axes, Axis, keys_of
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.sources import named

SWEEP = "any field as an axis, FIELD=VALUES, as in lr=1e-3,3e-3 or attention=(softmax,linear),(linear); may be repeated"
FILE = {"data", "file", "data.file"}  # names of the field for a file of contexts
ZIP = "several fields as one axis, whose values change together, as in lr=1e-3,1e-4 steps=1000,5000; may be repeated"


def add_flags(built: cli.Parser, family: Family, defaults: Mapping[str, Sequence[Any]]) -> None:
    """Adds the flags of a family's grid, every axis as a list, with these defaults."""
    models = f"models to train: {', '.join(family.models)}"
    cli.add_list(built, "--models", str, defaults.get("models", tuple(family.models)[:1]), models)
    seeds = "seeds of data and initialisation, as in 0,1,2 or 0-4"
    cli.add_list(built, "--seeds", SEEDS, defaults.get("seeds", (0, 1, 2)), seeds)
    built.add_argument("--preset", default="default", help="values of the fields that are not set or swept")
    for flag in family.all_axes:
        options = [f"--{name}" for name in (flag.name, *flag.short)]
        text = str(Meaning(flag.text, flag.choices or ()))
        cli.add_list(built, options, or_auto(flag), defaults.get(flag.name, (AUTO,)), text)
        cli.add_former_names(built, flag.name, flag.former)
    for flag in _settings(family):
        add_flag(built, flag)
    text = (
        "start all runs from the parameters of a finished run or of a file; to compare several: --sweep init_from=..."
    )
    built.add_argument(f"--{INIT_FROM}", metavar="RUN[@STEP]", type=source, help=text)
    cli.add_word_lists(built, family.lists)
    built.config_keys = [key for key in leaves(preset(next(iter(family.models))).to_dict()) if key not in RESERVED]
    built.add_argument("--sweep", nargs="+", action="extend", default=[], metavar="FIELD=VALUES", help=SWEEP)
    built.add_argument("--zip", nargs="+", action="append", default=[], metavar="FIELD=VALUES", help=ZIP)
    built.epilog = "--config.KEY=VALUE sets any field of the config, as in --config.eval_tasks=512."


def _settings(family: Family) -> list[Flag]:
    """The runner's flags that set a field and are no axes."""
    swept = {flag.key for flag in family.all_axes}
    return [flag for flag in config_flags(family) if flag.key not in swept]


def or_auto(flag: Flag) -> Callable[[str], Any]:
    """A reader of an axis that also accepts "auto", which keeps the model's own value."""
    return Either((AUTO,), AUTO, reader(flag))


def grid_of(
    flags: argparse.Namespace, family: Family, overrides: Mapping[str, str], defaults: Mapping[str, Sequence[Any]]
) -> tuple[Grid, tuple[Weights, ...]]:
    """The grid that flags ask for, and the parameters that its runs start from.

    Axes at "auto" are left out, so that models of other families need not have them.
    A field that --sweep or --zip names replaces a flag's axis that has its default. Defaults that say how contexts are
    drawn are left out where these are a file's.
    """
    values_of = {flag.name: getattr(flags, flag.name) for flag in family.all_axes}
    axes: dict[Axis, Sequence[Any]] = {name: values for name, values in values_of.items() if values != [AUTO]}
    further = axes_of_sweep.of_words(flags.sweep, flags.zip)
    of_all = {flag.key: getattr(flags, flag.name) for flag in _settings(family)} | list_values(family, flags)
    require(INIT_FROM not in overrides, f"{INIT_FROM} cannot be set with --config.; use --{INIT_FROM}")
    of_all[INIT_FROM] = flags.init_from
    settings = {**{key: value for key, value in of_all.items() if value is not None}, **overrides}
    if further:
        model = flags.models[0]
        axes_of_sweep.refuse_set(model, further, settings)
        for flag in _replaced(model, family, axes, further):
            given = axes.pop(flag.name)
            require(given == [*defaults.get(flag.name, ())], f"{flag.name} is swept twice, by its flag and by a field")
    if FILE & {*settings, *(name for axis in further for name in axes_of_sweep.fields(axis))}:
        drawn = {flag.name for flag in family.all_axes if flag.key.startswith("data.")}
        by_default = {name for name in drawn if axes.get(name) == [*defaults.get(name, ())]}
        axes = {name: values for name, values in axes.items() if name not in by_default}
    axes, settings, weights = named({**axes, **further}, settings)
    return Grid(tuple(flags.models), axes, tuple(flags.seeds), settings, preset=flags.preset), weights


def _replaced(model: str, family: Family, axes: Mapping[Axis, Any], further: Axes) -> list[Flag]:
    """The flags of axes whose field another axis has too."""
    keys = keys_of(model, [name for axis in further for name in axes_of_sweep.fields(axis)]).values()
    return [flag for flag in family.all_axes if flag.name in axes and flag.key in keys]
