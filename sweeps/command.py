"""What every sweep's command line shares: its flags, and carrying out a plan."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import cli
from configs.family import Family
from configs.fields import listing
from configs.registry import named
from environment import check_devices
from runners import persistence
from runners.command import same_command, say_changed
from runners.flags import preset_of_depth
from runners.holding import say_what_stays
from runners.persistence import Persistence
from runners.signals import RESUMES, Signals, hearing_signals
from src.checks import ConfigError
from src.registries import FAMILIES
from store import checkpoint, layout, rundir
from store.lock import locked, locked_file
from store.readers import StoreError
from sweeps import cost, earlier, table
from sweeps.collect import (
    add_table_flags,
    check_out,
    check_writable,
    collect,
    rows_now,
    settings_of,
    start,
)
from sweeps.executors import EXECUTORS
from sweeps.flags import add_flags, grid_of
from sweeps.grid import RESERVED, Grid, check_number
from sweeps.plan import Cell, Pack, Row, cells, check_plan, generations, packs, plan, shard, write_plan
from sweeps.progress import Progress
from sweeps.status import counted, statuses
from sweeps.training import Outcome
from sweeps.worker import available_cores

SECONDS_BETWEEN_TABLES = 10.0
AT_ONCE = 1000  # rows are planned in a moment
WIDEST = 4096  # trainings in a pack; more are a slip of the finger


class Execution(NamedTuple):
    """How a plan is carried out, and where."""

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

    @property
    def terms(self) -> table.Terms:
        """What may become of the rows that the table holds."""
        return table.Terms(self.append, self.replace_table, self.overwrite)


def add_execution_flags(built: cli.Parser, out: str | None, runs_dir: str | None) -> None:
    """The flags of how a sweep is carried out; None for a place that the command chooses."""
    built.add_argument("--out", type=Path, default=out and Path(out), help="the CSV")
    built.add_argument("--runs_dir", type=Path, default=runs_dir and Path(runs_dir), help="folder of the cells")
    built.add_argument("--executor", choices=EXECUTORS, help="who trains; process, or packed where there is a GPU")
    built.add_argument("--width", type=int, help="trainings in a pack; the executor's if not given")
    built.add_argument("--shard", type=_shard, default=(1, 1), help="i/n: the i-th of n parts of the plan")
    built.add_argument("--dry_run", action="store_true", help="say what would be done")
    built.add_argument("--overwrite", action="store_true", help="train all cells of the plan anew")
    add_table_flags(built)
    persistence.add_flags(built)
    cli.add_quiet(built)


def default_executor() -> str:
    """One process for each core; packs where a GPU is, which wide ones fill."""
    return "packed" if shutil.which("nvidia-smi") else "process"


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not i/n with i from 1 to n")
    return int(index), int(count)


def execution(flags: argparse.Namespace) -> Execution:
    """How flags ask for a plan to be carried out; `UsageError` for a width that is none."""
    executor = flags.executor or default_executor()
    width = EXECUTORS[executor].width if flags.width is None else flags.width
    if not 1 <= width <= WIDEST:
        raise cli.UsageError(f"width is {width}; a pack holds from 1 to {WIDEST} trainings")
    named = ("out", "shard", "dry_run", "overwrite", "quiet", "append", "replace_table")
    asked = {name: getattr(flags, name) for name in named}
    kept = persistence.from_flags(flags)
    return Execution(folder=flags.runs_dir, executor=executor, width=width, persistence=kept, **asked)


def run(
    family: str, prog: str, description: str, defaults: Mapping[str, Sequence[Any]], out: str, runs_dir: str
) -> NoReturn:
    """A sweep driver of a family on this process's arguments."""
    launch(lambda argv: main(named(family), prog, description, defaults, out, runs_dir, argv))


def launch(main: Callable[[list[str]], int]) -> NoReturn:
    """Runs a driver on this process's arguments, and exits."""
    cli.launch(main, StoreError, ConfigError)


def main(
    family: Family,
    prog: str,
    description: str,
    defaults: Mapping[str, Sequence[Any]],
    out: str,
    runs_dir: str,
    argv: list[str],
) -> int:
    """Parses, plans the product of the flags' values, and carries that out."""
    rest, overrides = cli.split_config_flags(argv)
    built = cli.Parser(prog, description)
    add_flags(built, family, defaults)
    cli.add_config_help(built)
    add_execution_flags(built, out, runs_dir)
    flags = built.parse(rest)
    grid = grid_of(flags, family, overrides)
    if flags.config_help:
        print(fields_of(grid.models, overrides))
        return 0
    return carry_out(planned([grid], flags.quiet), execution(flags))


