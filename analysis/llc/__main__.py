"""Estimates the local learning coefficient (LLC) at the checkpoints of a run.

python -m analysis.llc --run DIR --checkpoints all --eps 3.5e-5 --nbeta 133.3 --gamma 667

The local learning coefficient with its interval, and the diagnostics that say whether it can be trusted. If it is
killed, the same command resumes and at most one checkpoint is lost. With --follow the run may still be training: its
checkpoints are estimated as they come. docs/llc.md says what the numbers mean and how to choose settings.

python -m analysis.llc --run DIR --nbetas 100,316,1000 --gammas 1,3.16,10

A curve in place of a point: the LLC, its quadratic prediction, its derivatives and its degree at every nbeta and gamma,
in analysis/llc_curve.csv and figs/llc_curve.png, and the value on the plateau, or that there is none and what to try
next.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.analysis.llc import checkpoints, traces
from icl_lab.analysis.llc.settings import SELECTIONS, add_flags, selection, settings_of
from icl_lab.lab import cli
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.task import Executor
from icl_lab.lab.flag_types import POSITIVE, Whole
from icl_lab.plots.llc import draw_llc
from icl_lab.plots.llc_curve import draw_curve
from icl_lab.src.checks import require
from icl_lab.src.words import printable
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv
from icl_lab.store.lock import locked
from icl_lab.store.rundir import read_status

EXECUTOR = (
    "what estimates the checkpoints: process, ray or slurm handle each as a separate task; otherwise, and by default, "
    "this process does, one after another"
)
# of the rows that are printed
COLUMNS = ("step", "llc", "llc_low", "llc_high", "predicted", "loss", "saturation", "verdict", "reasons")
CURVE_COLUMNS = (
    "step",
    "nbeta",
    "gamma",
    "llc",
    "llc_low",
    "llc_high",
    "predicted",
    "d_nbeta",
    "d_gamma",
    "degree",
    "verdict",
)


def measure(run: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Estimates the LLC at a run's checkpoints; with --follow first beside its training, until that has ended."""
    if flags.nbetas or flags.gammas:
        yield from _curves(run, flags)
        return
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


def _curves(run: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The curve of every selected checkpoint: its points as they are printed, and what is said of them."""
    settings = settings_of(flags)
    if flags.eps is None:
        settings = replace(settings, eps=None)  # chosen at each point
    nbetas, gammas = flags.nbetas or [settings.nbeta], flags.gammas or [settings.gamma]
    with locked(run):
        table: list[dict[str, Any]] = []
        for step, curve in checkpoints.curves(
            run, settings, flags.checkpoints or "last", nbetas, gammas, flags.multiplicity
        ):
            rows = [{"step": step} | row for row in curve.rows()]
            table += rows
            yield from ({name: row[name] for name in CURVE_COLUMNS} for row in rows)
            yield {"step": step, "said": curve.said}
        write_csv(run / layout.LLC_CURVE, table)
        draw_curve(run)


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
    text = f"checkpoints to use: {SELECTIONS} (default: last; with --follow all)"
    parser.add_argument("--checkpoints", type=selection, metavar="WHICH", help=text)
    cli.add_list(parser, "--nbetas", POSITIVE, (), "estimate a curve: at each of these nbeta and each of --gammas")
    cli.add_list(parser, "--gammas", POSITIVE, (), "estimate a curve: at each of these gamma and each of --nbetas")
    text = "multiplicity of the minimum, if known; the curve then gives lambda, not only the LLC at one nbeta"
    parser.add_argument("--multiplicity", type=Whole(1, 1000), metavar="M", help=text)
    parser.add_argument("--follow", action="store_true", help="estimate while the run is training, until it ends")
    parser.needs("blackjax", when=lambda flags: flags.sampler == "hmc")
    choice.add_flags(parser, EXECUTOR)
    add_flags(parser)


def _check(flags: argparse.Namespace) -> None:
    settings_of(flags)
    _executor(flags)
    is_curve = bool(flags.nbetas or flags.gammas)
    require(is_curve or flags.multiplicity is None, "--multiplicity is only for a curve: give --nbetas or --gammas too")
    require(not (is_curve and flags.follow), "--follow estimates points; leave it out for a curve")
    require(not (is_curve and flags.executor), "a curve is estimated in one process; leave --executor out")


COMMAND = Command(
    "llc", "Estimates the local learning coefficient at a run's checkpoints.", measure, _add, _check, True
)

if __name__ == "__main__":
    COMMAND.launch()
