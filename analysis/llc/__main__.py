"""How degenerate is the solution, at each checkpoint of a training? Writes analysis/llc.csv, traces and a dashboard.

python -m analysis.llc --run DIR --checkpoints all --eps 3.5e-5 --nbeta 133.3 --gamma 667

The local learning coefficient with its interval, and the diagnostics that say whether it can be trusted. If it is
killed, the same command resumes and at most one checkpoint is lost. With --follow the run may still be training: its
checkpoints are estimated as they come. docs/llc.md says what the numbers mean and how to choose settings.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.analysis.llc import checkpoints, traces
from icl_lab.analysis.llc.settings import SELECTIONS, add_flags, selection, settings_of
from icl_lab.lab import cli
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.task import Executor
from icl_lab.plots.llc import draw_llc
from icl_lab.src.words import printable
from icl_lab.store.lock import locked
from icl_lab.store.rundir import read_status

EXECUTOR = "who estimates the checkpoints: process, ray or slurm do each as a task; without, this process all in turn"
COLUMNS = (
    "step",
    "llc",
    "llc_low",
    "llc_high",
    "loss",
    "saturation",
    "verdict",
    "reasons",
)  # of the rows that are printed


def measure(run: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Estimates the LLC at a run's checkpoints; with --follow first beside its training, until that has ended."""
    executor = _executor(flags)
    settings, selection = settings_of(flags), flags.checkpoints or ("all" if flags.follow else "last")
    shown: list[dict[str, Any]] = []
    for row in checkpoints.follow(run, settings, selection) if flags.follow else ():
        yield from _new(row, shown)
    with locked(run, timeout=math.inf if flags.follow else 0):
        for row in checkpoints.estimate_run(run, settings, selection, executor):
            yield from _new(row, shown)
        draw_llc(run, settings.name)
        for path in traces.left_out(run):
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
    parser.needs("blackjax", when=lambda flags: flags.sampler == "hmc")
    choice.add_flags(parser, EXECUTOR)
    add_flags(parser)


def _check(flags: argparse.Namespace) -> None:
    settings_of(flags)
    _executor(flags)


COMMAND = Command(
    "llc", "Estimates the local learning coefficient at a run's checkpoints.", measure, _add, _check, True
)

if __name__ == "__main__":
    COMMAND.launch()
