"""Executors: train packs, and yield a result for each.

packed   in this process, all trainings of a pack together under vmap
serial   in this process, one training after another
process  in one worker process per core, each with one thread
"""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from configs.run import RunConfig
from runners.persistence import DEFAULT_PERSISTENCE, Persistence
from runners.signals import Signals
from store import rundir
from sweeps.plan import Pack
from sweeps.status import statuses
from sweeps.training import PackResult, Report, train
from sweeps.worker import Worker, WorkerDied, available_cores

POLL_SECONDS = 0.2  # between two checks for signals while workers train


def run_in_this_process(
    folder: Path,
    packs: Sequence[Pack],
    width: int,
    report: Report,
    signals: Signals,
    persistence: Persistence = DEFAULT_PERSISTENCE,
) -> Iterator[PackResult]:
    """Trains one pack after another in this process."""
    for pack in packs:
        result = train(folder, pack, width, report, signals, persistence)
        yield result
        if result.stopped:
            return


def run_in_workers(
    folder: Path,
    packs: Sequence[Pack],
    width: int,
    report: Report,
    signals: Signals,
    persistence: Persistence = DEFAULT_PERSISTENCE,
) -> Iterator[PackResult]:
    """Trains packs in one process per core. Signals are passed on, and the processes stop with checkpoints.

    If a process dies, the unfinished cells of its pack fail, and a new process takes the next pack.
    """
    waiting, events = PackQueue(packs), queue.SimpleQueue[PackResult | int]()
    cores = available_cores()[: len(packs)]
    threads = [WorkerThread(core, folder, width, persistence, waiting, events) for core in cores]
    for thread in threads:
        thread.start()
    stopping = False
    while any(thread.is_alive() for thread in threads) or not events.empty():
        if signals.received and not stopping:
            stopping = True
            for thread in threads:
                thread.stop()
        try:
            event = events.get(timeout=POLL_SECONDS)
        except queue.Empty:
            continue
        if isinstance(event, PackResult):
            yield event
        else:
            report(event)


class PackQueue:
    """Packs that wait for workers. A worker keeps to one static shape while it can, whose programs it has compiled."""

    def __init__(self, packs: Sequence[Pack]):
        self._packs: dict[RunConfig, deque[Pack]] = {}
        for pack in packs:
            self._packs.setdefault(pack.shape, deque()).append(pack)
        self._workers: Counter[RunConfig] = Counter()
        self._lock = threading.Lock()

    def take(self, last: Pack | None) -> Pack | None:
        """The next pack for the worker that trained `last`: of its shape, else of the shape with most per worker."""
        with self._lock:
            shape = last.shape if last else None
            if shape is not None and not self._packs[shape]:
                self._workers[shape] -= 1
                shape = None
            if shape is None:
                left = {shape: len(packs) for shape, packs in self._packs.items() if packs}
                if not left:
                    return None
                shape = max(left, key=lambda shape: left[shape] / (1 + self._workers[shape]))
                self._workers[shape] += 1
            return self._packs[shape].popleft()


class WorkerThread(threading.Thread):
    """Keeps the worker process of a core busy, and queues its results and reports as events."""

    def __init__(
        self,
        core: int,
        folder: Path,
        width: int,
        persistence: Persistence,
        waiting: PackQueue,
        events: queue.SimpleQueue[PackResult | int],
    ):
        super().__init__(daemon=True)
        self.core, self.folder, self.width, self.persistence = core, folder, width, persistence
        self.waiting, self.events = waiting, events
        self.worker: Worker | None = None
        self.stopping = False
        self.lock = threading.Lock()  # of the two above: a worker started while a signal arrives must be stopped too

    def run(self) -> None:
        """Trains packs until none is left."""
        pack: Pack | None = None
        while not self.stopping and (pack := self.waiting.take(pack)):
            self.events.put(self._train(pack))
        self._close()

    def _train(self, pack: Pack) -> PackResult:
        """Trains a pack. If only the worker received a signal, a new worker resumes the pack."""
        try:
            result = self._live_worker().train(self.folder, pack, self.width, self.events.put, self.persistence)
        except OSError as error:  # no process could be started
            return PackResult(pack, {cell.name: str(error) for cell in pack.cells})
        except WorkerDied as death:
            with self.lock:
                self.worker = None
            return PackResult(pack, {}, stopped=True) if self.stopping else self._failed(pack, str(death))
        if result.stopped and not self.stopping:
            self._close()
            return self._train(pack)
        return result

    def _live_worker(self) -> Worker:
        with self.lock:
            self.worker = self.worker or Worker(self.core)
            if self.stopping:
                self.worker.stop()
            return self.worker

    def _close(self) -> None:
        with self.lock:
            worker, self.worker = self.worker, None
        if worker is not None:
            worker.close()

    def _failed(self, pack: Pack, reason: str) -> PackResult:
        """The result of a pack whose worker died: its unfinished cells have failed."""
        failed = [
            cell.name for cell, status in statuses(pack.cells, self.folder).items() if status not in rundir.FINISHED
        ]
        for name in failed:
            rundir.mark_failed(self.folder / name, reason)
        return PackResult(pack, dict.fromkeys(failed, reason))

    def stop(self) -> None:
        """Stops the pack in training at its next chunk, with a checkpoint, and takes no more packs."""
        with self.lock:
            self.stopping = True
            if self.worker is not None:
                self.worker.stop()


class Executor(NamedTuple):
    """The function that trains packs, and the default number of trainings in a pack."""

    run: Callable[[Path, Sequence[Pack], int, Report, Signals, Persistence], Iterator[PackResult]]
    width: int


EXECUTORS: Mapping[str, Executor] = {
    "packed": Executor(run_in_this_process, 8),
    "serial": Executor(run_in_this_process, 1),
    "process": Executor(run_in_workers, 1),
}
