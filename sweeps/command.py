"""What every sweep's command line shares: its flags, and carrying out a plan."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import cli
from configs.overrides import AUTO
from runners.command import same_command
from runners.flags import CONTEXT_FLAGS, CONTEXTS, number_or_auto
from runners.signals import Signals, hearing_signals
from src.config import ConfigError
from store import rundir
from store.lock import locked
from store.readers import StoreError
from sweeps import cost
from sweeps.collect import check_out, collect, status_of
from sweeps.executors import EXECUTORS
from sweeps.grid import Grid
from sweeps.plan import Cell, Pack, Row, cells, packs, plan, shard, write_plan
from sweeps.progress import Bar
from sweeps.status import counted, statuses
from sweeps.training import Outcome
from sweeps.worker import available_cores

SHORT = {"p": "noise_p", "sigma": "noise_sigma", "placement": "noise_placement"}  # other names of three axes
SECONDS_BETWEEN_TABLES = 10.0
FINISHED = ("done", "diverged")  # cells that are not trained again


class Execution(NamedTuple):
    """How a plan is carried out, and where."""

    folder: Path
    out: Path
    executor: str
    width: int
    shard: tuple[int, int]
    dry_run: bool
    overwrite: bool


def add_grid_flags(built: cli.Parser, defaults: Mapping[str, Sequence[Any]]) -> None:
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
    built.add_argument("--steps", type=int, help="training steps; the preset's if not given")
    built.epilog = "Any field of the runs' config: --config.KEY=VALUE, as in --config.dim=20."


def add_execution_flags(built: cli.Parser, out: str, runs_dir: str) -> None:
    """The flags of how a sweep is carried out."""
    built.add_argument("--out", type=Path, default=Path(out), help="the CSV")
    built.add_argument("--runs_dir", type=Path, default=Path(runs_dir), help="folder of the cells")
    built.add_argument("--executor", choices=EXECUTORS, default=default_executor(), help="who trains")
    built.add_argument("--width", type=int, help="trainings in a pack; the executor's if not given")
    built.add_argument("--shard", type=_shard, default=(1, 1), help="i/n: the i-th of n parts of the plan")
    built.add_argument("--dry_run", action="store_true", help="say what would be done")
    built.add_argument("--overwrite", action="store_true", help="train all cells of the plan anew")


def default_executor() -> str:
    """One process for each core; packs where a GPU is, which wide ones fill."""
    return "packed" if shutil.which("nvidia-smi") else "process"


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not i/n with i from 1 to n")
    return int(index), int(count)


def grid(flags: argparse.Namespace, overrides: Mapping[str, str]) -> Grid:
    """The grid that flags ask for."""
    axes = {f"{prefix}{flag}": getattr(flags, f"{prefix}{flag}") for prefix in CONTEXTS for flag in CONTEXT_FLAGS}
    settings = {"training.steps": flags.steps, **overrides}
    return Grid(tuple(flags.models), axes, tuple(flags.seeds), settings)


def execution(flags: argparse.Namespace) -> Execution:
    """How flags ask for a plan to be carried out; `UsageError` for a width that is none."""
    width = EXECUTORS[flags.executor].width if flags.width is None else flags.width
    if width < 1:
        raise cli.UsageError(f"width is {width}; a pack holds at least one training")
    return Execution(flags.runs_dir, flags.out, flags.executor, width, flags.shard, flags.dry_run, flags.overwrite)


def run(prog: str, description: str, defaults: Mapping[str, Sequence[Any]], out: str, runs_dir: str) -> None:
    """A sweep driver on this process's arguments: its grid is the product of its flags."""

    def main(argv: list[str]) -> int:
        rest, overrides = cli.split_config_flags(argv)
        built = cli.Parser(prog, description)
        add_grid_flags(built, defaults)
        add_execution_flags(built, out, runs_dir)
        flags = built.parse(rest)
        return carry_out(plan([grid(flags, overrides)]), execution(flags))

    cli.launch(main, StoreError, ConfigError)


def carry_out(rows: Sequence[Row], how: Execution) -> int:
    """Trains what a plan lacks and writes its CSV; the exit status."""
    chosen = shard(cells(rows), *how.shard)
    if how.dry_run:
        print(preview(rows, chosen, how))
        return 0
    check_out(how.out, how.folder)
    if how.folder.exists() and not how.folder.is_dir():
        raise StoreError(f"{how.folder} is a file, not a folder")
    with ExitStack() as locks, hearing_signals() as signals:
        _hold(locks, how)
        if how.overwrite:
            _clear(chosen, how.folder)
        _write(rows, how, [])
        outcomes = _train(rows, chosen, how, signals)
        values = _write(rows, how, outcomes)
    done = sum(row["status"] == "done" for row in values)
    print(f"{cli.printable(how.out)}: {done} of {len(values)} planned rows are done")
    return _report(outcomes, how, signals)


