"""Training one pack of a sweep in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runners.locking import restore_threads
from runners.persistence import DEFAULT_PERSISTENCE, Persistence
from runners.signals import Signals
from store import conditions, rundir
from store.lock import locked
from store.readers import StoreError
from sweeps.plan import Pack

if TYPE_CHECKING:
    from runners.training import Job

LOCK_TIMEOUT = 10.0  # seconds that a cell's lock is waited for: a killed sweep's workers need a moment to notice

Report = Callable[[int], None]  # hears how many training steps were made


class PackResult(NamedTuple):
    """How a pack ended: why each cell that failed did, by name, and whether a signal stopped it with work left."""

    pack: Pack
    reasons: Mapping[str, str]
    stopped: bool = False


class StepReporter:
    """A logger that reports a pack's progress as training steps made, those of all its trainings."""

    def __init__(self, report: Report, trainings: int):
        self.report, self.trainings, self.step = report, trainings, 0

    def line(self, text: str) -> None:
        """Not reported."""

    def start(self, step: int, num_steps: int) -> None:
        """Steps that an earlier process made count."""
        self.step = 0
        self.progress(step, 0.0)

    def progress(self, step: int, loss: float) -> None:
        """Reports the steps since the last time."""
        self.report((step - self.step) * self.trainings)
        self.step = step

    def stop(self) -> None:
        """Nothing is open."""


def train(
    folder: Path,
    pack: Pack,
    width: int,
    report: Report,
    signals: Signals,
    persistence: Persistence = DEFAULT_PERSISTENCE,
) -> PackResult:
    """Trains a pack's cells below `folder`. An error ends its cell, not the sweep: the traceback is with the cell."""
    from runners.training import Job, Wanted, run_pack  # imports JAX

    reasons: dict[str, str] = {}
    with ExitStack() as locks:
        ready = []
        for cell in pack.cells:
            job = Job(folder / cell.name, cell.config)
            try:
                locks.enter_context(locked(job.run, patience=LOCK_TIMEOUT))
                _make_ready(job, width, persistence.strict_resume)
                ready.append(job)
            except Exception as error:
                reasons[cell.name] = _in_words(error)
        wanted, logger = Wanted(figures=False, table=True), StepReporter(report, pack.trainings)
        training = partial(
            run_pack, logger=logger, wanted=wanted, width=width, signals=signals, persistence=persistence
        )
        stopped = bool(ready) and _run(ready, training, reasons)
    return PackResult(pack, reasons, stopped)


def _run(jobs: Sequence[Job], training: Callable[[Sequence[Job]], str], reasons: dict[str, str]) -> bool:
    """Trains jobs together; whether a signal stopped them. After an error each half goes on by itself, until it is
    known whose error it is.
    """
    try:
        return training(jobs) == "stopped"
    except Exception as error:
        if len(jobs) == 1:
            reasons[jobs[0].run.name] = _in_words(error)
            return False
    half = len(jobs) // 2
    stopped = [_run(part, training, reasons) for part in (jobs[:half], jobs[half:])]
    return any(stopped)  # the second half is asked in any case: it says so in its directories


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"


def _make_ready(job: Job, width: int, strict: bool) -> None:
    """`StoreError` if a cell's place holds what cannot be gone on with; if strict, what has other conditions too."""
    from runners.training import device_text

    rundir.choose(job.config, str(job.run), overwrite=False)
    restore_threads(job.run, width)
    if strict:
        conditions.check(job.run, conditions.current(width, device_text()))