def fields_of(models: Sequence[str], settings: Mapping[str, Any]) -> str:
    """The fields that may be set of all runs of these models."""
    return "\n\n".join(listing(preset_of_depth(model, "default", settings), tuple(RESERVED)) for model in models)


def planned(grids: Sequence[Grid], quiet: bool) -> list[Row]:
    """The rows of grids; where that takes a while, how many there are is said first."""
    number = check_number(grids)
    if number > AT_ONCE and not quiet and sys.stderr is not None:
        print(f"planning {number} rows", file=sys.stderr, flush=True)
    return plan(grids)


def carry_out(rows: Sequence[Row], how: Execution) -> int:
    """Trains what a plan lacks and writes its CSV; the exit status."""
    chosen = shard(cells(rows), *how.shard)
    if how.folder.exists() and not how.folder.is_dir():
        raise StoreError(f"{how.folder} is a file, not a folder")
    check_out(how.out, how.folder)
    taken = 0 if how.dry_run else earlier.take_over(rows, how.folder, how.out)
    if taken and not how.quiet:
        print(f"{earlier.counted(taken)} of this version now; an earlier one had made what is there", flush=True)
    check_plan(how.folder, how.out, rows, how.append)
    check_writable(how.folder, how.folder)
    earlier_cells = earlier.remark(rows, how.folder)  # of a dry run, whose table has their names
    if how.out.exists() and not earlier_cells and not earlier.renamed(rows, how.out):
        now = rows_now(rows, how.folder, how.out)
        table.check(how.out, now, settings_of(now), how.terms)
    check_devices()
    if how.dry_run:
        print("\n".join(filter(None, [preview(rows, chosen, how), earlier_cells])))
        return 0
    with ExitStack() as locks, hearing_signals(RESUMES) as signals:
        _hold(locks, how)
        rows = _start(rows, chosen, how)
        failed = _train(rows, chosen, how, signals)
        values = _write(rows, how, failed)
    done = sum(row["status"] == "done" for row in values)
    print(f"{cli.printable(how.out)}: {done} of {len(values)} planned rows are done")
    return _report(chosen, failed, how, signals)


def _hold(locks: ExitStack, how: Execution) -> None:
    """One sweep at a time in a folder; of a sweep's shards, each one once."""
    index, count = how.shard
    locks.enter_context(locked(how.folder, shared=count > 1))
    if count > 1:
        locks.enter_context(locked(how.folder, f".lock_{index}_of_{count}"))


def _start(rows: Sequence[Row], chosen: Sequence[Cell], how: Execution) -> list[Row]:
    """Writes the table and the plan, and clears the cells that are trained anew; gives the rows that the sweep writes.

    These are its own and, of other plans of the table, those of the cells that it clears.

    All that may refuse comes before the first of these: nothing is lost if one of the cells is in use. The table knows
    of the clearing before it begins, so a kill between them leaves no numbers in it that no cell has.
    """
    runs = [how.folder / cell.name for cell in chosen if how.overwrite]
    begun = [run for run in runs if rundir.has_begun(run)]
    if begun:
        _check_parts(chosen)
    with ExitStack() as locks:
        for run in begun:
            locks.enter_context(locked(run))
        locks.enter_context(locked_file(how.out, table.PATIENCE))
        together = check_plan(how.folder, how.out, rows, how.append)
        cleared = {cell.name for cell in chosen if how.overwrite}
        rows = [*rows, *(row for row in together if row.cell.name in cleared and row not in rows)]
        start(rows, how.folder, how.out, how.terms, [run.name for run in begun])
        write_plan(how.folder, how.out, together)
        for run in begun:
            say_what_stays(run, rundir.clear(run))
    return rows


def _check_parts(chosen: Sequence[Cell]) -> None:
    """`ConfigError` unless the families of plugins have their parts; the others have, and need no import of JAX."""
    own = {cell.config.family: cell.config for cell in chosen if FAMILIES.plugin(cell.config.family)}
    if own:
        from runners.finish import check_parts

        for config in own.values():
            check_parts(config)


