"""The work of a sweep: what is checked before it, its table and its plan, and packs for an executor until all end."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab.configs.stopping import LOSSES, condition_of
from icl_lab.lab.environment import check_devices
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.throttle import Throttle
from icl_lab.lab.native.kernel import Kernel
from icl_lab.lab.registries import FAMILIES
from icl_lab.runners import kernel as kernels
from icl_lab.runners.locks import print_kept_files
from icl_lab.runners.static_shape import Run
from icl_lab.src.words import printable
from icl_lab.store import checkpoint, layout, rundir
from icl_lab.store.lock import locked, locked_file
from icl_lab.store.readers import StoreError
from icl_lab.sweeps import sources, table
from icl_lab.sweeps.collect import (
    check,
    check_out,
    check_writable,
    collect,
    current_rows,
    joined,
    note_unknown,
    start,
)
from icl_lab.sweeps.execution import Execution
from icl_lab.sweeps.plan import Pack, PlannedRun, Point, generations, packs, runs_of, shard
from icl_lab.sweeps.plan_file import check_plan, write_plan
from icl_lab.sweeps.status import refuse_earlier, status_counts, statuses
from icl_lab.sweeps.training import PackResult, Progress, result_of, task_of

TABLE_INTERVAL = 10.0  # seconds at least between two writings of the table while runs train


class Ended(NamedTuple):
    """How the work ended: runs with their statuses, those that had finished before, the errors of failed ones."""

    status: Mapping[PlannedRun, str]
    finished: Sequence[Path]
    failed: Mapping[str, str]


def checked(points: Sequence[Point], how: Execution) -> list[PlannedRun]:
    """The runs of a plan, or of the shard, to carry out; raises where that would fail or lose what is there."""
    chosen = shard(runs_of(points), *how.shard)
    if how.folder.exists() and not how.folder.is_dir():
        raise StoreError(f"{how.folder} is a file, not a folder")
    check_out(how.out, how.folder)
    if not how.overwrite:
        refuse_earlier(points, how.folder)
    check_plan(how.folder, how.out, points, how.append)
    check_writable(how.folder, how.folder)
    if how.out.exists():
        now = current_rows(points, how.folder, how.out)
        check(how.out, now if how.policy.replace else joined(now, points, how.out), how.policy)
    sources.check(chosen, how.folder, how.weights)
    _check_rules(chosen, how.folder)
    check_devices()
    return chosen


def _check_rules(chosen: Sequence[PlannedRun], folder: Path) -> None:
    """`ConfigError` if a rule that ends trainings reads a column that a model's records do not have.

    Of runs that build on others, which may not be trained yet, each says so itself.
    """
    others = [run for run in chosen if run.config.stop_when and not run.config.requires]
    others = [run for run in others if condition_of(run.config.stop_when).column not in LOSSES]
    rules = {(run.config.name, run.config.stop_when, run.config.log_norms): run for run in others}
    for run in rules.values():
        from icl_lab.runners.early_ends import check_column  # imports JAX

        check_column(Run(folder / run.name, run.config))


def done(points: Sequence[Point], chosen: Sequence[PlannedRun], how: Execution, signals: Signals) -> Ended:
    """Trains the unfinished runs of those `chosen`, until a signal comes, and writes the CSV of the plan."""
    kernel = kernels.chosen(how.kernel, ((how.folder / run.name, run.config) for run in chosen), how.overwrite)
    with ExitStack() as locks:
        _lock(locks, how)
        points = _start(points, chosen, how)
        if kernel.why and not how.quiet:  # only now: a sweep that is refused says nothing but its error
            print(printable(kernel.line()), flush=True)
        finished, failed = _train(points, chosen, how, signals, kernel)
        values = _write(points, how, failed)
    if note := note_unknown(how.out):
        print(printable(note))
    number = sum(row["status"] == "done" for row in values)
    print(f"{printable(how.out)}: {number} of {len(values)} planned rows are done")
    return Ended(statuses(chosen, how.folder), finished, failed)


def _lock(locks: ExitStack, how: Execution) -> None:
    """Locks the folder: one sweep at a time, or each shard of a sweep once."""
    index, count = how.shard
    locks.enter_context(locked(how.folder, shared=count > 1))
    if count > 1:
        locks.enter_context(locked(how.folder, f".lock_{index}_of_{count}"))


def _start(points: Sequence[Point], chosen: Sequence[PlannedRun], how: Execution) -> list[Point]:
    """Writes the table and the plan, and clears the runs to retrain; returns the points whose rows the sweep writes.

    These are its own and those of other plans of the table whose runs it clears. All checks come first, so
    nothing is lost if a run is in use; one that is taken later is refused at its turn. The table is written before
    runs are cleared, so that after a kill it has no numbers without a run.
    """
    directories = [how.folder / run.name for run in chosen if how.overwrite]
    begun = [directory for directory in directories if rundir.has_begun(directory)]
    if begun:
        _check_parts(chosen)
    for directory in begun:  # one after another, since a lock keeps a file open, and there may be 10^5
        with locked(directory, below=how.folder):
            pass
    with locked_file(how.out, table.LOCK_TIMEOUT):
        together = check_plan(how.folder, how.out, points, how.append)
        cleared = {run.name for run in chosen if how.overwrite}
        known = {*points}
        points = [*points, *(point for point in together if point.run.name in cleared and point not in known)]
        start(points, how.folder, how.out, how.policy, [directory.name for directory in begun])
        write_plan(how.folder, how.out, together)
        for directory in begun:
            with locked(directory, below=how.folder):
                print_kept_files(directory, rundir.clear(directory))
    return points


def _check_parts(chosen: Sequence[PlannedRun]) -> None:
    """`ConfigError` if a plugin's family lacks a part; built-in families are complete, so JAX is not imported."""
    configs = {run.config.family: run.config for run in chosen if FAMILIES.owner(run.config.family)}
    if configs:
        from icl_lab.runners.finish import check_parts

        for config in configs.values():
            check_parts(config)


