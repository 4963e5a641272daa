"""Measures claims in one process per core, each with one thread; on an accelerator, which one process has, in this one.

A process ends when its pipe closes, so that killing the command ends them all.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path

import jax

from runners.training import device_text
from store.readers import StoreError
from studies.claim import Claim, Measurement
from studies.measuring import measure
from studies.study import Study, load
from sweeps.worker import available_cores


def measured(study: Study, claims: Sequence[Claim], runs_dir: Path) -> Iterator[tuple[Claim, Measurement | None]]:
    """Each claim with its measurement, in the order in which they are done; None unless all of its runs have ended.

    What a measure raises is raised here; `StoreError` for a process that dies.
    """
    if jax.default_backend() != "cpu":
        for claim in claims:
            yield claim, measure(study, claim, runs_dir, device_text())
        return
    waiting, spawn = deque(claims), get_context("spawn")
    taken: dict[Connection, Claim] = {}
    for core in available_cores()[: len(claims)]:
        ours, theirs = spawn.Pipe()
        spawn.Process(target=_serve, args=(theirs, core, study.name, runs_dir), daemon=True).start()
        theirs.close()
        _give(ours, waiting, taken)
    while taken:
        for ready in wait([*taken]):
            assert isinstance(ready, Connection)
            claim = taken.pop(ready)
            found = _answer(ready, claim)
            _give(ready, waiting, taken)
            yield claim, found


def _give(worker: Connection, waiting: deque[Claim], taken: dict[Connection, Claim]) -> None:
    """Gives a worker the next claim, or lets it end."""
    if not waiting:
        worker.close()
        return
    taken[worker] = waiting.popleft()
    with suppress(BrokenPipeError):  # its answer says so too
        worker.send(taken[worker].name)


def _answer(worker: Connection, claim: Claim) -> Measurement | None:
    """A worker's answer, or what it raised; `StoreError` if it has died."""
    try:
        found: Measurement | Exception | None = worker.recv()
    except (EOFError, ConnectionResetError):
        raise StoreError(f"the process that measured {claim.name} has died; the same command goes on") from None
    if isinstance(found, Exception):
        raise found
    return found


def _serve(asked: Connection, core: int, study_name: str, runs_dir: Path) -> None:
    """The process. It must have its core before JAX has its devices: JAX reads the available cores only once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the command, which closes the pipe
    os.environ["NPROC"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    study, names = load(study_name), _names(asked)
    claims = {claim.name: claim for claim in study.claims}
    while True:
        name = names.get()
        try:
            asked.send(measure(study, claims[name], runs_dir, device_text()))
        except Exception as error:  # the command says it
            asked.send(error)


def _names(asked: Connection) -> queue.SimpleQueue[str]:
    """Reads names in a background thread, which ends this process once the pipe is closed."""
    names: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        with suppress(EOFError, ConnectionResetError):
            while True:
                names.put(asked.recv())
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return names
