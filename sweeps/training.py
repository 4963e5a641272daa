"""Training one pack of a sweep in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from runners.command import restore_conditions
from runners.signals import Signals
from store import rundir
from store.lock import locked
from store.readers import StoreError
from sweeps.plan import Pack

PATIENCE = 10.0  # seconds that a cell's lock is waited for: a killed sweep's workers need a moment to notice

Report = Callable[[int], None]  # hears how many training steps were made


class Outcome(NamedTuple):
    """How a pack ended (done, diverged, stopped, failed, died), and why, for one that failed."""

    pack: Pack
    status: str
    reason: str = ""


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
    """Trains a pack's cells below `folder`. An error ends the pack, not the sweep: the traceback is with the cells."""
    from runners.common import Job, Wanted, run_pack  # imports JAX

    jobs = [Job(folder / cell.name, cell.config) for cell in pack.cells]
    try:
        with ExitStack() as locks:
            for job in jobs:
                _hold(locks, job.run)
                rundir.choose(job.config, str(job.run), overwrite=False)
                _begin_anew_unless_same(job.run, width)
            logger = StepReporter(report, pack.trainings)
            return Outcome(pack, run_pack(jobs, logger, Wanted(figures=False, corruption=True), width, signals))
    except Exception as error:
        return Outcome(pack, "failed", f"{type(error).__name__}: {error}")


def _hold(locks: ExitStack, run: Path) -> None:
    """Locks a cell, after a while if another process holds it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            locks.enter_context(locked(run))
            return
        except StoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _begin_anew_unless_same(run: Path, width: int) -> None:
    """An unfinished cell that began with other threads, versions or width cannot go on to the same bits."""
    try:
        restore_conditions(run, width)
    except StoreError:
        rundir.clear(run)
