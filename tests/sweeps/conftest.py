"""The shared runs, the shared sweep, commands in this process, and an executor that trains nothing."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab.executors import choice
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Outcome, Report, Task
from tests.doors import ran, refused
from tests.runners.tiny import workshop
from tests.sweeps.tiny_sweep import swept

__all__ = ["ran", "refused", "swept", "workshop"]


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A fresh folder, and an executor whose tasks do what a test puts in here; without that, they end untrained."""
    monkeypatch.chdir(tmp_path)
    does: dict[str, Any] = {"task": lambda task: Outcome(task, ({}, False))}

    def run(tasks: Sequence[Task], report: Report, signals: Signals) -> Iterator[Outcome]:
        for task in tasks:
            if signals.received:
                return
            yield does["task"](task)

    monkeypatch.setattr(choice, "EXECUTORS", {"process": choice.Kind(run, 1)})
    monkeypatch.setattr(choice, "default_executor", lambda: "process")
    return does
