"""How degenerate is the solution, at each checkpoint of a training? Writes analysis/llc.csv, traces and a dashboard.

python -m analysis.llc --run DIR --checkpoints all --eps 3.5e-5 --nbeta 66.7 --gamma 667

The local learning coefficient with its interval, and the diagnostics that say whether it can be trusted. A kill loses
at most one checkpoint: the same command goes on. docs/llc.md says what the numbers mean and how to choose settings.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cli
from analysis.command import Command
from src.checks import require

# field of the settings -> its flag's type and what it is
FLAGS: Mapping[str, tuple[type, str]] = {
    "eps": (float, "step size"),
    "nbeta": (float, "n beta, the inverse temperature times the number of tasks"),
    "gamma": (float, "strength of the pull towards w*"),
    "batch_size": (int, "tasks in a step"),
    "tasks": (int, "tasks in the fixed set"),
    "data": (str, "a step's tasks: fixed (drawn from a fixed set), fresh (seen once) or full (all of the fixed set)"),
    "chains": (int, "chains, each from w*"),
    "burn_in": (int, "draws at the beginning of a chain that are left out"),
    "draws": (int, "draws of a chain that are kept"),
    "thin": (int, "steps between two draws"),
    "mask": (str, "regular expression: only parameters whose module/name it is found in move"),
    "preconditioner": (str, "rmsprop, or none"),
    "seed": (int, "seed of the chains"),
}
SELECTIONS = "all, last, every:K or steps such as 100,500"
COLUMNS = ("step", "llc", "llc_low", "llc_high", "loss", "saturation", "health")  # of the rows that are printed


def add_flags(parser: cli.Parser, prefix: str = "") -> None:
    """The flags of the settings; those that are not given have the defaults of `Settings`."""
    for name, (kind, text) in FLAGS.items():
        parser.add_argument(f"--{prefix}{name}", type=kind, help=text)


def settings_of(flags: argparse.Namespace, prefix: str = "") -> Any:
    """The settings of the flags; `ConfigError` for values that no chain can have."""
    from analysis.measures.llc_settings import Settings

    given = {name: getattr(flags, f"{prefix}{name}") for name in FLAGS}
    return Settings(**{name: value for name, value in given.items() if value is not None})


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Estimates the LLC at a run's checkpoints."""
    from analysis.measures.llc_run import estimate_run
    from plots.llc import draw_llc

    settings = settings_of(flags)
    rows = estimate_run(run, settings, flags.checkpoints)
    draw_llc(run, settings.name)
    return [{name: row[name] for name in COLUMNS} for row in rows]


def _add(parser: cli.Parser) -> None:
    parser.add_argument("--checkpoints", default="last", help=f"which: {SELECTIONS} (default: last)")
    add_flags(parser)


def check_selection(words: str) -> None:
    """`ConfigError` for what selects no checkpoints."""
    known = words in ("all", "last") or re.fullmatch(r"every:[1-9]\d*|\d+(,\d+)*", words)
    require(bool(known), f"checkpoints is {words!r}; choose {SELECTIONS}")


def _check(flags: argparse.Namespace) -> None:
    check_selection(flags.checkpoints)
    settings_of(flags)


COMMAND = Command("llc", "Estimates the local learning coefficient at a run's checkpoints.", measure, _add, _check)

if __name__ == "__main__":
    COMMAND.launch()
