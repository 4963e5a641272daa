"""Analyses runs and measures claims in one process per core, each with one thread; on an accelerator, in this one.

A process ends when its pipe closes, so that killing the command ends them all.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import jax

from runners.training import device_text
from store.readers import StoreError
from studies.claim import Claim, Measurement
from studies.measuring import measure
from studies.study import Study, load
from sweeps.worker import available_cores


class Job(NamedTuple):
    """What a process does, a name in `JOBS`, and with what: a claim, or a run's directory as RUNS/CELL."""

    does: str
    name: str


def measured(study: Study, claims: Sequence[Claim], runs_dir: Path) -> Iterator[tuple[Claim, Measurement | None]]:
    """Each claim with its measurement, in the order in which they are done; None unless all of its runs have ended.

    What a measure raises is raised here; `StoreError` for a process that dies.
    """
    by_name = {claim.name: claim for claim in claims}
    for job, measurement in _done(study, [Job("measure", name) for name in by_name], runs_dir):
        yield by_name[job.name], measurement


def analysed(study: Study, runs: Sequence[str], runs_dir: Path) -> Iterator[str]:
    """Analyses these runs, each RUNS/CELL, with the study's analysis of RUNS; gives them as they are done."""
    for job, _ in _done(study, [Job("analyse", name) for name in runs], runs_dir):
        yield job.name


def _measure(study: Study, name: str, runs_dir: Path) -> Measurement | None:
    return measure(study, {claim.name: claim for claim in study.claims}[name], runs_dir, device_text())


def _analyse(study: Study, name: str, runs_dir: Path) -> None:
    runs, _, cell = name.partition("/")
    study.analyses[runs](runs_dir / cell)


class Kind(NamedTuple):
    """How a job is done, and what a process that has done it did."""

    do: Callable[[Study, str, Path], Any]
    past: str


JOBS: Mapping[str, Kind] = {"measure": Kind(_measure, "measured"), "analyse": Kind(_analyse, "analysed")}


def _done(study: Study, jobs: Sequence[Job], runs_dir: Path) -> Iterator[tuple[Job, Any]]:
    """Each job with its result, in the order in which they are done."""
    if jax.default_backend() != "cpu":
        for job in jobs:
            yield job, JOBS[job.does].do(study, job.name, runs_dir)
        return
    waiting, spawn = deque(jobs), get_context("spawn")
    again = study.again or partial(load, study.name)
    taken: dict[Connection, Job] = {}
    for core in available_cores()[: len(jobs)]:
        ours, theirs = spawn.Pipe()
        spawn.Process(target=_serve, args=(theirs, core, again, runs_dir), daemon=True).start()
        theirs.close()
        _give(ours, waiting, taken)
    while taken:
        for ready in wait([*taken]):
            assert isinstance(ready, Connection)
            job = taken.pop(ready)
            result = _answer(ready, job)
            _give(ready, waiting, taken)
            yield job, result


def _give(worker: Connection, waiting: deque[Job], taken: dict[Connection, Job]) -> None:
    """Gives a worker the next job, or lets it end."""
    if not waiting:
        worker.close()
        return
    taken[worker] = waiting.popleft()
    with suppress(BrokenPipeError):  # its answer says so too
        worker.send(taken[worker])


def _answer(worker: Connection, job: Job) -> Any:
    """A worker's answer, or what it raised; `StoreError` if it has died."""
    try:
        answer = worker.recv()
    except (EOFError, ConnectionResetError):
        raise StoreError(
            f"the process that {JOBS[job.does].past} {job.name} has died; the same command goes on"
        ) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _serve(asked: Connection, core: int, again: Callable[[], Study], runs_dir: Path) -> None:
    """The process. It must have its core before JAX has its devices: JAX reads the available cores only once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the command, which closes the pipe
    os.environ["NPROC"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    study, jobs = again(), _jobs(asked)
    while True:
        job = jobs.get()
        try:
            asked.send(JOBS[job.does].do(study, job.name, runs_dir))
        except Exception as error:  # the command says it
            asked.send(error)


def _jobs(asked: Connection) -> queue.SimpleQueue[Job]:
    """Reads jobs in a background thread, which ends this process once the pipe is closed."""
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()

    def read() -> None:
        with suppress(EOFError, ConnectionResetError):
            while True:
                jobs.put(asked.recv())
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return jobs
