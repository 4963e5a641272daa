"""The local learning coefficient at the checkpoints of a run, each kept as it is estimated."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.llc import traces
from icl_lab.analysis.llc.curve import Curve, curve_of
from icl_lab.analysis.llc.estimator import Estimator
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.traces import digest_of
from icl_lab.analysis.loaded_run import shapes_of
from icl_lab.families.shared_arrays import arrays_of_model, shared_with
from icl_lab.families.task import model_of, task_key
from icl_lab.lab import compile_cache
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.executors.signals import exit_when_stopped
from icl_lab.lab.executors.task import Context, Executor, Task
from icl_lab.lab.progress import along
from icl_lab.src.checks import require
from icl_lab.src.model import Params
from icl_lab.src.precision import use_highest_precision
from icl_lab.src.prng import Purpose
from icl_lab.store import layout, rundir, snapshots
from icl_lab.store.lock import in_use
from icl_lab.store.metrics import last_step
from icl_lab.store.params import flattened, read_params
from icl_lab.store.readers import StoreError, check_arrays

POLL_SECONDS = 1.0  # between two looks at a run that is training
RESUME = "run the same command again to continue"
NO_SNAPSHOTS = "has no snapshots of its training; --config.snapshots=true keeps them"


def estimate_run(
    run: Path, settings: Settings, selection: str, executor: Executor | None = None
) -> Iterator[dict[str, Any]]:
    """Estimates the checkpoints that are not estimated yet with these settings; gives the rows of all selected.

    The run must be locked. With an executor each checkpoint is a task of its own, whose row comes first as it ends.
    """
    config, estimate = rundir.read_config(run), _Estimates(run, settings)
    steps = selected(run, last_step(run, config), selection)
    traces.check_own(run, settings, steps, beside=executor is not None)
    if executor is not None:
        yield from _estimate_as_tasks(run, settings, selection, executor)
    for step, params in along(_at(run, steps, selection), len(steps), "checkpoints"):
        row = traces.known_row(run, settings, step, digest := digest_of(params))
        if row is None:
            row = traces.write(run, settings, step, estimate(step, params))
            traces.write_table(run)
        traces.take_over(run, settings, step, digest)
        yield row
    traces.write_table(run)


def curves(
    run: Path,
    settings: Settings,
    selection: str,
    nbetas: Sequence[float],
    gammas: Sequence[float],
    multiplicity: int | None = None,
) -> Iterator[tuple[int, Curve]]:
    """(step, curve over nbeta and gamma) of each selected checkpoint. The run must be locked."""
    use_highest_precision()
    config = rundir.read_config(run)
    estimator = Estimator(config, settings, shared_with(config, run))
    root = task_key(config, Purpose.LLC_CHAIN)
    steps = selected(run, last_step(run, config), selection)
    for step, params in along(_at(run, steps, selection), len(steps), "checkpoints"):
        yield step, curve_of(estimator.problem(params), settings, nbetas, gammas, multiplicity, root, step)


def _estimate_as_tasks(run: Path, settings: Settings, selection: str, executor: Executor) -> Iterator[dict[str, Any]]:
    """The rows of the checkpoints that are not estimated yet; what a task raises is raised here.

    At a signal the checkpoints in work are estimated, and their rows given, before the process ends.
    """
    left = {
        step: digest
        for step, params in checkpoints(run, last_step(run, rundir.read_config(run)), selection)
        if traces.known_row(run, settings, step, digest := digest_of(params)) is None
    }
    tasks = [
        Task(
            str(step),
            f"{__name__}:estimate_task",
            {"run": run, "settings": settings, "step": step, "last": selection == "last"},
            works_on=(f"{run.name} {step}",),
        )
        for step in left
    ]
    with exit_when_stopped(RESUME) as signals:
        for outcome in executor(tasks, lambda amount: None, signals):
            if outcome.died:
                raise StoreError(f"the process that estimated step {outcome.task.name} has died; {RESUME}")
            if outcome.error is not None:
                raise outcome.error
            if outcome.value is None:  # it was stopped before it began
                continue
            traces.take_over(run, settings, step := int(outcome.task.name), left[step])
            traces.write_table(run)
            yield outcome.value


def estimate_task(context: Context, run: Path, settings: Settings, step: int, last: bool) -> dict[str, Any]:
    """Estimates a checkpoint; its traces are kept beside the run, which the command that asks has locked."""
    compile_cache.enable()
    _, params = next(_at(run, [step], "last" if last else str(step)))
    known, estimate = traces.known_row(run, settings, step, digest_of(params)), _estimates(run, settings)
    return known or traces.write_aside(run, settings, step, estimate(step, params), estimate.identity)


@lru_cache(maxsize=1)
def _estimates(run: Path, settings: Settings) -> _Estimates:
    """An estimator that a process keeps for the next checkpoint."""
    return _Estimates(run, settings)


def follow(run: Path, settings: Settings, selection: str) -> Iterator[dict[str, Any]]:
    """Estimates the checkpoints of a run that another process trains, until that ends; yields their rows.

    Nothing of the run is written, and its lock is left alone: `estimate_run` takes over what was kept beside it.
    """
    check_training(run)
    estimate, seen = _Estimates(run, settings), set[int]()
    traces.check_own(run, settings, planned(run, selection), beside=True)
    while True:
        ended = not is_training(run)  # asked first: what is recorded before the end is seen
        due = [step for step in _recorded(run, selection) if step not in seen]
        estimate.check_same()
        for step, params in _at(run, due, selection):
            row = traces.known_row(run, settings, step, digest_of(params))
            if row is None:
                row = traces.write_aside(run, settings, step, estimate(step, params), estimate.identity)
            seen.add(step)
            yield row
        if ended and not due:
            return
        if not due:
            time.sleep(POLL_SECONDS)


class _Estimates:
    """Traces of a run of one config as they are stored on disk; the estimator is built at the first call."""

    def __init__(self, run: Path, settings: Settings):
        self.run, self.settings = run, settings
        self.config, self.identity = rundir.read_config(run), rundir.stored_id(run)
        self.estimator: Estimator | None = None

    def check_same(self) -> None:
        """`StoreError` if the directory has another run by now."""
        if rundir.stored_id(self.run) != self.identity:
            raise StoreError(
                f"{self.run} was trained again with another config; run the same command again to follow the new run"
            )

    def __call__(self, step: int, params: Params) -> bytes:
        if self.estimator is None:
            use_highest_precision()
            self.estimator = Estimator(self.config, self.settings, shared_with(self.config, self.run))
        return traces.content(*self.estimator(step, params), params)


# --- a run that is training ---


def is_training(run: Path) -> bool:
    """Whether a process trains this run now."""
    return rundir.read_status(run) == "running" and in_use(run)


def check_training(run: Path) -> None:
    """`StoreError` unless a process trains this run now and keeps snapshots."""
    if not rundir.read_config(run).snapshots:
        raise StoreError(f"{run} {NO_SNAPSHOTS}")
    if not is_training(run):
        status = rundir.read_status(run)
        ended = status in rundir.FINISHED
        remedy = "leave --follow out" if ended else "start it first, or leave --follow out for what it has so far"
        raise StoreError(f"{run} is not training: {_STATUSES.get(status, f'its status is {status}')}; {remedy}")


_STATUSES = {"new": "it has not begun", "running": "its process was killed"}


def planned(run: Path, selection: str) -> list[int]:
    """The selected steps of those that a run will have snapshots of; `ConfigError` for a step without."""
    config = rundir.read_config(run)
    return _choose(run, list(config.record_steps), config.training.steps, selection)


def _recorded(run: Path, selection: str) -> list[int]:
    """The selected steps that can be read by now; the last parameters only when the run has ended."""
    return [] if selection == "last" else [step for step in planned(run, selection) if step in snapshots.steps(run)]


# --- which checkpoints ---


def checkpoints(run: Path, last: int, selection: str) -> Iterator[tuple[int, Params]]:
    """(step, parameters) of the selected checkpoints: all, last, every:K (one in K of them), log:N or steps.

    log:N are those nearest to N places at equal distances of log(1 + step), the first and the last among them;
    log:N:FROM begin at FROM, beside the first.

    Of a run that is not finished those that it has so far. `StoreError` for a run that has no snapshots, unless only
    the last is asked for; `ConfigError` for a step without.
    """
    yield from _at(run, selected(run, last, selection), selection)


def selected(run: Path, last: int, selection: str) -> list[int]:
    """The steps of the selected checkpoints, with the errors of `checkpoints`."""
    known = [] if selection == "last" else snapshots.steps(run)
    if not known and selection != "last":
        raise StoreError(f"{run} {NO_SNAPSHOTS}")
    return _choose(run, known, last, selection)


def _choose(run: Path, known: list[int], last: int, selection: str) -> list[int]:
    if selection == "last":
        return [last]
    kind, _, number = selection.partition(":")
    if kind in ("all", "every"):
        return known[:: int(number or 1)]
    if kind == "log":
        return _log_spaced(known, *map(int, number.split(":")))
    wanted = {int(word) for word in selection.split(",")}
    missing = sorted(wanted - {*known})
    require(not missing, f"{run} has no snapshot of step {missing[0] if missing else ''}; it has {_listed(known)}")
    return sorted(wanted)


def _log_spaced(known: list[int], number: int, begin: int = 0) -> list[int]:
    """The first step, and those nearest to `number` places at equal distances of log(1 + step) from `begin` on."""
    places = np.log1p(known)
    wanted = np.linspace(np.log1p(begin), places[-1], number)
    return sorted({known[0], *(known[int(np.abs(places - place).argmin())] for place in wanted)})


def _at(run: Path, steps: Sequence[int], selection: str) -> Iterator[tuple[int, Params]]:
    """The parameters at steps that are there; `StoreError` if they are not finite, or another model's."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, step, params in _kept(run, steps, selection):
        shapes = shapes or _shapes(rundir.read_config(run), run)
        check_arrays(run / name, flattened(params), shapes)
        yield step, params


def _shapes(config: RunConfig, run: Path) -> dict[str, tuple[int, ...]]:
    return shapes_of(model_of(config, arrays_of_model(config, run)))


def _kept(run: Path, steps: Sequence[int], selection: str) -> Iterator[tuple[str, int, Params]]:
    """The same as they are in files, with the names of these."""
    if selection == "last":
        yield from ((layout.PARAMS, step, read_params(run)) for step in steps)
    elif (run / layout.SNAPSHOTS).exists():
        yield from ((layout.SNAPSHOTS, *kept) for kept in snapshots.read(run) if kept[0] in steps)
    else:
        yield from ((layout.GROWING_SNAPSHOTS, *kept) for kept in snapshots.so_far(run, steps))


def _listed(steps: list[int]) -> str:
    return ", ".join(map(str, steps if len(steps) <= 12 else [*steps[:8], "...", *steps[-3:]]))
