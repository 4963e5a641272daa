"""The flags that ask for a sweep's grid: its models, its seeds, and the axes of their family."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cli
from configs.family import AUTO, Family, Flag, Meaning
from sweeps.grid import Grid


def add_flags(built: cli.Parser, family: Family, defaults: Mapping[str, Sequence[Any]]) -> None:
    """The flags of a grid of runs of a family, with these defaults: every axis as a list."""
    cli.add_list(built, "--models", str, defaults.get("models", tuple(family.models)[:1]), _models(family))
    cli.add_list(built, "--seeds", int, defaults.get("seeds", (0, 1, 2)), "seeds of data and initialisation")
    for flag in family.axes:
        options = [f"--{name}" for name in (flag.name, *flag.short)]
        text = str(Meaning(flag.text, flag.choices or ()))
        cli.add_list(built, options, or_auto(flag), defaults.get(flag.name, (AUTO,)), text)
    if "steps" not in [flag.name for flag in family.axes]:
        built.add_argument("--steps", type=int, help="training steps; the preset's if not given")
    built.epilog = "Any field of the runs' config: --config.KEY=VALUE, as in --config.eval_tasks=512."


def _models(family: Family) -> str:
    return f"of {', '.join(family.models)}"


def or_auto(flag: Flag) -> Callable[[str], Any]:
    """A reader of an axis that also takes the word which leaves a value to the model."""

    def value(text: str) -> Any:
        return AUTO if text == AUTO else flag.read(text)

    value.__name__ = getattr(flag.read, "__name__", "value")
    return value


def grid_of(flags: argparse.Namespace, family: Family, overrides: Mapping[str, str]) -> Grid:
    """The grid that flags ask for. An axis at "auto" is none, so that models of other families need not have it."""
    given = {flag.name: getattr(flags, flag.name) for flag in family.axes}
    axes = {name: values for name, values in given.items() if values != [AUTO]}
    steps = {} if "steps" in given else {"training.steps": flags.steps}
    return Grid(tuple(flags.models), axes, tuple(flags.seeds), {**steps, **overrides})