def _write(
    rows: Sequence[Row], how: Execution, failed: Container[str], patience: float = table.PATIENCE
) -> list[dict[str, Any]]:
    """Writes the plan's rows into the CSV, and gives them. Others who write that table, as shards do, take turns."""
    with locked_file(how.out, patience):
        return collect(rows, how.folder, how.out, failed)


def work(chosen: Sequence[Cell], how: Execution) -> tuple[dict[Cell, str], list[Pack]]:
    """The cells with their statuses, and the packs of those that are to be trained."""
    found = statuses(chosen, how.folder)
    left = [cell for cell in chosen if how.overwrite or found[cell] not in rundir.FINISHED]
    return found, packs(left, how.width)


def _train(rows: Sequence[Row], chosen: Sequence[Cell], how: Execution, signals: Signals) -> dict[str, str]:
    """Trains the cells that are left, and shows the progress; the CSV follows as packs end. Gives why cells failed."""
    found, parts = work(chosen, how)
    if not how.quiet:
        shown = sum(row.cell in found for row in rows)
        print(f"{shown} rows of {len(found)} cells: {counted(found.values())}", flush=True)
    _tidy([how.folder / cell.name for cell in chosen if found[cell] == "done"])
    failed: dict[str, str] = {}
    if not parts:
        return failed
    written, steps = time.monotonic(), 0
    with Progress(sum(pack.steps for pack in parts), len(parts), how.quiet) as progress:
        for outcome in _outcomes(parts, how, progress, signals):
            failed |= outcome.reasons
            steps += outcome.pack.steps
            progress.ended(steps)
            if time.monotonic() - written > SECONDS_BETWEEN_TABLES:
                with suppress(StoreError, OSError):  # the next table says the same and more; training goes on
                    _write(rows, how, failed, patience=0)
                written = time.monotonic()
    return failed


def _outcomes(parts: Sequence[Pack], how: Execution, progress: Progress, signals: Signals) -> Iterator[Outcome]:
    """How packs end: those that build on others' runs begin when these have ended."""
    for together in generations(parts):
        if not signals.heard:
            train = EXECUTORS[how.executor].run
            yield from train(how.folder, together, how.width, progress.report, signals, how.persistence)


def _tidy(done: Sequence[Path]) -> None:
    """Removes the checkpoints of cells that were killed between their last two words."""
    for run in (run for run in done if (run / layout.CHECKPOINTS).exists()):
        with suppress(StoreError, OSError), locked(run):
            if rundir.read_status(run) == "done":
                checkpoint.remove(run)


def _report(chosen: Sequence[Cell], failed: Mapping[str, str], how: Execution, signals: Signals) -> int:
    """Says which cells are missing and why, and how to go on; the exit status."""
    found = statuses(chosen, how.folder)
    for name, reason in failed.items():
        print(cli.printable(f"error: failed: {how.folder / name}: {reason}"), file=sys.stderr)
    for cell in (cell for cell in chosen if found[cell] == "diverged"):
        print(cli.printable(f"diverged: {how.folder / cell.name}"), file=sys.stderr)
    say_changed([how.folder / cell.name for cell in chosen if found[cell] in rundir.FINISHED])
    if signals.heard:
        print(f"stopped; the same command without --overwrite resumes it: {same_command()}")
        return 128 + signals.heard[0]
    if failed or not set(found.values()) <= set(rundir.FINISHED):
        print("the same command without --overwrite tries the failed cells again", file=sys.stderr)
        return 1
    return 0


def preview(rows: Sequence[Row], chosen: Sequence[Cell], how: Execution) -> str:
    """What would be done: the cells and their statuses, the packs of those to train, and the time that takes."""
    found, parts = work(chosen, how)
    lines = [f"{found[cell]:10} {cli.printable(how.folder / cell.name)}" for cell in chosen]
    trainings = sum(pack.trainings for pack in parts)
    minutes = cost.seconds(parts, len(available_cores())) / 60
    shown = sum(row.cell in found for row in rows)
    lines.append(f"{shown} rows of {len(found)} cells: {counted(found.values())}")
    lines.append(
        f"{sum(len(pack.cells) for pack in parts)} cells to do: {trainings} trainings in {len(parts)} packs of at most "
        f"{how.width} by {how.executor}; about {minutes:.0f} min on a machine as in docs/performance.md"
    )
    return "\n".join(lines)
