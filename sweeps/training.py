"""Training a pack of a sweep, as a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import compile_cache
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import to_dict
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Context, Outcome, Report, Task
from icl_lab.runners.progress import Logger
from icl_lab.runners.resume import DEFAULT_PERSISTENCE, Persistence, restore_threads
from icl_lab.runners.static_shape import Run
from icl_lab.store import provenance, rundir
from icl_lab.store.lock import in_use, locked
from icl_lab.store.readers import StoreError
from icl_lab.sweeps.plan import Pack, cell_of
from icl_lab.sweeps.status import statuses

LOCK_TIMEOUT = 10.0  # seconds to wait for a cell's lock: the workers of a killed sweep take a moment to end


class PackResult(NamedTuple):
    """How a pack ended: the errors of failed cells, by name, and whether a signal stopped it with work left."""

    pack: Pack
    errors: Mapping[str, str]
    stopped: bool = False


def task_of(pack: Pack, folder: Path, width: int, persistence: Persistence) -> Task:
    """The task of training a pack's cells below `folder`."""
    configs = [to_dict(cell.config) for cell in pack.cells]
    arguments = {"folder": folder, "configs": configs, "width": width, "persistence": persistence}
    names = tuple(cell.name for cell in pack.cells)
    return Task(names[0], "icl_lab.sweeps.training:train_task", arguments, alike=pack.shape, works_on=names)


def train_task(
    context: Context, folder: Path, configs: Sequence[Mapping[str, Any]], width: int, persistence: Persistence
) -> tuple[Mapping[str, str], bool]:
    """Trains the cells of these configs as a pack; returns the errors of failed cells, and whether it was stopped."""
    pack = Pack(tuple(cell_of(from_dict(config)) for config in configs))
    result = train(folder, pack, width, context.report, context.signals, persistence)
    return result.errors, result.stopped


def result_of(outcome: Outcome, pack: Pack, folder: Path) -> PackResult:
    """How a pack ended. If its process died, its unfinished cells have failed."""
    if outcome.error is not None:
        return PackResult(pack, {cell.name: _message(outcome.error) for cell in pack.cells})
    if outcome.value is not None:
        errors, stopped = outcome.value
        return PackResult(pack, errors, stopped)
    left = [cell.name for cell, status in statuses(pack.cells, folder).items() if status not in rundir.FINISHED]
    if not outcome.died:
        return PackResult(pack, {}, stopped=bool(left))
    for name in left:
        _mark_failed(folder / name, outcome.died)
    return PackResult(pack, dict.fromkeys(left, outcome.died))


def _mark_failed(run: Path, reason: str) -> None:
    """Sets the status "failed" of a cell that is not locked: a process reported dead may be alive on another host."""
    with suppress(StoreError, OSError):
        if rundir.has_begun(run) and not in_use(run):
            with locked(run, below=run.parent):
                rundir.mark_failed(run, reason)


class StepReporter(Logger):
    """A logger that reports the training steps made in all trainings of a pack."""

    def __init__(self, report: Report, trainings: int):
        self.report, self.trainings, self.step = report, trainings, 0

    def start(self, step: int, num_steps: int) -> None:
        """Steps made by an earlier process count too."""
        self.step = 0
        self.progress(step, 0.0)

    def progress(self, step: int, loss: float, note: str = "") -> None:
        """Reports the steps made since the last call."""
        self.report((step - self.step) * self.trainings)
        self.step = step


def train(
    folder: Path,
    pack: Pack,
    width: int,
    report: Report,
    signals: Signals,
    persistence: Persistence = DEFAULT_PERSISTENCE,
) -> PackResult:
    """Trains a pack's cells below `folder`. An error ends its cell, not the sweep; meta.json has the traceback."""
    from icl_lab.runners.loop import OutputOptions, run_pack  # imports JAX

    errors: dict[str, str] = {}
    with ExitStack() as locks:
        ready = []
        for cell in pack.cells:
            run = Run(folder / cell.name, cell.config)
            try:
                locks.enter_context(locked(run.directory, timeout=LOCK_TIMEOUT, below=folder))
                _check_cell(run, width, persistence.strict_resume)
                ready.append(run)
            except Exception as error:
                errors[cell.name] = _message(error)
        outputs, logger = OutputOptions(figures=False, table=True), StepReporter(report, pack.trainings)
        compile_cache.enable()
        training = partial(
            run_pack, logger=logger, outputs=outputs, width=width, signals=signals, persistence=persistence
        )
        stopped = bool(ready) and _run(ready, training, errors)
    return PackResult(pack, errors, stopped)


def _run(runs: Sequence[Run], training: Callable[[Sequence[Run]], str], errors: dict[str, str]) -> bool:
    """Trains runs together; returns whether a signal stopped them.

    After an error each half is trained by itself, until the failing run is found.
    """
    try:
        return training(runs) == "stopped"
    except Exception as error:
        if len(runs) == 1:
            errors[runs[0].directory.name] = _message(error)
            return False
    half = len(runs) // 2
    stopped = [_run(part, training, errors) for part in (runs[:half], runs[half:])]
    return any(stopped)  # the second half always runs, to set its status


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"


def _check_cell(run: Run, width: int, strict: bool) -> None:
    """`StoreError` if a cell's directory cannot be used; if strict, also if the conditions have changed."""
    from icl_lab.runners.loop import device_text

    rundir.choose(run.config, str(run.directory), overwrite=False)
    restore_threads(run.directory, width)
    if strict:
        provenance.check_conditions(run.directory, provenance.current_conditions(width, device_text()))
