"""SLURM's executor with submitit's local jobs, and with a stand-in for submitit that refuses and counts."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from icl_lab.lab.environment import UnusableEnvironment
from icl_lab.lab.executors import slurm, slurm_queue
from icl_lab.lab.executors.remote import MOST_LINES, Resources, TaskEnvironment, run_remote
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.slurm import Jobs, Resumable, by_slurm
from icl_lab.lab.executors.slurm_queue import NOTES
from icl_lab.lab.executors.task import Context, Outcome, Task
from icl_lab.lab.executors.throttle import Throttle
from tests.lab.executors.repeated import killed_and_repeated
from tests.lab.executors.waiting import until
from tests.lab.executors.work import Unreadable, task
from tests.runners.tiny import ROOT

pytestmark = pytest.mark.robust


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
        task("says", "say", lines=MOST_LINES + 5),
        task("bad", "fail", word="so"),
        task("dies", "die", once=tmp_path / "once"),
    ]
    found = done(resources, *tasks)
    assert (found["two"].value, found["two"].reported) == (4, 1)
    assert isinstance(found["bad"].error, KeyError)
    assert found["dies"].value == "retried"
    assert found["says"].said == tuple(f"notice {number}" for number in range(5, MOST_LINES + 5))
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
def test_jobs_in_work_are_stopped_where_the_command_gives_up(resources: Resources, tmp_path: Path) -> None:
    """As after another task's error: no process goes on unseen."""
    file = tmp_path / "counted"
    outcomes = by_slurm(
        [task("two", "square", number=2), task("long", "count", file=file, up_to=100_000)],
        lambda amount: None,
        Signals(),
        resources,
    )
    assert next(outcomes).task.name == "two"
    until("the first step", file.exists)
    outcomes.close()  # type: ignore[attr-defined]
    jobs = subprocess.run(["pgrep", "-f", f"submitit.core._submit {resources.jobs}"], capture_output=True, text=True)
    assert jobs.stdout == ""
    assert [*resources.jobs.iterdir()] == []


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
    assert slurm._at_once(Resources(gpus=gpus, slurm=(("cluster", "local"), *settings.items()))) == most


