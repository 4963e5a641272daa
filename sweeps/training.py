"""Training a pack of a sweep, as a task, and the progress of all packs."""

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
from icl_lab.lab.native.kernel import XLA, Kernel
from icl_lab.lab.progress import Logger, meter
from icl_lab.runners.locks import restore_threads
from icl_lab.runners.resume import AT_STEP_0, DEFAULT_PERSISTENCE, Persistence, Start
from icl_lab.runners.static_shape import Run
from icl_lab.store import provenance, rundir
from icl_lab.store.lock import in_use, locked
from icl_lab.store.readers import StoreError
from icl_lab.store.weights import Weights
from icl_lab.sweeps.plan import Pack, planned_run
from icl_lab.sweeps.status import statuses

LOCK_TIMEOUT = 10.0  # seconds to wait for a run's lock: the workers of a killed sweep take a moment to end


class PackResult(NamedTuple):
    """How a pack ended: the errors of failed runs, by name, and whether a signal stopped it with work left."""

    pack: Pack
    errors: Mapping[str, str]
    stopped: bool = False


def task_of(
    pack: Pack,
    folder: Path,
    width: int,
    persistence: Persistence,
    weights: Sequence[Weights] = (),
    kernel: Kernel = XLA,
) -> Task:
    """The task of training a pack's runs below `folder`, some of which may start from given parameters."""
    configs = [to_dict(run.config) for run in pack.runs]
    named = {run.config.init_from for run in pack.runs}
    start = Start(weights=tuple(each for each in weights if each.source in named))
    arguments = {"folder": folder, "configs": configs, "width": width, "persistence": persistence, "start": start}
    arguments["kernel"] = kernel
    names = tuple(run.name for run in pack.runs)
    return Task(names[0], "icl_lab.sweeps.training:train_task", arguments, alike=pack.shape, works_on=names)


def train_task(
    context: Context,
    folder: Path,
    configs: Sequence[Mapping[str, Any]],
    width: int,
    persistence: Persistence,
    start: Start = AT_STEP_0,
    kernel: Kernel = XLA,
) -> tuple[Mapping[str, str], bool]:
    """Trains the runs of these configs as a pack; returns the errors of failed runs, and whether it was stopped."""
    pack = Pack(tuple(planned_run(from_dict(config)) for config in configs))
    result = train(folder, pack, width, context.report, context.signals, persistence, start, kernel)
    return result.errors, result.stopped


def result_of(outcome: Outcome, pack: Pack, folder: Path) -> PackResult:
    """How a pack ended. If its process died, its unfinished runs have failed."""
    if outcome.error is not None:
        return PackResult(pack, {run.name: _message(outcome.error) for run in pack.runs})
    if outcome.value is not None:
        errors, stopped = outcome.value
        return PackResult(pack, errors, stopped)
    left = [run.name for run, status in statuses(pack.runs, folder).items() if status not in rundir.FINISHED]
    if not outcome.died:
        return PackResult(pack, {}, stopped=bool(left))
    for name in left:
        _mark_failed(folder / name, outcome.died)
    return PackResult(pack, dict.fromkeys(left, outcome.died))


def _mark_failed(directory: Path, reason: str) -> None:
    """Sets the status "failed" of a run that is not locked: a process reported dead may be alive on another host."""
    with suppress(StoreError, OSError):
        if rundir.has_begun(directory) and not in_use(directory):
            with locked(directory, below=directory.parent):
                rundir.mark_failed(directory, reason)


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
    start: Start = AT_STEP_0,
    kernel: Kernel = XLA,
) -> PackResult:
    """Trains a pack's runs below `folder`. An error ends its run, not the sweep; meta.json has the traceback."""
    from icl_lab.runners.loop import OutputOptions, run_pack  # imports JAX

    errors: dict[str, str] = {}
    with ExitStack() as locks:
        ready = []
        for planned in pack.runs:
            run = Run(folder / planned.name, planned.config)
            try:
                locks.enter_context(locked(run.directory, timeout=LOCK_TIMEOUT, below=folder))
                _check_run(run, width, persistence.strict_resume)
                ready.append(run)
            except Exception as error:
                errors[planned.name] = _message(error)
        outputs, logger = (
            OutputOptions(figures=False, table=True, keep_state=False),
            StepReporter(report, pack.trainings),
        )
        compile_cache.enable()
        training = partial(run_pack, logger=logger, outputs=outputs, width=width, signals=signals)
        training = partial(training, persistence=persistence, start=start, kernel=kernel)
        stopped = bool(ready) and _run_or_halve(ready, training, errors)
    return PackResult(pack, errors, stopped)


def _run_or_halve(runs: Sequence[Run], training: Callable[[Sequence[Run]], str], errors: dict[str, str]) -> bool:
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
    stopped = [_run_or_halve(part, training, errors) for part in (runs[:half], runs[half:])]
    return any(stopped)  # the second half always runs, to set its status


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"


def _check_run(run: Run, width: int, strict: bool) -> None:
    """`StoreError` if a run's directory cannot be used; if strict, also if the conditions have changed."""
    from icl_lab.runners.conditions import device_text

    rundir.choose(run.config, str(run.directory), overwrite=False)
    restore_threads(run.directory, width)
    if strict:
        provenance.check_conditions(run.directory, provenance.current_conditions(width, device_text()))


# --- progress ---


class Progress:
    """A context manager that shows the progress on standard error, like that of a single run."""

    def __init__(self, steps: int, packs: int, quiet: bool = False):
        self.steps, self.packs = steps, packs
        self.made, self.done = 0, 0
        self.meter = meter(steps, quiet=quiet)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.meter.close()

    def report(self, steps: int) -> None:
        """Counts training steps, without those repeated after an error."""
        self._reach(min(self.made + steps, self.steps))

    def ended(self, least: int) -> None:
        """Counts an ended pack; `least` steps now count as made, even if packs ended early."""
        self.done += 1
        self._reach(max(self.made, least))

    def _reach(self, made: int) -> None:
        self.made = made
        self.meter.reach(made, f"{self.done} of {self.packs} packs")
