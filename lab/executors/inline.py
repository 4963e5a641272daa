"""Carries out tasks in this process, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Context, Outcome, Report, Task, carry_out


def in_this_process(tasks: Sequence[Task], report: Report, signals: Signals) -> Iterator[Outcome]:
    """Carries out one task after another, until a signal comes."""
    for task in tasks:
        if signals.received:
            return
        yield carry_out(task, Context(report, signals))
