"""Training one pack of a sweep in this process."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runners.command import restore_conditions
from runners.signals import Signals
from store import rundir
from store.lock import locked
from store.provenance import now
from store.readers import StoreError
from sweeps.plan import Pack

if TYPE_CHECKING:
    from runners.common import Job

PATIENCE = 10.0  # seconds that a cell's lock is waited for: a killed sweep's workers need a moment to notice

Report = Callable[[int], None]  # hears how many training steps were made


WORST_FIRST = ("stopped", "failed", "done", "diverged")


class Outcome(NamedTuple):
    """How a pack ended (done, diverged, stopped, failed, died), and why each cell that failed did, by name."""

    pack: Pack
    status: str
    reasons: Mapping[str, str]


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


def train(folder: Path, pack: Pack, width: int, report: Report, signals: Signals) -> Outcome:
    """Trains a pack's cells below `folder`. An error ends its cell, not the sweep: the traceback is with the cell."""
    from runners.common import Job  # imports JAX

    reasons: dict[str, str] = {}
    with ExitStack() as locks:
        ready = []
        for cell in pack.cells:
            job = Job(folder / cell.name, cell.config)
            try:
                locks.enter_context(locked(job.run, patience=PATIENCE))
                rundir.choose(job.config, str(job.run), overwrite=False)
                _begin_anew_unless_same(job.run, width)
                ready.append(job)
            except Exception as error:
                reasons[cell.name] = _in_words(error)
        status = _run(ready, width, StepReporter(report, pack.trainings), signals, reasons) if ready else "failed"
    return Outcome(pack, "failed" if reasons and status != "stopped" else status, reasons)


def _run(jobs: Sequence[Job], width: int, logger: StepReporter, signals: Signals, reasons: dict[str, str]) -> str:
    """Trains jobs together. After an error each half goes on by itself, until it is known whose error it is."""
    from runners.common import Wanted, run_pack

    try:
        return run_pack(jobs, logger, Wanted(figures=False, corruption=True), width, signals)
    except Exception as error:
        if len(jobs) == 1:
            reasons[jobs[0].run.name] = _in_words(error)
            note_failure(jobs[0].run, traceback.format_exc())
            return "failed"
    half = len(jobs) // 2
    found = [_run(part, width, logger, signals, reasons) for part in (jobs[:half], jobs[half:])]
    return next(status for status in WORST_FIRST if status in found)


def note_failure(run: Path, error: str) -> None:
    """Leaves the status "failed" and what is known of it with a cell that has begun and not ended, if that can be."""
    with suppress(OSError, StoreError):
        if rundir.read_status(run) == "running":
            rundir.update_meta(run, status="failed", error=error, end=now())


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"


def _begin_anew_unless_same(run: Path, width: int) -> None:
    """An unfinished cell that began with other threads, versions or width cannot go on to the same bits."""
    try:
        restore_conditions(run, width)
    except StoreError:
        rundir.clear(run)
