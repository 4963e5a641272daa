"""A core's worker that dies or hears a signal that is not the sweep's: a stand-in that ends as it is told to."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runners.signals import Signals
from store import rundir
from sweeps import executors
from sweeps.plan import Pack, cells
from sweeps.training import PackResult
from sweeps.worker import WorkerDied
from tests.sweeps.tiny_sweep import tiny_plan

PACK = Pack(tuple(cells(tiny_plan())))
End = Callable[[], PackResult]


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> list[End]:
    """How the trainings of the next workers end, each worker training once."""
    ends: list[End] = []

    class Worker:
        def __init__(self, core: int):
            self.end = ends.pop(0)

        def train(self, *_: object) -> PackResult:
            return self.end()

        def close(self) -> None:
            self.end = lambda: pytest.fail("it is gone")

    monkeypatch.setattr(executors, "Worker", Worker)
    monkeypatch.setattr(executors, "available_cores", lambda: [0])
    return ends


def carried_out(folder: Path) -> list[PackResult]:
    return list(executors.run_in_workers(folder, [PACK], 8, lambda steps: None, Signals()))


def test_a_signal_that_reaches_a_worker_alone_costs_that_worker(tmp_path: Path, ending: list[End]) -> None:
    ending += [lambda: PackResult(PACK, {}, stopped=True)] * 2 + [lambda: PackResult(PACK, {})]
    assert carried_out(tmp_path) == [PackResult(PACK, {})]
    assert ending == []


def test_a_worker_that_dies_takes_what_it_had_not_finished(tmp_path: Path, ending: list[End]) -> None:
    done, diverged, stopped, fresh = (tmp_path / cell.name for cell in PACK.cells)
    for run, cell, status in zip((done, diverged, stopped), PACK.cells, ("done", "diverged", "stopped"), strict=False):
        rundir.begin(run, cell.config)
        rundir.update_meta(run, status=status)

    def die() -> PackResult:
        raise WorkerDied("it is dead")

    ending.append(die)
    assert carried_out(tmp_path) == [PackResult(PACK, dict.fromkeys((stopped.name, fresh.name), "it is dead"))]
    assert [rundir.read_status(run) for run in (done, diverged, stopped, fresh)] == [
        "done",
        "diverged",
        "failed",
        "new",
    ]
    assert rundir.read_meta(stopped)["error"] == "it is dead"
