"""SLURM's executor with submitit's local jobs: outcomes, pre-emption with the state saved at the signal, and a stop."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from executors import slurm
from executors.pace import Pace
from executors.remote import Resources
from executors.signals import Signals
from executors.slurm import Jobs, by_slurm
from executors.task import Outcome, Task
from tests.executors.waiting import until
from tests.executors.work import Unreadable, task


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    return Resources(slurm=(("cluster", "local"),), jobs=tmp_path / "jobs")


def done(resources: Resources, *tasks: Task, signals: Signals | None = None) -> dict[str, Outcome]:
    outcomes = by_slurm(tasks, lambda amount: None, signals or Signals(), resources)
    return {outcome.task.name: outcome for outcome in outcomes}


@pytest.mark.slow
def test_outcomes_are_those_of_any_executor(resources: Resources, tmp_path: Path) -> None:
    tasks = [
        task("two", "square", number=2),
        task("bad", "fail", word="so"),
        task("dies", "die", once=tmp_path / "once"),
    ]
    found = done(resources, *tasks)
    assert (found["two"].value, found["two"].reported) == (4, 1)
    assert isinstance(found["bad"].error, KeyError)
    assert found["dies"].value == "done again"
    assert list(by_slurm([], lambda amount: None, Signals(), resources)) == []


@pytest.mark.slow
def test_a_job_that_always_dies_is_said_and_its_log_stays(resources: Resources, tmp_path: Path) -> None:
    never = tmp_path / "absent" / "once"  # cannot be made: it fails, and does not die
    found = done(
        resources._replace(retries=0), task("dies", "die", once=tmp_path / "once"), task("f", "die", once=never)
    )
    assert "ended without a result" in found["dies"].died
    assert isinstance(found["f"].error, FileNotFoundError)
    assert list(resources.jobs.rglob("*_log.err"))


@pytest.mark.slow
def test_a_job_that_fails_outside_its_task_is_said_with_the_exception(resources: Resources) -> None:
    one = task("unreadable", "square", number=Unreadable())
    found = done(resources._replace(retries=0), one)
    assert found["unreadable"].died.endswith(" failed: ValueError: it cannot be read")


@pytest.mark.slow
def test_processes_are_as_many_at_once_as_cores(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "available_cores", lambda: [0, 1, 2, 3, 4])
    tasks = [task(str(number), "square", number=number) for number in range(5)]
    jobs, at_once, found = Jobs(tasks, resources.jobs, resources._replace(cpus=2)), [], []
    while jobs.fill():
        at_once.append(len(jobs.working))
        found += until("an outcome", jobs.ended)
    assert max(at_once) == 2
    assert {outcome.task.name: outcome.value for outcome in found} == {str(n): n * n for n in range(5)}


@pytest.mark.parametrize(
    ("gpus", "settings", "most"),
    [(0, {}, 6), (0, {"at_once": 9}, 9), (0.25, {}, 4), (1, {}, 1), (2, {"at_once": 9}, 1)],
)
def test_processes_share_the_gpus_that_all_of_them_get(
    gpus: float, settings: dict[str, int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "available_cores", lambda: list(range(6)))
    assert slurm._at_once_here(Resources(gpus=gpus, slurm=tuple(settings.items()))) == most


def test_a_folder_that_is_long_to_list_is_listed_rarely(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    now, listed = [0.0], []

    def iterdir(folder: Path) -> Iterator[Path]:
        listed.append(now[0])
        now[0] += 3
        return iter(())

    monkeypatch.setattr(slurm, "Pace", partial(Pace, clock=lambda: now[0]))
    monkeypatch.setattr(Path, "iterdir", iterdir)
    jobs = Jobs([], resources.jobs, resources)
    for now[0] in range(100):  # a second each
        jobs.ended()
    assert listed == [1, 34, 67]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{}, {"minutes": 1}])  # so near to its limit that each signal counts as reaching it
def test_preempted_it_goes_on_from_the_state_saved_at_the_signal(
    limit: dict[str, int], resources: Resources, tmp_path: Path
) -> None:
    """As SLURM does: it signals the job, which asks to be queued again. None has died, so no retries are needed."""
    resources = resources._replace(retries=0, slurm=(*resources.slurm, *limit.items()))
    file = tmp_path / "counted"
    outcomes: list[Outcome] = []
    one = task("long", "count", file=file, up_to=400)

    def wait() -> None:
        outcomes.extend(by_slurm([one], lambda amount: None, Signals(), resources))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until("twenty steps", lambda: file.exists() and int(file.read_text()) >= 20)
    jobs = subprocess.run(["pgrep", "-f", f"submitit.core._submit {resources.jobs}"], capture_output=True, text=True)
    assert jobs.stdout, sys.executable
    for process in jobs.stdout.split():
        subprocess.run(["kill", f"-{signal.SIGUSR2.value}", process], check=False)
    waiting.join(120)
    (outcome,) = outcomes
    assert (outcome.value, outcome.stopped) == (400, False)
    assert outcome.reported < 400 - 10  # the rest was counted before


@pytest.mark.slow
def test_a_signal_to_the_command_stops_jobs(resources: Resources, tmp_path: Path) -> None:
    signals, file = Signals(), tmp_path / "counted"

    def stop_when_begun() -> None:
        until("the first step", file.exists)
        signals.received.append(signal.SIGTERM)

    threading.Thread(target=stop_when_begun).start()
    found = done(resources, task("long", "count", file=file, up_to=100_000), signals=signals)
    assert found["long"].stopped
    assert found["long"].value == int(file.read_text())
