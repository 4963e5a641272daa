"""Executors: each trains packs somewhere and says, pack by pack, how they ended.

packed   here, all trainings of a pack together under vmap
serial   here, one training after another
process  in processes of their own, one for each core, each with one thread
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

POLL_SECONDS = 0.2  # seconds between two looks at signals while workers train


def run_in_process(
    folder: Path,
    packs: Sequence[Pack],
    width: int,
    report: Report,
    signals: Signals,
    persistence: Persistence = DEFAULT_PERSISTENCE,
) -> Iterator[PackResult]:
    """Trains one pack after another in this process."""
    for pack in packs:
        outcome = train(folder, pack, width, report, signals, persistence)
        yield outcome
        if outcome.stopped:
            return


def run_in_processes(
    folder: Path,
    packs: Sequence[Pack],
    width: int,
    report: Report,
    signals: Signals,
    persistence: Persistence = DEFAULT_PERSISTENCE,
) -> Iterator[PackResult]:
    """Trains packs in a process for each core. A signal goes on to them, and they stop with checkpoints.

    A process that dies takes its pack with it and no more: the cells it had not finished have failed, and another
    process goes on.
    """
    waiting, news = PackQueue(packs), queue.SimpleQueue[PackResult | int]()
    cores = available_cores()[: len(packs)]
    crews = [WorkerThread(core, folder, width, persistence, waiting, news) for core in cores]
    for crew in crews:
        crew.start()
    told = False
    while any(crew.is_alive() for crew in crews) or not news.empty():
        if signals.heard and not told:
            told = True
            for crew in crews:
                crew.stop()
        try:
            found = news.get(timeout=POLL_SECONDS)
        except queue.Empty:
            continue
        if isinstance(found, PackResult):
            yield found
        else:
            report(found)


class PackQueue:
    """Packs that wait for workers. One that has compiled the programs of a static shape goes on with that shape."""

    def __init__(self, packs: Sequence[Pack]):
        self._packs: dict[RunConfig, deque[Pack]] = {}
        for pack in packs:
            self._packs.setdefault(pack.shape, deque()).append(pack)
        self._workers: Counter[RunConfig] = Counter()
        self._taking = threading.Lock()

    def take(self, last: Pack | None) -> Pack | None:
        """The next pack for the worker that trained `last`: of its shape, else of the one with most left a worker."""
        with self._taking:
            shape = last.shape if last else None
            if shape is not None and not self._packs[shape]:
                self._workers[shape] -= 1
                shape = None
            if shape is None:
                left = {found: len(packs) for found, packs in self._packs.items() if packs}
                if not left:
                    return None
                shape = max(left, key=lambda found: left[found] / (1 + self._workers[found]))
                self._workers[shape] += 1
            return self._packs[shape].popleft()


class WorkerThread(threading.Thread):
    """Keeps a worker process on a core busy, and puts what it says among the news."""

    def __init__(
        self,
        core: int,
        folder: Path,
        width: int,
        persistence: Persistence,
        waiting: PackQueue,
        news: queue.SimpleQueue[PackResult | int],
    ):
        super().__init__(daemon=True)
        self.core, self.folder, self.width, self.persistence = core, folder, width, persistence
        self.waiting, self.news = waiting, news
        self.worker: Worker | None = None
        self.stopping = False
        self.changing = threading.Lock()  # of the two above: a worker that starts as a signal comes must hear of it

    def run(self) -> None:
        """Hands over packs until there are no more."""
        pack: Pack | None = None
        while not self.stopping and (pack := self.waiting.take(pack)):
            self.news.put(self._train(pack))
        self._dismiss()

    def _train(self, pack: Pack) -> PackResult:
        """Trains a pack; a worker that a signal reached alone is replaced, and the new one goes on."""
        try:
            outcome = self._at_work().train(self.folder, pack, self.width, self.news.put, self.persistence)
        except OSError as error:  # no more processes
            return PackResult(pack, {cell.name: str(error) for cell in pack.cells})
        except WorkerDied as death:
            with self.changing:
                self.worker = None
            return PackResult(pack, {}, stopped=True) if self.stopping else self._lost(pack, str(death))
        if outcome.stopped and not self.stopping:
            self._dismiss()
            return self._train(pack)
        return outcome

    def _at_work(self) -> Worker:
        with self.changing:
            self.worker = self.worker or Worker(self.core)
            if self.stopping:
                self.worker.stop()
            return self.worker

    def _dismiss(self) -> None:
        with self.changing:
            worker, self.worker = self.worker, None
        if worker is not None:
            worker.dismiss()

    def _lost(self, pack: Pack, reason: str) -> PackResult:
        """The outcome of a pack whose worker died: what it had not finished has failed."""
        found = statuses(pack.cells, self.folder)
        failed = [cell.name for cell, status in found.items() if status not in rundir.FINISHED]
        for name in failed:
            rundir.mark_failed(self.folder / name, reason)
        return PackResult(pack, dict.fromkeys(failed, reason))

    def stop(self) -> None:
        """Ends the pack in training at its next chunk, with a checkpoint, and takes no other."""
        with self.changing:
            self.stopping = True
            if self.worker is not None:
                self.worker.stop()


class Executor(NamedTuple):
    """How packs are trained: the function, and how many trainings a pack holds if nothing else is asked for."""

    run: Callable[[Path, Sequence[Pack], int, Report, Signals, Persistence], Iterator[PackResult]]
    width: int


EXECUTORS: Mapping[str, Executor] = {
    "packed": Executor(run_in_process, 8),
    "serial": Executor(run_in_process, 1),
    "process": Executor(run_in_processes, 1),
}
