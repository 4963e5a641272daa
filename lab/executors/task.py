"""Tasks, which executors carry out: training a pack, analysing a run, estimating a checkpoint, measuring a claim.

A task is resumable: its progress is on disk, and a rerun continues from there. So an executor may rerun a task whose
process has died, on another machine too, and the results are those of an uninterrupted task.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from icl_lab.lab.executors.signals import Signals

Report = Callable[[int], None]  # called with the amount of work done since the last call


class Task(NamedTuple):
    """A piece of work that any process can do.

    name: for messages. does: "module:function", called with a `Context` and the arguments, by name; these and the
    result must be picklable. alike: equal for tasks that share compiled programs; a process keeps to such tasks.
    works_on: what no other task may work on meanwhile, if that is not told by the name alone.
    """

    name: str
    does: str
    arguments: Mapping[str, Any]
    alike: Hashable = None
    works_on: tuple[str, ...] = ()

    @property
    def subjects(self) -> tuple[str, ...]:
        """What no other task may work on meanwhile."""
        return self.works_on or (f"{self.does} {self.name}",)


class Context(NamedTuple):
    """What a task is told while it runs: where to report progress, and the signals at which it stops."""

    report: Report
    signals: Signals


class Outcome(NamedTuple):
    """How a task ended: with a value, with what it raised, stopped by a signal, or with the death of its process.

    reported, said: the work that it has reported, and its lines on standard error, where these could not be passed on
    while it ran.
    """

    task: Task
    value: Any = None
    error: Exception | None = None
    stopped: bool = False
    died: str = ""
    reported: int = 0
    said: tuple[str, ...] = ()


class Executor(Protocol):
    """Carries out tasks in any order, and gives their outcomes as they end.

    After a signal the tasks in work stop at their next safe point and the others do not begin.
    """

    def __call__(self, tasks: Sequence[Task], report: Report, signals: Signals) -> Iterator[Outcome]:
        """Carries out tasks; the names differ."""


def carry_out(task: Task, context: Context) -> Outcome:
    """Does a task in this process. One that has received a signal counts as stopped: retried, it goes on."""
    module, _, function = task.does.partition(":")
    try:
        value = getattr(import_module(module), function)(context, **task.arguments)
    except Exception as error:
        return Outcome(task, error=_picklable(error), stopped=bool(context.signals.received))
    return Outcome(task, value, stopped=bool(context.signals.received))


def _picklable(error: Exception) -> Exception:
    """The exception, or one that says the same, if it cannot be sent from one process to another."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