def _hold(locks: ExitStack, how: Execution) -> None:
    """One sweep at a time in a folder; of a sweep's shards, each one once."""
    index, count = how.shard
    locks.enter_context(locked(how.folder, shared=count > 1))
    if count > 1:
        locks.enter_context(locked(how.folder, f".lock_{index}_of_{count}"))


def _write(rows: Sequence[Row], how: Execution, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Writes the plan and the CSV, whose rows it gives. Shards do so in turns: their files may be the same."""
    with locked(how.folder, ".lock_table", patience=SECONDS_BETWEEN_TABLES):
        write_plan(how.folder, rows)
        return collect(rows, how.folder, how.out, _failed(outcomes))


def _clear(chosen: Sequence[Cell], folder: Path) -> None:
    """Clears cells, after all of them are held: nothing is lost if one of them is in use."""
    begun = [folder / cell.name for cell in chosen if rundir.has_begun(folder / cell.name)]
    with ExitStack() as locks:
        for run in begun:
            locks.enter_context(locked(run))
        for run in begun:
            rundir.clear(run)


def _train(rows: Sequence[Row], chosen: Sequence[Cell], how: Execution, signals: Signals) -> list[Outcome]:
    """Trains the cells that are left, under a progress bar; the CSV follows as packs end."""
    found = statuses(chosen, how.folder)
    parts = packs([cell for cell in chosen if found[cell] not in FINISHED], how.width)
    outcomes: list[Outcome] = []
    if not parts:
        return outcomes
    written = time.monotonic()
    with Bar(sum(steps_of(pack) for pack in parts)) as bar:
        for outcome in EXECUTORS[how.executor].run(how.folder, parts, how.width, bar.report, signals):
            outcomes.append(outcome)
            bar.ended(sum(steps_of(each.pack) for each in outcomes), len(outcomes), len(parts))
            if time.monotonic() - written > SECONDS_BETWEEN_TABLES:
                _write(rows, how, outcomes)
                written = time.monotonic()
    return outcomes


def _failed(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The cells that failed, and why."""
    return {name: reason for outcome in outcomes for name, reason in outcome.reasons.items()}


def steps_of(pack: Pack) -> int:
    """The training steps of a pack, over all its trainings."""
    return pack.trainings * pack.cells[0].config.training.steps


def _report(outcomes: Sequence[Outcome], how: Execution, signals: Signals) -> int:
    """Says which cells are missing and why, and how to go on; the exit status."""
    failed = _failed(outcomes)
    for name, reason in failed.items():
        print(cli.printable(f"error: failed: {how.folder / name}: {reason}"), file=sys.stderr)
    for cell in (cell for outcome in outcomes for cell in outcome.pack.cells):
        if status_of(cell, how.folder) == "diverged":
            print(cli.printable(f"diverged: {how.folder / cell.name}"), file=sys.stderr)
    if signals.heard:
        print(f"stopped; the same command without --overwrite resumes it: {same_command()}")
        return 128 + signals.heard[0]
    if failed:
        print("the same command without --overwrite tries the failed cells again", file=sys.stderr)
        return 1
    return 0


def preview(rows: Sequence[Row], chosen: Sequence[Cell], how: Execution) -> str:
    """What would be done: the cells and their statuses, the packs of those left, and the time that takes."""
    found = statuses(chosen, how.folder)
    left = [cell for cell in chosen if found[cell] not in FINISHED]
    parts = packs(left, how.width)
    lines = [f"{found[cell]:10} {cli.printable(how.folder / cell.name)}" for cell in chosen]
    trainings = sum(pack.trainings for pack in parts)
    minutes = cost.seconds(parts, len(available_cores())) / 60
    lines.append(f"{len(rows)} rows of {len(found)} cells: {counted(found)}")
    lines.append(
        f"{len(left)} cells to do: {trainings} trainings in {len(parts)} packs of at most {how.width} by "
        f"{how.executor}; about {minutes:.0f} min on a machine as in docs/performance.md"
    )
    return "\n".join(lines)
