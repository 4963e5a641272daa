"""The command line of a sweep: parses its flags, plans its runs, trains them and writes the CSV."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from icl_lab.lab import cli
from icl_lab.lab.configs.config_help import listing
from icl_lab.lab.configs.family import Family
from icl_lab.lab.configs.registry import named
from icl_lab.lab.executors.signals import RESUME_HINT, Signals, catch_signals
from icl_lab.lab.executors.worker import available_cores
from icl_lab.runners.command import print_notices, resume_command
from icl_lab.runners.flags import preset_for_depth
from icl_lab.src.words import printable
from icl_lab.store import rundir
from icl_lab.sweeps import following, sources, work
from icl_lab.sweeps.axes import RESERVED
from icl_lab.sweeps.execution import Execution, add_execution_flags, execution
from icl_lab.sweeps.grid import Grid, check_number
from icl_lab.sweeps.grid_flags import add_flags, grid_of
from icl_lab.sweeps.plan import PlannedRun, Point, plan, seconds_of
from icl_lab.sweeps.status import status_counts

QUICK_PLAN = 1000  # rows; planning more takes a while


def run(
    family: str, prog: str, description: str, defaults: Mapping[str, Sequence[Any]], out: str, runs_dir: str
) -> NoReturn:
    """Runs a sweep of a family with this process's arguments, and exits."""
    launch(lambda argv: main(named(family), prog, description, defaults, out, runs_dir, argv))


def launch(main: Callable[[list[str]], int]) -> NoReturn:
    """Runs a driver with this process's arguments, and exits."""
    cli.launch(main)


def main(
    family: Family,
    prog: str,
    description: str,
    defaults: Mapping[str, Sequence[Any]],
    out: str,
    runs_dir: str,
    argv: list[str],
) -> int:
    """Parses the flags, plans the product of their values and carries out the plan."""
    rest, overrides = cli.split_config_flags(argv)
    built = cli.Parser(prog, description)
    add_flags(built, family, defaults)
    cli.add_config_help(built)
    add_execution_flags(built, out, runs_dir)
    flags = built.parse(rest)
    grid, weights = grid_of(flags, family, overrides, defaults)
    if flags.config_help:
        print(_field_listing(grid, overrides))
        return 0
    how = execution(flags)._replace(weights=weights)
    return carry_out(planned_points(grid, how), how)


def _field_listing(grid: Grid, settings: Mapping[str, Any]) -> str:
    """A list of the config fields that can be set for the models of a grid."""
    presets = [preset_for_depth(model, grid.preset, settings) for model in grid.models]
    return "\n\n".join(listing(each, tuple(RESERVED)) for each in presets)


def planned(grids: Sequence[Grid], quiet: bool) -> list[Point]:
    """The points of grids; says how many rows they give first if planning takes a while."""
    number = check_number(grids)
    if number > QUICK_PLAN and not quiet and sys.stderr is not None:
        print(f"planning {number} rows", file=sys.stderr, flush=True)
    return plan(grids)


def planned_points(grid: Grid, how: Execution) -> list[Point]:
    """The points of a grid; prints which fields follow those that are swept, notes on files, and sources."""
    points = planned([grid], how.quiet)
    for line in () if how.quiet else (*following.lines(grid, points), *_notes(points), *sources.lines(how.weights)):
        print(printable(line))
    return points


def _notes(points: Sequence[Point]) -> list[str]:
    """The notes on data of files, each once."""
    configs: Iterable[Any] = (point.run.config for point in points if point.run.config.data_file)
    of_files = {config.data: config for config in configs}
    return list(dict.fromkeys(note for config in of_files.values() for note in config.notes()))


def carry_out(points: Sequence[Point], how: Execution) -> int:
    """Trains the unfinished runs of a plan and writes its CSV; returns the exit status."""
    chosen = work.checked(points, how)
    if how.dry_run:
        print(preview(points, chosen, how))
        return 0
    with catch_signals(RESUME_HINT) as signals:
        ended = work.done(points, chosen, how, signals)
    return _print_report(ended, how, signals)


def _print_report(ended: work.Ended, how: Execution, signals: Signals) -> int:
    """Prints which runs failed or diverged, why, which had finished, and how to resume; returns the exit status."""
    status = ended.status
    for name, reason in ended.failed.items():
        print(printable(f"error: failed: {how.folder / name}: {reason}"), file=sys.stderr)
    for run in (run for run in status if status[run] == "diverged"):
        print(printable(f"diverged: {how.folder / run.name}"), file=sys.stderr)
    print_notices([how.folder / run.name for run in status if status[run] in rundir.FINISHED], ended.finished)
    if signals.received:
        print(f"stopped; the same command without --overwrite resumes it: {resume_command()}")
        return 128 + signals.received[0]
    if ended.failed or not set(status.values()) <= set(rundir.FINISHED):
        print("the same command without --overwrite tries the failed runs again", file=sys.stderr)
        return 1
    return 0


def preview(points: Sequence[Point], chosen: Sequence[PlannedRun], how: Execution) -> str:
    """What would be done: each run's status, the packs to train, and an estimate of the time."""
    status, waiting = work.statuses_and_packs(chosen, how)
    below = printable(how.folder / "_").removesuffix("_")
    lines = [f"{status[run]:10} {below}{run.name}" for run in chosen]
    trainings = sum(pack.trainings for pack in waiting)
    minutes = seconds_of(waiting, how.width, len(available_cores())) / 60
    places = len(waiting) * how.width
    shown = sum(point.run in status for point in points)
    lines.append(f"{shown} rows of {len(status)} runs: {status_counts(status.values())}")
    lines.append(
        f"{sum(len(pack.runs) for pack in waiting)} runs to do: {trainings} trainings in {len(waiting)} packs of "
        f"at most {how.width}, executor {how.executor}; about {minutes:.0f} min on the machine of "
        "benchmarks/performance.md"
    )
    if trainings < places:
        widest = max(pack.trainings for pack in waiting)
        advice = f"; with --width {widest} there are fewer or none" if widest < how.width else ""
        lines.append(
            f"{places - trainings} of {places} places in packs are empty and take as long as a training{advice}"
        )
    return "\n".join(lines)
