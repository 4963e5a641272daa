"""Ray's executor with a stand-in for Ray: how much it hands over, how often it retries, a stop, and the variables."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icl_lab.lab.environment import UnusableEnvironment
from icl_lab.lab.executors import ray_cluster
from icl_lab.lab.executors.ray_cluster import on_ray
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Outcome, Task
from tests.lab.executors.work import task

pytestmark = pytest.mark.robust


class RayError(Exception):
    """Ray's errors."""


class CancelledError(RayError):
    """That of a cancelled task."""


class Ray:
    """Ends one task at each wait, the one it has held longest. It retries those whose process dies, as Ray does."""

    exceptions = SimpleNamespace(RayError=RayError, TaskCancelledError=CancelledError, RayTaskError=ZeroDivisionError)

    def __init__(self, **have: float) -> None:
        self.have = have
        self.deaths, self.stops = Counter[str](), Counter[str]()  # how often a task's process dies, or is stopped
        self.given: list[Task] = []  # a reference is an index
        self.cancelled = set[int]()
        self.held: list[int] = []  # tasks at each wait
        self.open = False

    def init(self, **_: object) -> None:
        self.open = True

    def shutdown(self) -> None:
        self.open = False

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": self.have}]

    def cluster_resources(self) -> dict[str, float]:
        return self.have

    def remote(self, **options: Any) -> Callable[[object], SimpleNamespace]:
        self.options = options

        def give(one: Task, environment: object) -> int:
            self.given.append(one)
            return len(self.given) - 1

        return lambda function: SimpleNamespace(remote=give)

    def wait(self, references: Sequence[int], timeout: float) -> tuple[Sequence[int], Sequence[int]]:
        self.held.append(len(references))
        return references[:1], references[1:]

    def cancel(self, reference: int) -> None:
        self.cancelled.add(reference)

    def get(self, reference: int) -> Outcome:
        one = self.given[reference]
        if reference in self.cancelled:
            raise CancelledError
        if self.deaths[one.name] > self.options["max_retries"]:
            raise RayError("the worker died\nand more")
        if self.stops[one.name]:
            self.stops[one.name] -= 1
            return Outcome(one, stopped=True)
        return Outcome(one, value=one.arguments["number"], reported=1)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    made = Ray(CPU=3)
    monkeypatch.setattr(ray_cluster, "extra", lambda module: made)
    monkeypatch.setattr(ray_cluster, "_set_variables", lambda resources: None)
    return made


def numbered(amount: int) -> list[Task]:
    return [task(str(number), "square", number=number) for number in range(amount)]


@pytest.mark.parametrize(
    ("have", "asked", "window"),
    [
        ({"CPU": 3}, Resources(), 6),
        ({"CPU": 9}, Resources(cpus=3), 6),
        ({"CPU": 16, "GPU": 1}, Resources(gpus=0.25), 8),
        ({"CPU": 2, "GPU": 4}, Resources(cpus=2, gpus=1), 2),
    ],
)
def test_ray_holds_twice_as_many_tasks_as_can_run(
    have: dict[str, float], asked: Resources, window: int, ray: Ray
) -> None:
    ray.have, reported = have, list[int]()
    outcomes = list(on_ray(numbered(20), reported.append, Signals(), asked))
    assert [outcome.value for outcome in outcomes] == list(range(20))
    assert sum(reported) == 20
    assert ray.held == [window] * (21 - window) + list(range(window - 1, 0, -1))
    assert ray.options["num_cpus"] == asked.cpus
    assert ray.options["num_gpus"] == asked.gpus
    assert not ray.open


def test_a_cluster_that_grows_is_handed_more(ray: Ray) -> None:
    for outcome in on_ray(numbered(20), lambda amount: None, Signals(), Resources()):
        if outcome.task.name == "1":
            ray.have = {"CPU": 5}
    assert ray.held[:4] == [6, 6, 10, 10]


