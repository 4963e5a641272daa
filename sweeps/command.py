"""The command line of a sweep: parses its flags, plans its cells, trains them and writes the CSV."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from icl_lab.lab import cli
from icl_lab.lab.configs.config_help import listing
from icl_lab.lab.configs.family import Family
from icl_lab.lab.configs.registry import named
from icl_lab.lab.environment import check_devices
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.pace import Pace
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import RESUME_HINT, Signals, catch_signals
from icl_lab.lab.executors.task import Executor
from icl_lab.lab.executors.worker import available_cores
from icl_lab.lab.flag_types import Whole
from icl_lab.lab.registries import FAMILIES
from icl_lab.runners import resume
from icl_lab.runners.command import print_notices, resume_command
from icl_lab.runners.flags import preset_for_depth
from icl_lab.runners.resume import Persistence, print_kept_files
from icl_lab.src.words import printable
from icl_lab.store import checkpoint, layout, rundir
from icl_lab.store.lock import locked, locked_file
from icl_lab.store.outputs import out_file, out_folder
from icl_lab.store.readers import StoreError
from icl_lab.sweeps import cost, table
from icl_lab.sweeps.collect import (
    add_table_flags,
    check,
    check_out,
    check_writable,
    collect,
    current_rows,
    joined,
    note_unknown,
    start,
)
from icl_lab.sweeps.flags import add_flags, grid_of
from icl_lab.sweeps.grid import RESERVED, Grid, check_number
from icl_lab.sweeps.plan import Cell, Pack, Row, cells, generations, packs, plan, shard
from icl_lab.sweeps.plan_file import check_plan, write_plan
from icl_lab.sweeps.progress import Progress
from icl_lab.sweeps.status import refuse_earlier, status_counts, statuses
from icl_lab.sweeps.training import PackResult, result_of, task_of

TABLE_INTERVAL = 10.0  # seconds at least between two writings of the table while cells train
QUICK_PLAN = 1000  # rows; planning more takes a while
WIDTH = Whole(1, 4096, "more trainings in a pack do not fit in memory")


class Execution(NamedTuple):
    """How and where a plan is carried out."""

    folder: Path
    out: Path
    executor: str
    width: int
    shard: tuple[int, int]
    dry_run: bool
    overwrite: bool
    quiet: bool = False
    append: bool = False
    replace_table: bool = False
    persistence: Persistence = Persistence()
    resources: Resources = Resources()

    @property
    def cluster(self) -> Executor | None:
        """The executor of a cluster, if that is chosen, which carries out what is not training too."""
        return choice.executor(self.executor, self.resources) if choice.EXECUTORS[self.executor].needs else None

    @property
    def policy(self) -> table.RowPolicy:
        """What may happen to the rows in the table."""
        return table.RowPolicy(self.append, self.replace_table, self.overwrite)


def add_execution_flags(built: cli.Parser, out: str | None, runs_dir: str | None) -> None:
    """The flags that say how a sweep is carried out; None: the command chooses the place."""
    built.add_argument("--out", type=out_file, default=out, help="the CSV")
    built.add_argument("--runs_dir", type=out_folder, default=runs_dir, help="folder of the cells")
    choice.add_flags(built)
    built.add_argument("--width", type=WIDTH, help="trainings in a pack; default: the executor's")
    built.add_argument("--shard", type=_shard, default=(1, 1), help="i/n: only the i-th of n parts of the plan")
    built.add_argument("--dry_run", action="store_true", help="print what would be done")
    built.add_argument("--overwrite", action="store_true", help="retrain all cells of the plan")
    add_table_flags(built)
    resume.add_flags(built)
    cli.add_quiet(built)


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not i/n with i from 1 to n")
    return int(index), int(count)


def execution(flags: argparse.Namespace) -> Execution:
    """The execution that flags ask for; `UnusableEnvironment` if its executor cannot work here."""
    executor = flags.executor or choice.default_executor()
    resources = choice.resources_of(flags, flags.runs_dir)
    choice.check(executor, resources)
    width = choice.default_width(executor, resources) if flags.width is None else flags.width
    names = ("out", "shard", "dry_run", "overwrite", "quiet", "append", "replace_table")
    values: dict[str, Any] = {name: getattr(flags, name) for name in names}
    kept = resume.from_flags(flags)
    values |= {"executor": executor, "width": width, "persistence": kept, "resources": resources}
    return Execution(folder=flags.runs_dir, **values)


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
    grid = grid_of(flags, family, overrides)
    if flags.config_help:
        print(_field_listing(grid.models, overrides))
        return 0
    how = execution(flags)
    return carry_out(planned([grid], flags.quiet), how)


def _field_listing(models: Sequence[str], settings: Mapping[str, Any]) -> str:
    """A list of the config fields that can be set for these models."""
    return "\n\n".join(listing(preset_for_depth(model, "default", settings), tuple(RESERVED)) for model in models)


def planned(grids: Sequence[Grid], quiet: bool) -> list[Row]:
    """The rows of grids; says how many there are first if planning takes a while."""
    number = check_number(grids)
    if number > QUICK_PLAN and not quiet and sys.stderr is not None:
        print(f"planning {number} rows", file=sys.stderr, flush=True)
    return plan(grids)


def carry_out(rows: Sequence[Row], how: Execution) -> int:
    """Trains the unfinished cells of a plan and writes its CSV; returns the exit status."""
    chosen = shard(cells(rows), *how.shard)
    if how.folder.exists() and not how.folder.is_dir():
        raise StoreError(f"{how.folder} is a file, not a folder")
    check_out(how.out, how.folder)
    if not how.overwrite:
        refuse_earlier(rows, how.folder)
    check_plan(how.folder, how.out, rows, how.append)
    check_writable(how.folder, how.folder)
    if how.out.exists():
        now = current_rows(rows, how.folder, how.out)
        check(how.out, now if how.policy.replace else joined(now, rows, how.out), how.policy)
    check_devices()
    if how.dry_run:
        print(preview(rows, chosen, how))
        return 0
    with ExitStack() as locks, catch_signals(RESUME_HINT) as signals:
        _lock(locks, how)
        rows = _start(rows, chosen, how)
        finished, failed = _train(rows, chosen, how, signals)
        values = _write(rows, how, failed)
    if note := note_unknown(how.out):
        print(printable(note))
    done = sum(row["status"] == "done" for row in values)
    print(f"{printable(how.out)}: {done} of {len(values)} planned rows are done")
    return _print_report(chosen, finished, failed, how, signals)


def _lock(locks: ExitStack, how: Execution) -> None:
    """Locks the folder: one sweep at a time, or each shard of a sweep once."""
    index, count = how.shard
    locks.enter_context(locked(how.folder, shared=count > 1))
    if count > 1:
        locks.enter_context(locked(how.folder, f".lock_{index}_of_{count}"))


def _start(rows: Sequence[Row], chosen: Sequence[Cell], how: Execution) -> list[Row]:
    """Writes the table and the plan, and clears the cells to retrain; returns the rows that the sweep writes.

    These are its own rows and those of other plans of the table whose cells it clears. All checks come first, so
    nothing is lost if a cell is in use; one that is taken later is refused at its turn. The table is written before
    cells are cleared, so that after a kill it has no numbers without a cell.
    """
    runs = [how.folder / cell.name for cell in chosen if how.overwrite]
    begun = [run for run in runs if rundir.has_begun(run)]
    if begun:
        _check_parts(chosen)
    for run in begun:  # one after another, since a lock keeps a file open, and there may be 10^5
        with locked(run, below=how.folder):
            pass
    with locked_file(how.out, table.LOCK_TIMEOUT):
        together = check_plan(how.folder, how.out, rows, how.append)
        cleared = {cell.name for cell in chosen if how.overwrite}
        known = {*rows}
        rows = [*rows, *(row for row in together if row.cell.name in cleared and row not in known)]
        start(rows, how.folder, how.out, how.policy, [run.name for run in begun])
        write_plan(how.folder, how.out, together)
        for run in begun:
            with locked(run, below=how.folder):
                print_kept_files(run, rundir.clear(run))
    return rows


def _check_parts(chosen: Sequence[Cell]) -> None:
    """`ConfigError` if a plugin's family lacks a part; built-in families are complete, so JAX is not imported."""
    configs = {cell.config.family: cell.config for cell in chosen if FAMILIES.owner(cell.config.family)}
    if configs:
        from icl_lab.runners.finish import check_parts

        for config in configs.values():
            check_parts(config)


