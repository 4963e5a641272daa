"""Ray's executor on real clusters of this machine: outcomes, a stop, a sweep that loses a worker and then a node."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab.environment import UnusableEnvironment
from icl_lab.lab.executors.ray_cluster import on_ray
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Outcome, Task
from tests.lab.executors.waiting import until
from tests.lab.executors.work import task
from tests.runners.tiny import EVERY_CHUNK, ROOT, Workshop
from tests.sweeps.tiny_sweep import LONG_GRID, Paths, sweep, sweep_paths, swept

__all__ = ["swept"]
pytestmark = [pytest.mark.robust, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray's own


def done(*tasks: Task, signals: Signals | None = None, **resources: Any) -> dict[str, Outcome]:
    outcomes = on_ray(tasks, lambda amount: None, signals or Signals(), Resources(**resources))
    return {outcome.task.name: outcome for outcome in outcomes}


def test_outcomes_are_those_of_any_executor(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    many = [task(str(number), "square", number=number) for number in range(12)]  # more than the window
    others = [task("bad", "fail", word="so"), task("odd", "fail_oddly"), task("dies", "die", once=tmp_path / "once")]
    found = done(*many, *others, task("where", "process"), task("says", "say", lines=2))
    assert {name: outcome.value for name, outcome in found.items() if name.isdecimal()} == {
        str(n): n * n for n in range(12)
    }
    assert isinstance(found["bad"].error, KeyError)
    assert str(found["odd"].error) == "Odd: 1 and 2"
    assert found["dies"].value == "retried"
    assert found["where"].value[1] == "1"
    assert found["where"].value[0] != os.getpid()
    assert capfd.readouterr().err == "notice 0\nnotice 1\n"


def test_a_task_that_dies_each_time_is_said(tmp_path: Path) -> None:
    found = done(task("dies", "die", once=tmp_path / "once"), task("good", "square", number=3), retries=0)
    assert found["dies"].died
    assert found["good"].value == 9


def test_a_signal_that_reaches_a_process_alone_has_its_task_retried(tmp_path: Path) -> None:
    twice, always = tmp_path / "twice", tmp_path / "always"
    tasks = [task("twice", "stop_alone", times=twice, up_to=2), task("always", "stop_alone", times=always, up_to=100)]
    found = done(*tasks, retries=2)
    assert found["twice"] == Outcome(tasks[0], value=3)
    assert found["always"] == Outcome(tasks[1], died="a signal stopped its process, not the command")
    assert int(always.read_text()) == 3  # once, and two retries


def test_a_signal_stops_tasks(tmp_path: Path) -> None:
    signals, file = Signals(), tmp_path / "counted"
    outcomes = {}
    tasks = [task("first", "square", number=1), task("long", "count", file=file, up_to=100_000)]
    for outcome in on_ray(tasks, lambda amount: None, signals, Resources()):
        outcomes[outcome.task.name] = outcome
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        signals.received.append(signal.SIGTERM)
    assert outcomes["long"].stopped
    assert outcomes["long"].value == int(file.read_text()) > 0


MEMORY = """
from icl_lab.lab.executors.ray_cluster import on_ray
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import Signals
from tests.lab.executors.work import task
for outcome in on_ray([task("a", "square", number=1)], lambda amount: None, Signals(), Resources(retries=1)):
    print(outcome.died)
"""


def test_a_task_that_is_killed_for_memory_each_time_is_said() -> None:
    """Ray's memory monitor retries without end by default; here it finds any use of memory too large."""
    variables = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "100"}
    line = [sys.executable, "-W", "ignore", "-c", MEMORY]
    done = subprocess.run(line, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, timeout=500)
    assert "killed due to the node running low on memory" in done.stdout, done.stderr


def test_what_a_cluster_lacks_is_said() -> None:
    with pytest.raises(UnusableEnvironment, match="no machine of the Ray cluster has 900 CPUs"):
        done(task("a", "square", number=1), cpus=900)
    with pytest.raises(UnusableEnvironment, match="there is no Ray cluster at"):
        done(task("a", "square", number=1), ray_address="127.0.0.1:1")


