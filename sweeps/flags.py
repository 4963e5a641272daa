"""The flags that ask for a sweep's grid: of orders and noise, or of pools of tasks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import cli
from configs import diversity
from configs.family import AUTO
from runners.flags import CONTEXT_FLAGS, CONTEXTS, DIVERSITY_FLAGS, number_or_auto
from sweeps.grid import DIVERSITY_AXES, Grid

SHORT = {"p": "noise_p", "sigma": "noise_sigma", "placement": "noise_placement"}  # other names of three axes


class Asked(NamedTuple):
    """How a grid is asked for: what adds the flags, with these defaults, and what makes a grid of them."""

    add_flags: Callable[[cli.Parser, Mapping[str, Sequence[Any]]], None]
    grid: Callable[[argparse.Namespace, Mapping[str, str]], Grid]


def _add_context_flags(built: cli.Parser, defaults: Mapping[str, Sequence[Any]]) -> None:
    """The flags of a grid: models, seeds, every ordering and noise flag of the runners as a list, and config fields."""
    cli.add_list(built, "--models", str, defaults.get("models", ("lsa1", "twolayer")), "models")
    cli.add_list(built, "--seeds", int, defaults.get("seeds", (0, 1, 2)), "seeds of data and initialisation")
    for prefix in CONTEXTS:
        for flag, (_, kind, choices, text) in CONTEXT_FLAGS.items():
            name = f"{prefix}{flag}"
            options = [f"--{name}", *(f"--{short}" for short, long in SHORT.items() if long == name)]
            scope = f"{text}, in {prefix[:-1]} contexts alone" if prefix else text
            default = defaults.get(name, (AUTO,))
            cli.add_list(built, options, kind if choices else number_or_auto, default, scope)
    cli.add_list(
        built, "--difficulty", str, defaults.get("difficulty", (AUTO,)), "what easy2hard and hard2easy sort by"
    )
    built.add_argument("--steps", type=int, help="training steps; the preset's if not given")
    built.epilog = "Any field of the runs' config: --config.KEY=VALUE, as in --config.dim=20."


def _context_grid(flags: argparse.Namespace, overrides: Mapping[str, str]) -> Grid:
    """The grid that flags ask for."""
    axes = {f"{prefix}{flag}": getattr(flags, f"{prefix}{flag}") for prefix in CONTEXTS for flag in CONTEXT_FLAGS}
    axes["difficulty"] = flags.difficulty
    settings = {"training.steps": flags.steps, **overrides}
    return Grid(tuple(flags.models), axes, tuple(flags.seeds), settings)


def _add_pool_flags(built: cli.Parser, defaults: Mapping[str, Sequence[Any]]) -> None:
    """The flags of a grid of decoders: models, seeds, and what of pool, recipe and capacity may differ."""
    cli.add_list(built, "--models", str, defaults.get("models", ("tiny",)), f"of {', '.join(diversity.ARCHITECTURE)}")
    cli.add_list(built, "--seeds", int, defaults.get("seeds", (0, 1, 2)), "seeds of tasks, data and initialisation")
    for axis, key in DIVERSITY_AXES.items():
        _, read, text = DIVERSITY_FLAGS.get(axis, (key, str, f"{key} of the config"))
        cli.add_list(built, f"--{axis}", _or_auto(read), defaults.get(axis, (AUTO,)), text)
    built.epilog = "Any field of the runs' config: --config.KEY=VALUE, as in --config.eval_tasks=512."


def _or_auto(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A reader that also takes the word which leaves a value to the model."""

    def value(text: str) -> Any:
        return AUTO if text == AUTO else read(text)

    value.__name__ = getattr(read, "__name__", "value")
    return value


def _pool_grid(flags: argparse.Namespace, overrides: Mapping[str, str]) -> Grid:
    """The grid that flags ask for."""
    axes = {axis: getattr(flags, axis) for axis in DIVERSITY_AXES}
    return Grid(tuple(flags.models), axes, tuple(flags.seeds), overrides)


OF_CONTEXTS = Asked(_add_context_flags, _context_grid)
OF_POOLS = Asked(_add_pool_flags, _pool_grid)