def _write(
    rows: Sequence[Row], how: Execution, failed: Container[str], timeout: float = table.LOCK_TIMEOUT
) -> list[dict[str, Any]]:
    """Writes the plan's rows into the CSV, which other shards may write too, and returns them."""
    with locked_file(how.out, timeout):
        return collect(rows, how.folder, how.out, failed)


def statuses_and_packs(chosen: Sequence[Cell], how: Execution) -> tuple[dict[Cell, str], list[Pack]]:
    """The cells with their statuses, and the packs of those to train."""
    status = statuses(chosen, how.folder)
    left = [cell for cell in chosen if how.overwrite or status[cell] not in rundir.FINISHED]
    return status, packs(left, how.width)


def _train(
    rows: Sequence[Row], chosen: Sequence[Cell], how: Execution, signals: Signals
) -> tuple[list[Path], dict[str, str]]:
    """Trains the unfinished cells, updating progress and CSV as packs end.

    Returns the runs that had finished, and the errors of those that failed.
    """
    status, waiting = statuses_and_packs(chosen, how)
    if not how.quiet:
        shown = sum(row.cell in status for row in rows)
        print(f"{shown} rows of {len(status)} cells: {status_counts(status.values())}", flush=True)
    _remove_checkpoints([how.folder / cell.name for cell in chosen if status[cell] == "done"], how.folder)
    left = {cell for pack in waiting for cell in pack.cells}
    finished, failed = [how.folder / cell.name for cell in chosen if cell not in left], dict[str, str]()
    if not waiting:
        return finished, failed
    pace, steps = Pace(TABLE_INTERVAL), 0
    with Progress(sum(pack.steps for pack in waiting), len(waiting), how.quiet) as progress:
        for result in _results(waiting, how, progress, signals):
            failed |= result.errors
            steps += result.pack.steps
            progress.ended(steps)
            if pace.due():
                with pace.timed(), suppress(StoreError, OSError):  # it is written again later; training continues
                    _write(rows, how, failed, timeout=0)
    return finished, failed


