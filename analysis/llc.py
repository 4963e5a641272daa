"""How degenerate is the solution, at each checkpoint of a training? Writes analysis/llc.csv, traces and a dashboard.

python -m analysis.llc --run DIR --checkpoints all --eps 3.5e-5 --nbeta 133.3 --gamma 667

The local learning coefficient with its interval, and the diagnostics that say whether it can be trusted. If it is
killed, the same command resumes and at most one checkpoint is lost. With --follow the run may still be training: its
checkpoints are estimated as they come. docs/llc.md says what the numbers mean and how to choose settings.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.analysis.measures.llc_settings import TYPES, Settings
from icl_lab.lab import cli
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.task import Executor
from icl_lab.lab.flag_types import COUNT, Whole, shown
from icl_lab.src.words import printable
from icl_lab.store.lock import locked
from icl_lab.store.rundir import read_status

# field of the settings -> what it is
FLAGS: Mapping[str, str] = {
    "eps": "step size",
    "nbeta": "n beta, the inverse temperature times the number of tasks",
    "gamma": "strength of the pull towards w*",
    "batch_size": "tasks in a step",
    "tasks": "tasks in the fixed set",
    "data": "a step's tasks: fixed (drawn from a fixed set), fresh (seen once) or full (all of the fixed set)",
    "chains": "chains, each from w*",
    "burn_in": "draws at the beginning of a chain that are left out",
    "draws": "draws of a chain that are kept",
    "thin": "steps between two draws",
    "mask": "regular expression: only parameters whose module/name it is found in move",
    "preconditioner": "rmsprop scales the step of each parameter; without, none does",
    "seed": "seed of the chains",
}
EXECUTOR = "who estimates the checkpoints: process, ray or slurm do each as a task; without, this process all in turn"
SELECTIONS = "all, last, every:K, log:N[:FROM] or steps such as 100,500"
STEP = Whole(0)
# kind of selection -> how many numbers it may have, and their types
KINDS: Mapping[str, tuple[tuple[int, ...], tuple[Whole, ...]]] = {
    "all": ((0,), ()),
    "last": ((0,), ()),
    "every": ((1,), (COUNT,)),
    "log": ((1, 2), (Whole(2, 100_000, "all places are in memory"), STEP)),
}
COLUMNS = ("step", "llc", "llc_low", "llc_high", "loss", "saturation", "health")  # of the rows that are printed


def add_flags(parser: argparse._ActionsContainer, prefix: str = "") -> None:
    """The flags of the settings; those that are not given have the defaults of `Settings`."""
    for name in FLAGS:
        parser.add_argument(f"--{prefix}{name}", type=TYPES.get(name, str), metavar="VALUE", help=help_of(name))


def help_of(name: str, default: Any = None) -> str:
    """What a flag of the settings is, with its default: a given one, or that of the settings."""
    value = getattr(Settings, name) if default is None else default
    return f"{FLAGS[name]} (default: {value})" if value != "" else FLAGS[name]


def settings_of(flags: argparse.Namespace, prefix: str = "") -> Settings:
    """The settings of the flags; `ConfigError` for invalid values."""
    given = {name: getattr(flags, f"{prefix}{name}") for name in FLAGS}
    return Settings(**{name: value for name, value in given.items() if value is not None})


def measure(run: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Estimates the LLC at a run's checkpoints; with --follow first beside its training, until that has ended."""
    from icl_lab.analysis.measures import llc_run, llc_traces
    from icl_lab.plots.llc import draw_llc

    executor = _executor(flags)
    settings, selection = settings_of(flags), flags.checkpoints or ("all" if flags.follow else "last")
    shown: list[dict[str, Any]] = []
    for row in llc_run.follow(run, settings, selection) if flags.follow else ():
        yield from _new(row, shown)
    with locked(run, timeout=math.inf if flags.follow else 0):
        for row in llc_run.estimate_run(run, settings, selection, executor):
            yield from _new(row, shown)
        draw_llc(run, settings.name)
        for path in llc_traces.left_out(run):
            print(f"not in the table: {printable(path)} is not the traces of an LLC of this run", file=sys.stderr)
        if (status := read_status(run)) != "done":
            print(f"{printable(run)} is not done ({status}): these are its checkpoints so far", file=sys.stderr)


def _executor(flags: argparse.Namespace) -> Executor | None:
    """Who estimates the checkpoints, each as a task; None: this process, one after another."""
    resources = choice.resources_of(flags, flags.run.resolve().parent)
    if flags.executor in (None, "packed", "serial"):
        return None
    choice.check(flags.executor, resources)
    return choice.executor(flags.executor, resources)


def _new(row: dict[str, Any], shown: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What is printed of a row, unless it was."""
    values = {name: row[name] for name in COLUMNS}
    if str(values) not in map(str, shown):  # nan is not equal to itself
        shown.append(values)
        yield values


def _add(parser: cli.Parser) -> None:
    text = f"which: {SELECTIONS} (default: last; with --follow all)"
    parser.add_argument("--checkpoints", type=selection, metavar="WHICH", help=text)
    parser.add_argument("--follow", action="store_true", help="estimate beside the training, until that has ended")
    parser.needs("blackjax")
    choice.add_flags(parser, EXECUTOR)
    add_flags(parser)


def selection(text: str) -> str:
    """A selection of checkpoints, its numbers in figures; `argparse.ArgumentTypeError` for any other text."""
    kind, *numbers = text.split(":")
    counts, types = KINDS.get(kind, ((), ()))
    if len(numbers) in counts:
        return ":".join([kind, *(str(read(number)) for read, number in zip(types, numbers, strict=False))])
    if not re.fullmatch(r"[\d\s.,e+-]+", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is none of {SELECTIONS}")
    return ",".join(str(STEP(word)) for word in text.split(","))


def _check(flags: argparse.Namespace) -> None:
    settings_of(flags)
    _executor(flags)


COMMAND = Command(
    "llc", "Estimates the local learning coefficient at a run's checkpoints.", measure, _add, _check, True
)

if __name__ == "__main__":
    COMMAND.launch()
