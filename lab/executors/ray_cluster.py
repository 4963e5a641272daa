"""Carries out tasks on a Ray cluster: the one that an address names, else one of this machine alone.

A task whose process or machine dies is retried on another, and so is one whose process alone has received a signal.
At a signal to the command the tasks are cancelled, which they see as Ctrl-C: they stop at their next safe point.
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from icl_lab.lab.environment import UnusableEnvironment, extra
from icl_lab.lab.executors.remote import Resources, TaskEnvironment, pass_on, run_remote, task_environment
from icl_lab.lab.executors.signals import HANDLED, Signals, catch_signals
from icl_lab.lab.executors.task import Context, Outcome, Report, Task
from icl_lab.lab.executors.worker import available_cores

POLL_SECONDS = 0.2  # between two checks for signals while the cluster works
WINDOW = 2  # tasks that Ray holds for each that can run: the others wait here, so that a long plan costs it nothing
CONNECT_SECONDS = 10.0
OBJECT_STORE = 80 * 2**20  # bytes; results are on disk, and outcomes are small


def on_ray(tasks: Sequence[Task], report: Report, signals: Signals, resources: Resources) -> Iterator[Outcome]:
    """Carries out tasks on a Ray cluster, a bounded number at a time."""
    _set_variables(resources)
    ray, environment = extra("ray"), task_environment(resources)
    with _cluster(ray, resources):
        remote = ray.remote(
            num_cpus=resources.cpus,
            num_gpus=resources.gpus,
            max_retries=resources.retries,
            runtime_env={"env_vars": environment.variables},
        )(_carry_out)
        waiting, working, stops = deque(tasks), dict[Any, Task](), Counter[str]()
        stopping = False
        while working or (waiting and not stopping):
            while waiting and not stopping and len(working) < _window(ray, resources):
                task = waiting.popleft()
                working[remote.remote(task._replace(alike=None), environment)] = task
            if signals.received and not stopping:
                stopping = True
                for reference in working:
                    ray.cancel(reference)
            done, _ = ray.wait([*working], timeout=POLL_SECONDS)
            for reference in done:
                outcome = _outcome(ray, reference, working.pop(reference))
                pass_on(outcome, report)
                if outcome.stopped and not signals.received:  # a signal to its process, as where a machine is drained
                    stops[outcome.task.name] += 1
                    if stops[outcome.task.name] <= resources.retries:
                        waiting.append(outcome.task)
                        continue
                    outcome = Outcome(outcome.task, died="a signal stopped its process, not the command")
                yield outcome


def _carry_out(task: Task, environment: TaskEnvironment) -> Outcome:
    """Does a task in a process of Ray. A cancelled one receives SIGINT."""
    reported = [0]

    def report(amount: int) -> None:
        reported[0] += amount

    with catch_signals() as signals:
        outcome = run_remote(task, environment, Context(report, signals))
    return outcome._replace(reported=reported[0])


def _outcome(ray: Any, reference: Any, task: Task) -> Outcome:
    """How a task ended on the cluster."""
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.TaskCancelledError:
        return Outcome(task, stopped=True)
    except ray.exceptions.RayTaskError as error:
        return Outcome(task, error=error.cause if isinstance(error.cause, Exception) else RuntimeError(str(error)))
    except ray.exceptions.RayError as error:
        return Outcome(task, died=" ".join(str(error).split("\n")[0].split()) or type(error).__name__)
    return outcome._replace(task=task)


def _window(ray: Any, resources: Resources) -> int:
    """How many tasks to hand to Ray at once; the cluster may grow and shrink."""
    have = ray.cluster_resources()
    fits = have.get("CPU", 0) / resources.cpus
    if resources.gpus:
        fits = min(fits, have.get("GPU", 0) / resources.gpus)
    return max(1, int(WINDOW * fits))


@contextmanager
def _cluster(ray: Any, resources: Resources) -> Iterator[None]:
    """Connects to the cluster, or starts one of this machine, and leaves it; `UnusableEnvironment` if there is none."""
    _check_reachable(resources.ray_address)
    where: dict[str, Any] = {"address": resources.ray_address}
    if not resources.ray_address:
        where = {"address": "local", "num_cpus": len(available_cores()), "object_store_memory": OBJECT_STORE}
        where |= {"include_dashboard": False}
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    with _captured_stderr() as text:
        try:
            ray.init(**where, log_to_driver=False, logging_level="error")
        except Exception as error:  # some of Ray's are of no class of their own
            what = (
                f"there is no Ray cluster at {resources.ray_address!r}"
                if resources.ray_address
                else "Ray has not started"
            )
            raise UnusableEnvironment(f"{what}: {_refusal(f'{error} {text()}')}") from None
    try:
        with suppress(ValueError):  # not the main thread, which has no handlers
            for number, handler in handlers.items():  # Ray sets its own
                signal.signal(number, handler)
        _check(ray, resources)
        yield
    finally:
        ray.shutdown()


@contextmanager
def _captured_stderr() -> Iterator[Callable[[], str]]:
    """Captures what Ray's C++ code writes to the terminal while it connects: a line a second."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _refusal(text: str) -> str:
    """Why Ray did not connect, in a sentence."""
    if "authentication token" in text.lower():
        return (
            "it asks for a token that this user does not have; copy ~/.ray/auth_token from its first machine, "
            "or set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        )
    return " ".join(text.split("\n")[0].split())


def _set_variables(resources: Resources) -> None:
    """Sets variables that Ray reads when it is imported, unless the user has.

    Kills by Ray's memory monitor have a limit of their own, which the process that submits a task reads: by default
    none.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_task_oom_retries", str(resources.retries))
    if resources.ray_address:
        _use_token()


def _use_token(home: Path | None = None) -> None:
    """Has Ray send the user's token, if there is one: a cluster of `ray start` then asks for it.

    `ray start` itself turns this on by the same rule.
    """
    if ((home or Path.home()) / ".ray" / "auth_token").exists():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _check_reachable(address: str) -> None:
    """`UnusableEnvironment` if nothing listens at HOST:PORT, for which Ray itself would wait."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        return  # auto, or another name that Ray knows
    try:
        socket.create_connection((host.rpartition("/")[2], int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UnusableEnvironment(f"there is no Ray cluster at {address!r}: {error}") from None


def _check(ray: Any, resources: Resources) -> None:
    """`UnusableEnvironment` if no machine of the cluster has what a task asks for."""
    for node in ray.nodes():
        has = node["Resources"] if node["Alive"] else {}
        if has.get("CPU", 0) >= resources.cpus and has.get("GPU", 0) >= resources.gpus:
            return
    asked = f"{resources.cpus} CPUs" + f" and {resources.gpus:g} GPUs" * bool(resources.gpus)
    raise UnusableEnvironment(f"no machine of the Ray cluster has {asked} for a task; set --task_cpus and --task_gpus")
