"""SLURM's executor on a real cluster of this machine, which keeps no accounts of the jobs that have ended."""

import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from icl_lab.lab.environment import UnusableEnvironment
from icl_lab.lab.executors import slurm_queue
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.slurm import by_slurm
from icl_lab.lab.executors.task import Outcome, Task
from tests.lab.executors.repeated import killed_and_repeated
from tests.lab.executors.slurm_cluster import LARGEST_ARRAY, queued, running_jobs, slurm_cluster
from tests.lab.executors.waiting import until
from tests.lab.executors.work import task
from tests.runners.tiny import Workshop
from tests.sweeps.tiny_sweep import LONG_GRID, sweep, sweep_paths

pytestmark = [pytest.mark.robust, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with slurm_cluster():
        yield


@pytest.fixture
def resources(cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Resources:
    monkeypatch.setattr(slurm_queue, "POLL_SECONDS", 0.5)
    monkeypatch.setattr(slurm_queue, "GONE_SECONDS", 2.0)
    return Resources(jobs=tmp_path / "jobs")


def done(resources: Resources, *tasks: Task, signals: Signals | None = None) -> dict[str, Outcome]:
    outcomes = by_slurm(tasks, lambda amount: None, signals or Signals(), resources)
    return {outcome.task.name: outcome for outcome in outcomes}


def test_outcomes_are_those_of_any_executor_in_arrays_as_large_as_the_cluster_takes(
    resources: Resources, tmp_path: Path
) -> None:
    many = [task(f"square {number}", "square", number=number) for number in range(3 * LARGEST_ARRAY)]
    others = [task("bad", "fail", word="so"), task("dies", "die", once=tmp_path / "once")]
    found, in_queue = {}, set()
    resources = resources._replace(slurm=(("at_once", 2 * LARGEST_ARRAY),))
    for outcome in by_slurm([*others, *many], lambda amount: None, Signals(), resources):
        found[outcome.task.name] = outcome
        in_queue.add(len(queued("%i")))
    assert [found[one.name].value for one in many] == [number * number for number in range(3 * LARGEST_ARRAY)]
    assert isinstance(found["bad"].error, KeyError)
    assert found["dies"].value == "retried"  # nobody but the queue says that it has died
    assert LARGEST_ARRAY < max(in_queue) <= 2 * LARGEST_ARRAY


def test_a_job_that_dies_each_time_is_said_with_its_log(resources: Resources, tmp_path: Path) -> None:
    (outcome,) = done(resources._replace(retries=0), task("dies", "die", once=tmp_path / "once")).values()
    log = re.fullmatch(r"its job \d+ ended without a result; its log is (.*)", outcome.died)
    assert log is not None
    assert Path(log[1]).exists()


def preempted(resources: Resources, one: Task, begun: Path, *words: str) -> tuple[Outcome, list[str]]:
    """The outcome of a task whose job gets this command of SLURM's while it runs, and the jobs there were."""
    outcomes: list[Outcome] = []

    def wait() -> None:
        outcomes.extend(by_slurm([one], lambda amount: None, Signals(), resources))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until("the first step", begun.exists)
    jobs = running_jobs()
    subprocess.run([*words, *jobs], check=True)
    waiting.join(120)
    (outcome,) = outcomes
    return outcome, jobs


@pytest.mark.parametrize("words", [("scontrol", "requeue"), ("scancel", "--signal=USR2")])
def test_a_preempted_job_saves_its_state_at_the_signal_and_is_queued_again(
    words: tuple[str, ...], resources: Resources, tmp_path: Path
) -> None:
    """As for a job of more importance, and as before its time is over; the task saves nothing but at a signal.

    With so few minutes submitit takes any signal for the time limit, which is no death: no retries are needed.
    """
    resources = resources._replace(retries=0, slurm=(("minutes", 5),))
    file = tmp_path / "counted"
    one = task("long", "count_saving_at_signals", file=file, up_to=400)
    outcome, jobs = preempted(resources, one, tmp_path / "counted.begun", *words)
    assert (outcome.value, outcome.stopped) == (400, False)
    assert 0 < outcome.reported < 400  # the rest was counted before
    assert len(jobs) == 1
    assert int(file.read_text()) + outcome.reported == 400


def test_a_cancelled_job_is_retried_from_the_state_it_saved(resources: Resources, tmp_path: Path) -> None:
    file = tmp_path / "counted"
    one = task("long", "count_saving_at_signals", file=file, up_to=400)
    outcome, _ = preempted(resources, one, tmp_path / "counted.begun", "scancel")
    assert (outcome.value, outcome.stopped) == (400, False)
    assert 0 < outcome.reported < 400


def test_a_signal_to_the_command_stops_what_runs_and_cancels_what_waits(resources: Resources, tmp_path: Path) -> None:
    signals = Signals()
    files = [tmp_path / f"counted_{number}" for number in range(3 * LARGEST_ARRAY)]  # two CPUs, two arrays in the queue

    def stop_when_begun() -> None:
        until("two jobs", lambda: sum(file.exists() for file in files) == 2)
        signals.received.append(signal.SIGTERM)

    threading.Thread(target=stop_when_begun).start()
    tasks = [task(file.name, "count", file=file, up_to=100_000) for file in files]
    found = done(resources._replace(slurm=(("at_once", 2 * LARGEST_ARRAY),)), *tasks, signals=signals)
    assert len(found) == len(tasks)
    assert {outcome.stopped for outcome in found.values()} == {True}
    assert sum(file.exists() for file in files) == 2
    assert all(found[file.name].value == int(file.read_text()) for file in files if file.exists())
    until("the end of all jobs", lambda: not running_jobs())


def test_a_command_that_is_killed_and_repeated_waits_for_its_job(resources: Resources, tmp_path: Path) -> None:
    killed_and_repeated(resources, tmp_path)


def test_what_slurm_does_not_take_is_said_in_a_sentence(resources: Resources) -> None:
    with pytest.raises(UnusableEnvironment, match=r"SLURM does not take the jobs: Batch job .* Invalid partition name"):
        done(resources._replace(slurm=(("partition", "absent"),)), task("two", "square", number=2))


def test_a_sweep_whose_jobs_are_preempted_ends_with_the_same_table(
    cluster: None, workshop: Workshop, tmp_path: Path
) -> None:
    undisturbed, at = sweep_paths(tmp_path / "undisturbed"), sweep_paths(tmp_path / "disturbed")
    flags = ("--executor", "slurm", "--checkpoint_seconds", "0.1")
    assert sweep(workshop, undisturbed, *flags, grid=LONG_GRID).returncode == 0
    ended = []
    driver = threading.Thread(target=lambda: ended.append(sweep(workshop, at, *flags, grid=LONG_GRID)))
    driver.start()
    until("a checkpoint", lambda: [*at.runs.glob("*/checkpoints/step_*")])
    subprocess.run(["scontrol", "requeue", running_jobs()[0]], check=True)
    driver.join(540)
    (done,) = ended
    assert done.returncode == 0, done.stderr
    assert at.table() == undisturbed.table()
    assert {row["status"] for row in at.rows()} == {"done"}
