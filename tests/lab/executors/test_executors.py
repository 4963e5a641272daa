"""Whoever carries out tasks, each has one outcome: its value, its error, a stop, or the death of its process."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from icl_lab.lab.executors import processes, worker
from icl_lab.lab.executors.inline import in_this_process
from icl_lab.lab.executors.processes import TaskQueue, in_processes
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Executor, Outcome, Task
from icl_lab.lab.executors.worker import WorkerDied
from tests.lab.executors.work import task

pytestmark = pytest.mark.robust

LOCAL: list[Executor] = [in_this_process, in_processes]


def done(run: Executor, *tasks: Task, signals: Signals | None = None) -> dict[str, Outcome]:
    outcomes = list(run(tasks, lambda amount: None, signals or Signals()))
    assert len({outcome.task.name for outcome in outcomes}) == len(outcomes)
    return {outcome.task.name: outcome for outcome in outcomes}


@pytest.mark.parametrize("run", LOCAL)
def test_each_task_has_its_value(run: Executor) -> None:
    reported: list[int] = []
    tasks = [task(str(number), "square", number=number) for number in range(5)]
    outcomes = list(run(tasks, reported.append, Signals()))
    assert all(outcome.task in tasks for outcome in outcomes)
    assert {outcome.task.name: outcome.value for outcome in outcomes} == {str(n): n * n for n in range(5)}
    assert sum(reported) == 5
    assert list(run([], reported.append, Signals())) == []


@pytest.mark.parametrize("run", LOCAL)
def test_an_error_is_the_tasks_alone(run: Executor) -> None:
    found = done(run, task("bad", "fail", word="so"), task("odd", "fail_oddly"), task("good", "square", number=3))
    assert found["good"].value == 9
    assert isinstance(found["bad"].error, KeyError)
    assert found["bad"].error.args == ("so",)
    assert str(found["odd"].error) == "Odd: 1 and 2"
    assert not any(outcome.stopped or outcome.died for outcome in found.values())


@pytest.mark.parametrize("run", LOCAL)
def test_what_is_not_there_is_an_error(run: Executor) -> None:
    found = done(run, Task("a", "tests.lab.executors.absent:one", {}), Task("b", "tests.lab.executors.work:absent", {}))
    assert isinstance(found["a"].error, ModuleNotFoundError)
    assert isinstance(found["b"].error, AttributeError)


def test_workers_are_other_processes_of_one_thread() -> None:
    found = done(in_processes, task("a", "process"), task("b", "process"))
    pids = {outcome.value[0] for outcome in found.values()}
    assert os.getpid() not in pids
    assert {outcome.value[1] for outcome in found.values()} == {"1"}


def test_a_process_that_dies_takes_its_task_and_no_more(tmp_path: Path) -> None:
    tasks = [task("dies", "die", once=tmp_path / "once"), *(task(str(n), "square", number=n) for n in range(4))]
    found = done(in_processes, *tasks)
    assert found["dies"].died == "its process ended with exit status -9"
    assert {name: outcome.value for name, outcome in found.items() if name != "dies"} == {
        str(n): n * n for n in range(4)
    }
    assert done(in_processes, tasks[0])["dies"].value == "retried"


@pytest.mark.parametrize("run", LOCAL)
def test_a_signal_stops_tasks_which_go_on_from_there(run: Executor, tmp_path: Path) -> None:
    signals, file = Signals(), tmp_path / "counted"
    tasks = [task("long", "count", file=file, up_to=300), *(task(str(n), "square", number=n) for n in range(9))]

    def report(amount: int) -> None:
        if file.exists() and int(file.read_text()) >= 3:
            signals.received.append(signal.SIGTERM)

    found = {outcome.task.name: outcome for outcome in run(tasks, report, signals)}
    assert found["long"].stopped
    assert 3 <= found["long"].value < 300
    assert done(run, task("long", "count", file=file, up_to=found["long"].value + 2))["long"].value == int(
        file.read_text()
    )


def test_closed_it_leaves_no_process(tmp_path: Path) -> None:
    """As when what waits for the outcomes raises an error, or is interrupted."""
    pids: list[int] = []
    tasks = [task("a", "process"), task("long", "count", file=tmp_path / "counted", up_to=10_000)]
    outcomes = in_processes(tasks, lambda amount: None, Signals())
    pids.append(next(outcomes).value[0])
    outcomes.close()  # type: ignore[attr-defined]
    counted = (tmp_path / "counted").read_text() if (tmp_path / "counted").exists() else ""
    for thread in processes.threading.enumerate():
        if isinstance(thread, processes.WorkerThread):
            thread.join(10)
    assert counted != "10000"
    assert not Path(f"/proc/{pids[0]}").exists() or "Z" in Path(f"/proc/{pids[0]}/stat").read_text().split(")")[1]


# --- a worker's thread, with a stand-in that ends as it is told to ---

End = Callable[[], Outcome]
PACK = Task("pack", "nowhere:nothing", {})


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> list[End]:
    """How the tasks of the next workers end, each worker doing one."""
    ends: list[End] = []

    class Worker:
        def __init__(self, core: int):
            self.end = ends.pop(0)

        def carry_out(self, *_: object) -> Outcome:
            return self.end()

        def close(self) -> None:
            self.end = lambda: pytest.fail("it is gone")

    monkeypatch.setattr(processes, "Worker", Worker)
    monkeypatch.setattr(processes, "available_cores", lambda: [0])
    return ends


def test_a_signal_that_reaches_a_worker_alone_costs_that_worker(ending: list[End]) -> None:
    ending += [lambda: Outcome(PACK, stopped=True)] * 2 + [lambda: Outcome(PACK, "done")]
    assert done(in_processes, PACK) == {"pack": Outcome(PACK, "done")}
    assert ending == []


def test_a_worker_that_dies_or_cannot_start_is_said(ending: list[End]) -> None:
    def die() -> Outcome:
        raise WorkerDied("it is dead")

    def refuse() -> Outcome:
        raise OSError("no process")

    ending += [die, refuse]
    assert done(in_processes, PACK)["pack"].died == "it is dead"
    assert str(done(in_processes, PACK)["pack"].error) == "no process"


def test_a_worker_goes_on_with_the_kind_it_has_compiled() -> None:
    """Each keeps its kind while there is one of it, then helps with what has most left."""
    waiting = TaskQueue([Task(f"{kind}{n}", "", {}, kind) for kind in ("random", "sorted") for n in range(3)])
    last: dict[str, Task | None] = {"a": None, "b": None}
    taken = []
    for name in "abaaab":
        task = last[name] = waiting.take(last[name])
        assert task is not None
        taken.append((name, task.alike))
    first = [("a", "random"), ("b", "sorted"), ("a", "random"), ("a", "random")]
    assert taken == [*first, ("a", "sorted"), ("b", "sorted")]
    assert waiting.take(last["a"]) is None
    assert waiting.take(None) is None


@pytest.mark.parametrize("affinity", [True, False])
def test_cores_are_counted_where_the_system_does_not_tell_them(affinity: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if affinity:
        monkeypatch.setattr(worker.os, "sched_getaffinity", lambda _: {5, 2}, raising=False)
        assert worker.available_cores() == [2, 5]
    else:
        monkeypatch.delattr(worker.os, "sched_getaffinity", raising=False)
        monkeypatch.setattr(worker.os, "cpu_count", lambda: 3)
        assert worker.available_cores() == [0, 1, 2]