def test_a_task_is_retried_as_often_as_may_be(ray: Ray) -> None:
    """By Ray where its process dies, and by the command where a signal stops its process."""
    ray.deaths.update({"0": 2, "1": 3})
    ray.stops.update({"2": 2, "3": 100})
    found = {one.task.name: one for one in on_ray(numbered(5), lambda amount: None, Signals(), Resources(retries=2))}
    assert {name: one.value for name, one in found.items() if not one.died} == {"0": 0, "2": 2, "4": 4}
    assert found["1"].died == "the worker died"
    assert found["3"].died == "a signal stopped its process, not the command"
    assert [one.name for one in ray.given].count("3") == 3


def test_a_signal_cancels_what_ray_holds_and_hands_over_no_more(ray: Ray) -> None:
    signals = Signals()
    outcomes = []
    for outcome in on_ray(numbered(20), lambda amount: None, signals, Resources()):
        outcomes.append(outcome)
        signals.received += [signal.SIGTERM] * (len(outcomes) == 2)
    assert [outcome.task.name for outcome in outcomes] == [str(number) for number in range(8)]
    assert [outcome.stopped for outcome in outcomes] == [False] * 2 + [True] * 6
    assert ray.cancelled == set(range(2, 8))


def test_closed_it_leaves_the_cluster(ray: Ray) -> None:
    outcomes = on_ray(numbered(20), lambda amount: None, Signals(), Resources())
    next(outcomes)
    assert ray.open
    outcomes.close()  # type: ignore[attr-defined]
    assert not ray.open


def test_what_a_cluster_lacks_is_said(ray: Ray) -> None:
    with pytest.raises(UnusableEnvironment, match=r"no machine of the Ray cluster has 4 CPUs and 0\.5 GPUs"):
        list(on_ray(numbered(1), lambda amount: None, Signals(), Resources(cpus=4, gpus=0.5)))
    assert not ray.open
    ray.have = {"CPU": 2.0, "GPU": 1.0}
    with pytest.raises(UnusableEnvironment, match=r"no machine of the Ray cluster has 1 CPUs and 2 GPUs"):
        list(on_ray(numbered(1), lambda amount: None, Signals(), Resources(gpus=2)))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [("", "Ray has not started: timed out"), ("auto", "there is no Ray cluster at 'auto': timed out")],
)
def test_a_cluster_that_does_not_start_is_said(
    address: str, sentence: str, ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: object) -> None:
        raise Exception("timed out\n")  # as Ray's own

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(UnusableEnvironment, match=f"^{sentence}$"):
        list(on_ray(numbered(1), lambda amount: None, Signals(), Resources(ray_address=address)))


# --- variables ---


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Removes a variable, and puts it back as it was, whatever is set here."""

    def remove(name: str) -> None:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    return remove


@pytest.mark.parametrize(
    ("exists", "before", "after"), [(True, None, "token"), (False, None, None), (True, "k8s", "k8s")]
)
def test_a_token_is_used_where_there_is_one(
    exists: bool, before: str | None, after: str | None, tmp_path: Path, unset: Callable[[str], None]
) -> None:
    """As `ray start` asks for it; whoever has set the mode is left alone."""
    unset("RAY_AUTH_MODE")
    if before:
        os.environ["RAY_AUTH_MODE"] = before
    if exists:
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text("secret")
    ray_cluster._use_token(tmp_path)
    assert os.environ.get("RAY_AUTH_MODE") == after


@pytest.mark.parametrize(("before", "after"), [(None, "2"), ("7", "7")])
def test_kills_for_memory_are_limited_like_other_deaths(
    before: str | None, after: str, unset: Callable[[str], None]
) -> None:
    name = "RAY_task_oom_retries"
    unset(name)
    unset("RAY_USAGE_STATS_ENABLED")
    if before:
        os.environ[name] = before
    ray_cluster._set_variables(Resources(retries=2))
    assert os.environ[name] == after