def test_a_folder_that_is_long_to_list_is_listed_rarely(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    now, listed = [0.0], []

    def iterdir(folder: Path) -> Iterator[Path]:
        listed.append(now[0])
        now[0] += 3
        return iter(())

    monkeypatch.setattr(slurm, "Throttle", partial(Throttle, clock=lambda: now[0]))
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
    one = task("long", "count_saving_at_signals", file=file, up_to=400)

    def wait() -> None:
        outcomes.extend(by_slurm([one], lambda amount: None, Signals(), resources))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until("the first step", file.with_suffix(".begun").exists)
    jobs = subprocess.run(["pgrep", "-f", f"submitit.core._submit {resources.jobs}"], capture_output=True, text=True)
    assert jobs.stdout, sys.executable
    for process in jobs.stdout.split():
        subprocess.run(["kill", f"-{signal.SIGUSR2.value}", process], check=False)
    waiting.join(120)
    (outcome,) = outcomes
    assert (outcome.value, outcome.stopped) == (400, False)
    assert 0 < outcome.reported < 400
    assert int(file.read_text()) + outcome.reported == 400  # what was counted before the signal is not counted again


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


COMMAND = """
import sys
from pathlib import Path
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import catch_signals
from icl_lab.lab.executors.slurm import by_slurm
from tests.lab.executors.work import task

folder = Path(sys.argv[1])
with catch_signals() as signals:
    one = task("long", "count", file=folder / "counted", up_to=100_000)
    resources = Resources(slurm=(("cluster", "local"),), jobs=folder / "jobs")
    for outcome in by_slurm([one], lambda amount: None, signals, resources):
        print(outcome.stopped, outcome.value, outcome.died)
"""


@pytest.mark.slow
def test_an_interrupt_of_the_whole_terminal_stops_jobs_without_a_traceback(tmp_path: Path) -> None:
    """Ctrl-C reaches the command and submitit's processes alike: the command alone acts on it."""
    words = [sys.executable, "-c", COMMAND, str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=ROOT, text=True, start_new_session=True, **pipes) as process:
        try:
            until("the first step", (tmp_path / "counted").exists)
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert err == ""
    assert out == f"True {(tmp_path / 'counted').read_text()} \n"


@pytest.mark.slow
def test_a_command_that_is_killed_and_repeated_waits_for_its_job(
    resources: Resources, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    killed_and_repeated(resources, tmp_path)
    assert re.search(r"^1 of 2 tasks wait for jobs of an earlier command: \d+$", capfd.readouterr().err, re.M)


def test_a_folder_that_is_not_on_a_machine_is_the_tasks_error(tmp_path: Path) -> None:
    gone = TaskEnvironment(str(tmp_path / "gone"), (), {})
    outcome = run_remote(task("two", "square", number=2), gone, Context(lambda amount: None, Signals()))
    assert isinstance(outcome.error, FileNotFoundError)


# --- a stand-in for submitit ---


class Refusal(Exception):
    """submitit's FailedJobError."""


class Paths(NamedTuple):
    """Where a job leaves its result."""

    result_pickle: Path


class Job(NamedTuple):
    """A job as submitit gives it."""

    job_id: str
    paths: Paths
    result: Callable[[], Outcome]


class Cluster:
    """Takes arrays, unless it is to refuse them. Jobs end after a while, with their id as value, or die."""

    def __init__(self) -> None:
        self.arrays: list[list[str]] = []
        self.refusals, self.deaths = deque[str](), list[str]()  # "" takes an array
        self.seconds: dict[str, float] = {}  # which jobs take; others none
        self.cancelled: list[str] = []
        self.taken_late: list[str] = []  # in the queue although sbatch did not answer
        self.earlier: dict[str, float] = {}  # another command's jobs in the queue, and until when
        self.now = 0.0
        self._ends: list[tuple[float, Path]] = []

    @contextmanager
    def batch(self) -> Iterator[None]:
        self._batch: list[str] = []
        yield
        if self.refusals and (reason := self.refusals.popleft()):
            raise Refusal(f"sbatch failed:\nsbatch: error: {reason}")
        self.arrays.append(self._batch)

    def submit(self, resumable: Resumable) -> Job:
        name = resumable.task.name
        self._batch.append(name)
        job_id = f"{len(self.arrays)}_{len(self._batch)}"
        result = self.folder / f"{job_id}_result.pkl"
        self._ends.append((self.now + self.seconds.get(name, 0), result))

        def end() -> Outcome:
            if name in self.deaths:
                self.deaths.remove(name)
                raise Refusal("it has died")
            return Outcome(resumable.task, value=job_id)

        return Job(job_id, Paths(result), end)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for end, result in self._ends:
            if end <= self.now:
                result.touch()

    def answer(self, command: str, *words: str) -> str | None:
        if command == "scancel":
            self.cancelled.extend(words)
        if command == "squeue" and f"--name=icl-lab-{self.folder.name}" in words:
            return "\n".join(self.taken_late)
        if command == "squeue" and self.earlier:
            return "\n".join(job for job, end in self.earlier.items() if self.now < end)
        return None


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    def executor(submitit: object, folder: Path, resources: Resources) -> Cluster:
        made.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        return made

    utils = SimpleNamespace(FailedJobError=Refusal)
    monkeypatch.setattr(slurm, "extra", lambda module: SimpleNamespace(core=SimpleNamespace(utils=utils)))
    monkeypatch.setattr(slurm, "_executor", executor)
    monkeypatch.setattr(slurm, "time", SimpleNamespace(monotonic=lambda: made.now, sleep=made.sleep))
    monkeypatch.setattr(slurm_queue, "time", SimpleNamespace(monotonic=lambda: made.now))
    monkeypatch.setattr(slurm, "Throttle", partial(Throttle, clock=lambda: made.now))
    monkeypatch.setattr(slurm, "most_in_an_array", lambda: 10)
    monkeypatch.setattr(slurm_queue, "_answer", made.answer)
    return made


def numbered(amount: int) -> list[Task]:
    return [task(str(number), "square", number=number) for number in range(amount)]


def test_jobs_are_submitted_as_others_end_whatever_arrays_these_are_of(cluster: Cluster, tmp_path: Path) -> None:
    """At most `at_once` are in the queue, and more than seven eighths, beside a job that takes long too."""
    jobs = Jobs(numbered(100), tmp_path, Resources(slurm=(("at_once", 16),)))
    assert jobs.fill()
    assert [len(array) for array in cluster.arrays] == [10, 6]  # an array has ten at most
    straggler, *others = jobs.working
    for ended, expected in ((1, []), (1, [2]), (9, [9]), (4, [4])):
        before = len(cluster.arrays)
        for job in others[:ended]:
            jobs.working.pop(job)
        assert jobs.fill()
        assert [len(array) for array in cluster.arrays[before:]] == expected
        others = [job for job in jobs.working if job is not straggler]
    assert len(jobs.working) == 16
    while len(jobs.working) > 1:
        for job in [job for job in jobs.working if job is not straggler]:
            jobs.working.pop(job)
        jobs.fill()
    assert sorted(name for array in cluster.arrays for name in array) == sorted(one.name for one in numbered(100))
    jobs.working.clear()
    assert not jobs.fill()


def test_what_slurm_does_not_take_during_a_sweep_waits_a_minute(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later array, twice, and the retry of a task that has died. A job that runs meanwhile goes on."""
    limit, network = "QOSMaxSubmitJobPerUserLimit", "Socket timed out on send/recv operation"
    cluster.refusals.extend(["", limit, limit, "", network])
    cluster.deaths.append("3")
    cluster.seconds["0"] = 100
    outcomes = []
    for outcome in by_slurm(numbered(5), lambda amount: None, Signals(), resources_of(tmp_path, at_once=3)):
        outcomes.append(outcome)
        assert cluster.cancelled == []
    assert cluster.arrays == [["0", "1", "2"], ["3", "4"], ["3"]]
    assert {outcome.task.name: outcome.value for outcome in outcomes} == {
        **{"0": "0_1", "1": "0_2", "2": "0_3"},
        **{"3": "2_1", "4": "1_2"},
    }
    assert 180 <= cluster.now < 185
    assert capsys.readouterr().err.splitlines() == [
        f"SLURM does not take more jobs now: {reason}; the command tries again every minute"
        for reason in (limit, network)
    ]


def test_what_slurm_has_taken_without_an_answer_is_cancelled_before_it_is_submitted_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Else the tasks would be done twice, each in the other's way. Jobs in work go on."""
    cluster.refusals.extend(["", "Socket timed out on send/recv operation"])
    cluster.seconds["0"] = 100
    cluster.taken_late = ["0_1", "7_1", "7_2"]
    outcomes = [*by_slurm(numbered(5), lambda amount: None, Signals(), resources_of(tmp_path, at_once=3))]
    assert len(outcomes) == 5
    assert cluster.cancelled == ["--quiet", "7_1", "7_2"]


def test_what_slurm_does_not_take_at_first_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """What it has taken all the same is cancelled."""
    cluster.refusals.append("invalid partition")
    cluster.taken_late = ["7_1"]
    with pytest.raises(UnusableEnvironment, match=r"^SLURM does not take the jobs: invalid partition$"):
        list(by_slurm(numbered(5), lambda amount: None, Signals(), resources_of(tmp_path)))
    assert cluster.cancelled == ["--quiet", "7_1"]


def test_jobs_may_be_queued_again_whatever_the_clusters_default_is(tmp_path: Path) -> None:
    """Under a name of their own, by which what SLURM took without an answer is known."""
    given: dict[str, Any] = {}
    submitit = SimpleNamespace(AutoExecutor=lambda **_: SimpleNamespace(update_parameters=given.update))
    slurm._executor(submitit, tmp_path / "a", resources_of(tmp_path, exclusive=True))
    assert given["slurm_additional_parameters"] == {"requeue": True, "exclusive": True}
    assert given["name"] == "icl-lab-a"


def noted_earlier(cluster: Cluster, tmp_path: Path, *lines: object) -> Path:
    """The notes of a command that was killed, whose jobs are in the queue for 50 seconds."""
    notes = tmp_path / "jobs/earlier" / NOTES
    notes.parent.mkdir(parents=True)
    notes.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    cluster.earlier = {"9_1": 50, "9_2": 50}
    return notes


def subject(number: int) -> str:
    (found,) = numbered(number + 1)[number].subjects
    return found


def test_tasks_that_an_earlier_commands_jobs_work_on_are_submitted_when_these_have_ended(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One leaves a result, another leaves the queue without; those that ended long ago hold up nothing."""
    lines = [["9_1", [subject(1)]], ["9_2", ["another", subject(3)]], ["8_1", [subject(0)]], ["7", 5], '["9_3", ["cut']
    notes = noted_earlier(cluster, tmp_path, *lines)
    submitted = {}
    for outcome in by_slurm(numbered(5), lambda amount: None, Signals(), resources_of(tmp_path)):
        submitted[outcome.task.name] = cluster.now
        cluster.earlier["8_2"] = 1000  # the queue is never empty, and answers
        if len(submitted) == 3:
            notes.with_name("9_1_0_result.pkl").touch()
    assert cluster.arrays == [["0", "2", "4"], ["1"], ["3"]]
    assert submitted["1"] < 5 < 50 + slurm_queue.GONE_SECONDS - slurm_queue.POLL_SECONDS < submitted["3"] < 80
    assert capsys.readouterr().err == "2 of 5 tasks wait for jobs of an earlier command: 9_1, 9_2\n"
    assert cluster.cancelled == []


def test_a_signal_ends_the_wait_for_an_earlier_commands_jobs(cluster: Cluster, tmp_path: Path) -> None:
    noted_earlier(cluster, tmp_path, ["9_1", [subject(0)]])
    signals = Signals()
    signals.received.append(signal.SIGTERM)
    (outcome,) = by_slurm(numbered(1), lambda amount: None, signals, resources_of(tmp_path))
    assert (outcome.stopped, cluster.arrays, cluster.cancelled) == (True, [], [])


def test_what_jobs_work_on_is_noted(cluster: Cluster, tmp_path: Path) -> None:
    jobs = Jobs(numbered(12), tmp_path / "jobs/own", resources_of(tmp_path))
    jobs.fill()
    noted = [json.loads(line) for line in (tmp_path / "jobs/own" / NOTES).read_text().splitlines()]
    assert noted == [[job.job_id, [subject(int(one.name))]] for job, one in jobs.working.items()]
    assert len(noted) == 12


def test_a_signal_ends_the_wait_for_slurm_to_take_more(cluster: Cluster, tmp_path: Path) -> None:
    signals = Signals()
    cluster.refusals.extend(["", "Socket timed out"])
    outcomes = []
    for outcome in by_slurm(numbered(5), lambda amount: None, signals, resources_of(tmp_path, at_once=3)):
        outcomes.append(outcome)
        signals.received += [signal.SIGTERM] * (len(outcomes) == 3)
    assert [outcome.stopped for outcome in outcomes] == [False] * 3 + [True] * 2
    assert cluster.arrays == [["0", "1", "2"]]
    assert cluster.now < slurm.RESUBMIT_SECONDS


def resources_of(tmp_path: Path, **settings: int) -> Resources:
    return Resources(slurm=tuple(settings.items()), jobs=tmp_path / "jobs")