# --- a sweep on a cluster that asks for a token ---


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a cluster of `ray start` that asks for a token, and the home of the user who has it."""
    token = tmp_path / "home" / ".ray" / "auth_token"
    token.parent.mkdir(parents=True)
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    address = f"127.0.0.1:{free_port()}"
    line = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--num-cpus", "2"]
    line += ["--port", address.split(":")[1], "--node-ip-address", "127.0.0.1", "--include-dashboard", "false"]
    line += ["--object-store-memory", str(80 * 2**20), "--disable-usage-stats"]
    environment = os.environ | {"HOME": str(tmp_path / "home"), "RAY_AUTH_MODE": "token"}
    with (
        tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as short,  # paths of sockets are limited
        open(tmp_path / "said", "w") as said,
        subprocess.Popen([*line, "--temp-dir", short], env=environment, stdout=said, stderr=said) as started,
    ):
        until("a cluster", lambda: "Ray runtime started" in (tmp_path / "said").read_text() or started.poll())
        yield address, tmp_path / "home"
        started.terminate()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def test_a_sweep_uses_the_token_that_a_cluster_asks_for(
    guarded: tuple[str, Path], swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    """A user who has none is told so in one sentence."""
    address, home = guarded
    words = ["--seeds", "0,1", "--executor", "ray", "--ray_address", address]
    for environment in ({}, {"RAY_AUTH_MODE": "token"}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}):
        refused = sweep(workshop, sweep_paths(tmp_path / "stranger"), *words, HOME=str(tmp_path), **environment)
        assert refused.returncode == 2, refused.stderr
        (sentence,) = refused.stderr.splitlines()
        assert sentence.startswith(f"error: there is no Ray cluster at '{address}': it asks for a token")
    at = sweep_paths(tmp_path / "known")
    done = sweep(workshop, at, *words, HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert at.table() == swept.table()


# --- a sweep on two nodes ---


@pytest.fixture
def gpu() -> Iterator[str]:
    """The address of a node with four CPUs and a GPU, which only Ray counts."""
    from ray.cluster_utils import Cluster

    arguments = {"num_cpus": 4, "num_gpus": 1, "object_store_memory": 80 * 2**20}
    node = Cluster(initialize_head=True, head_node_args=arguments)
    yield node.address
    node.shutdown()


def test_tasks_share_a_gpu_and_its_memory(gpu: str, tmp_path: Path) -> None:
    tasks = [task(name, "meet", file=tmp_path / name, number=4) for name in "abcd"]
    found = done(*tasks, ray_address=gpu, gpus=0.25)
    assert {name: outcome.value for name, outcome in found.items()} == dict.fromkeys("abcd", ("0.225", "0"))


SEEDS = [*EVERY_CHUNK, "--seeds", "0,1,2"]


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two nodes of one CPU each, on this machine."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80 * 2**20})
    nodes.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    yield nodes
    nodes.shutdown()


def started(workshop: Workshop, at: Paths, address: str) -> subprocess.Popen[str]:
    cache = {"JAX_COMPILATION_CACHE_DIR": str(workshop.folder / "compiled")}
    cache |= {f"JAX_PERSISTENT_CACHE_MIN_{name}": "0" for name in ("COMPILE_TIME_SECS", "ENTRY_SIZE_BYTES")}
    line = [sys.executable, "-m", "eval_noise", *LONG_GRID, *SEEDS, *map(str, at.flags())]
    line += ["--executor", "ray", "--ray_address", address]
    return subprocess.Popen(
        line, cwd=ROOT, env=os.environ | cache, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def workers(node: Any) -> list[int]:
    """The processes of a node that carry out tasks now."""
    raylet = node.all_processes["raylet"][0].process.pid
    below = subprocess.run(["ps", "--ppid", str(raylet), "-o", "pid=,args="], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in below.splitlines() if "ray::_carry_out" in line]


def test_a_sweep_that_loses_a_worker_and_then_a_node_ends_with_the_same_table(
    cluster: Any, workshop: Workshop, tmp_path: Path
) -> None:
    undisturbed = sweep_paths(tmp_path / "undisturbed")
    done = sweep(workshop, undisturbed, *SEEDS, "--executor", "ray", "--ray_address", cluster.address, grid=LONG_GRID)
    assert done.returncode == 0, done.stderr
    at = sweep_paths(tmp_path / "disturbed")
    with started(workshop, at, cluster.address) as driver:
        first, second = cluster.list_all_nodes()
        until("a checkpoint", lambda: [*at.runs.glob("*/checkpoints/step_*")])
        killed = until("a task on the first node", lambda: workers(first))
        os.kill(killed[0], signal.SIGKILL)
        until("a task on the second node", lambda: workers(second))
        cluster.remove_node(second, allow_graceful=False)
        said, _ = driver.communicate(timeout=540)
    assert driver.returncode == 0, said
    assert at.table() == undisturbed.table()
    assert {row["status"] for row in at.rows()} == {"done"}