def _results(waiting: Sequence[Pack], how: Execution, progress: Progress, signals: Signals) -> Iterator[PackResult]:
    """Trains packs, those that build on other runs after these."""
    for together in generations(waiting):
        if signals.received:
            return
        tasks = [task_of(pack, how.folder, how.width, how.persistence) for pack in together]
        packs_of = {task.name: pack for task, pack in zip(tasks, together, strict=True)}
        carry_out_tasks = choice.executor(how.executor, how.resources)
        for outcome in carry_out_tasks(tasks, progress.report, signals):
            yield result_of(outcome, packs_of[outcome.task.name], how.folder)


def _remove_checkpoints(done: Sequence[Path], folder: Path) -> None:
    """Removes the checkpoints of cells that were killed just after their status became "done"."""
    for run in (run for run in done if (run / layout.CHECKPOINTS).exists()):
        with suppress(StoreError, OSError), locked(run, below=folder):
            if rundir.read_status(run) == "done":
                checkpoint.remove(run)


def _print_report(
    chosen: Sequence[Cell], finished: Sequence[Path], failed: Mapping[str, str], how: Execution, signals: Signals
) -> int:
    """Prints which cells failed or diverged, why, which had finished, and how to resume; returns the exit status."""
    status = statuses(chosen, how.folder)
    for name, reason in failed.items():
        print(printable(f"error: failed: {how.folder / name}: {reason}"), file=sys.stderr)
    for cell in chosen:
        if status[cell] == "diverged":
            print(printable(f"diverged: {how.folder / cell.name}"), file=sys.stderr)
    print_notices([how.folder / cell.name for cell in chosen if status[cell] in rundir.FINISHED], finished)
    if signals.received:
        print(f"stopped; the same command without --overwrite resumes it: {resume_command()}")
        return 128 + signals.received[0]
    if failed or not set(status.values()) <= set(rundir.FINISHED):
        print("the same command without --overwrite tries the failed cells again", file=sys.stderr)
        return 1
    return 0


def preview(rows: Sequence[Row], chosen: Sequence[Cell], how: Execution) -> str:
    """What would be done: each cell's status, the packs to train, and an estimate of the time."""
    status, waiting = statuses_and_packs(chosen, how)
    below = printable(how.folder / "_").removesuffix("_")
    lines = [f"{status[cell]:10} {below}{cell.name}" for cell in chosen]
    trainings = sum(pack.trainings for pack in waiting)
    minutes = cost.seconds(waiting, how.width, len(available_cores())) / 60
    places = len(waiting) * how.width
    shown = sum(row.cell in status for row in rows)
    lines.append(f"{shown} rows of {len(status)} cells: {status_counts(status.values())}")
    lines.append(
        f"{sum(len(pack.cells) for pack in waiting)} cells to do: {trainings} trainings in {len(waiting)} packs of "
        f"at most {how.width}, executor {how.executor}; about {minutes:.0f} min on the machine of docs/performance.md"
    )
    if trainings < places:
        widest = max(pack.trainings for pack in waiting)
        advice = f"; with --width {widest} there are fewer or none" if widest < how.width else ""
        lines.append(f"{places - trainings} of {places} places in packs are empty and take a training's time{advice}")
    return "\n".join(lines)
