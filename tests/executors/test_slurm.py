"""SLURM's executor with submitit's local jobs: outcomes, pre-emption with the state saved at the signal, and a stop."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from executors.remote import Resources
from executors.signals import Signals
from executors.slurm import by_slurm
from executors.task import Outcome, Task
from tests.executors.waiting import until
from tests.executors.work import task


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
def test_preempted_it_goes_on_from_the_state_saved_at_the_signal(resources: Resources, tmp_path: Path) -> None:
    """As SLURM does: it signals the job, which asks to be queued again."""
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