def _write(
    points: Sequence[Point], how: Execution, failed: Container[str], timeout: float = table.LOCK_TIMEOUT
) -> list[dict[str, Any]]:
    """Writes the plan's rows into the CSV, which other shards may write too, and returns them."""
    with locked_file(how.out, timeout):
        return collect(points, how.folder, how.out, failed)


def statuses_and_packs(chosen: Sequence[PlannedRun], how: Execution) -> tuple[dict[PlannedRun, str], list[Pack]]:
    """The runs with their statuses, and the packs of those to train."""
    status = statuses(chosen, how.folder)
    left = [run for run in chosen if how.overwrite or status[run] not in rundir.FINISHED]
    return status, packs(left, how.width)


def _train(
    points: Sequence[Point], chosen: Sequence[PlannedRun], how: Execution, signals: Signals, kernel: Kernel
) -> tuple[list[Path], dict[str, str]]:
    """Trains the unfinished runs, updating progress and CSV as packs end.

    Returns the runs that had finished, and the errors of those that failed.
    """
    status, waiting = statuses_and_packs(chosen, how)
    if not how.quiet:
        shown = sum(point.run in status for point in points)
        print(f"{shown} rows of {len(status)} runs: {status_counts(status.values())}", flush=True)
    _remove_checkpoints([how.folder / run.name for run in chosen if status[run] == "done"], how.folder)
    left = {run for pack in waiting for run in pack.runs}
    finished, failed = [how.folder / run.name for run in chosen if run not in left], dict[str, str]()
    if not waiting:
        return finished, failed
    throttle, steps = Throttle(TABLE_INTERVAL), 0
    with Progress(sum(pack.steps for pack in waiting), len(waiting), how.quiet) as progress:
        for result in _results(waiting, how, progress, signals, kernel):
            failed |= result.errors
            steps += result.pack.steps
            progress.ended(steps)
            if throttle.due():
                with throttle.timed(), suppress(StoreError, OSError):  # it is written again later; training continues
                    _write(points, how, failed, timeout=0)
    return finished, failed


def _results(
    waiting: Sequence[Pack], how: Execution, progress: Progress, signals: Signals, kernel: Kernel
) -> Iterator[PackResult]:
    """Trains packs, those that build on other runs after these."""
    for together in generations(waiting):
        if signals.received:
            return
        tasks = [task_of(pack, how.folder, how.width, how.persistence, how.weights, kernel) for pack in together]
        packs_of = {task.name: pack for task, pack in zip(tasks, together, strict=True)}
        carry_out_tasks = choice.executor(how.executor, how.resources)
        for outcome in carry_out_tasks(tasks, progress.report, signals):
            yield result_of(outcome, packs_of[outcome.task.name], how.folder)


def _remove_checkpoints(done: Sequence[Path], folder: Path) -> None:
    """Removes the checkpoints of runs that were killed just after their status became "done"."""
    for run in (run for run in done if (run / layout.CHECKPOINTS).exists()):
        with suppress(StoreError, OSError), locked(run, below=folder):
            if rundir.read_status(run) == "done":
                checkpoint.remove(run)
