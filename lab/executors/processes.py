"""Carries out tasks in one worker process per core, each with one thread."""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Sequence

from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Outcome, Report, Task
from icl_lab.lab.executors.worker import Worker, WorkerDied, available_cores

POLL_SECONDS = 0.2  # between two checks for signals while workers work


def in_processes(tasks: Sequence[Task], report: Report, signals: Signals) -> Iterator[Outcome]:
    """Carries out tasks in one process per core. Signals are passed on.

    If a process dies its task has died, and a new process takes the next one. Closing the iterator ends the processes.
    """
    waiting, events = TaskQueue(tasks), queue.SimpleQueue[Outcome | int]()
    threads = [WorkerThread(core, waiting, events) for core in available_cores()[: len(tasks)]]
    for thread in threads:
        thread.start()
    stopping = False
    try:
        while any(thread.is_alive() for thread in threads) or not events.empty():
            if signals.received and not stopping:
                stopping = True
                for thread in threads:
                    thread.stop()
            try:
                event = events.get(timeout=POLL_SECONDS)
            except queue.Empty:
                continue
            if isinstance(event, Outcome):
                yield event
            else:
                report(event)
    finally:
        for thread in threads:
            thread.kill()


class TaskQueue:
    """Tasks that wait for workers. A worker keeps to one kind while it can, whose programs it has compiled."""

    def __init__(self, tasks: Sequence[Task]):
        self._tasks: dict[Hashable, deque[Task]] = {}
        for task in tasks:
            self._tasks.setdefault(task.alike, deque()).append(task)
        self._workers: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def take(self, last: Task | None) -> Task | None:
        """The next task for the worker that did `last`: of its kind, else of the kind with most per worker."""
        with self._lock:
            kinds = [] if last is None else [last.alike]
            if kinds and not self._tasks[kinds[0]]:
                self._workers[kinds.pop()] -= 1
            if not kinds:
                left = {kind: len(tasks) for kind, tasks in self._tasks.items() if tasks}
                if not left:
                    return None
                kinds = [max(left, key=lambda kind: left[kind] / (1 + self._workers[kind]))]
                self._workers[kinds[0]] += 1
            return self._tasks[kinds[0]].popleft()


class WorkerThread(threading.Thread):
    """Keeps the worker process of a core busy, and queues its outcomes and reports as events."""

    def __init__(self, core: int, waiting: TaskQueue, events: queue.SimpleQueue[Outcome | int]):
        super().__init__(daemon=True)
        self.core, self.waiting, self.events = core, waiting, events
        self.worker: Worker | None = None
        self.stopping = False
        self.lock = threading.Lock()  # of the two above: a worker started while a signal arrives must be stopped too

    def run(self) -> None:
        """Does tasks until none is left."""
        task: Task | None = None
        while not self.stopping and (task := self.waiting.take(task)):
            self.events.put(self._done(task))
        self._close()

    def _done(self, task: Task) -> Outcome:
        """Does a task. If only the worker received a signal, a new worker goes on with it."""
        try:
            outcome = self._live_worker().carry_out(task, self.events.put)
        except OSError as error:  # no process could be started
            return Outcome(task, error=error)
        except WorkerDied as death:
            with self.lock:
                self.worker = None
            return Outcome(task, stopped=True) if self.stopping else Outcome(task, died=str(death))
        if outcome.stopped and not self.stopping:
            self._close()
            return self._done(task)
        return outcome

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

    def stop(self) -> None:
        """Stops the task in work at its next safe point, and takes no more tasks."""
        with self.lock:
            self.stopping = True
            if self.worker is not None:
                self.worker.stop()

    def kill(self) -> None:
        """Ends the process, if it still works, and takes no more tasks."""
        with self.lock:
            self.stopping = True
            if self.worker is not None:
                self.worker.kill()
