"""Killed or stopped at any moment and started again, a sweep ends with the same table, and no finished run is redone.

Moments are places in the work, not times: a file of some kind is being written, has been, or is about to be.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from icl_lab.lab.executors.signals import WAITING
from icl_lab.store import rundir
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, ROOT, Workshop
from tests.sweeps.tiny_sweep import GRID, Paths, sweep, sweep_paths

pytestmark = pytest.mark.robust

SEEDS = [*EVERY_CHUNK, "--seeds", "0,1"]
# files that a sweep writes, and how often at least in the whole of it; from the first on, for the next time needs some
PLACES = {
    "plan_results.json": 1,
    "results.csv": 1,
    "config.json": 2,
    "meta.json": 3,
    "metrics.jsonl": 3,
    "step_*.safetensors": 4,
    "params.safetensors": 1,
    "attention_stats.json": 1,
    "comparators.json": 1,
    "ood.csv": 1,
    "metrics_summary.json": 1,
}
SCHEDULES, EACH = 5, 4


def schedule(seed: int) -> list[str]:
    """Places in the order of a sweep's work, so that each is met."""
    draw = random.Random(seed)
    names = sorted(draw.sample(list(PLACES), EACH), key=list(PLACES).index)
    return [f"{_when(draw, name)}:{name}:SIGKILL:{draw.randint(1, PLACES[name])}" for name in names]


def _when(draw: random.Random, name: str) -> str:
    """Lines are added to metrics, which therefore are never renamed while a run trains."""
    return "during" if name == "metrics.jsonl" else draw.choice(("before", "during", "after"))


def test_the_schedules_have_twenty_moments_that_differ() -> None:
    moments = [moment for seed in range(SCHEDULES) for moment in schedule(seed)]
    assert len(moments) == 20
    assert len(set(moments)) >= 15
    assert {moment.split(":")[1] for moment in moments} >= {"params.safetensors", "step_*.safetensors", "ood.csv"}


@pytest.mark.parametrize(
    "moments",
    [
        schedule(0)[1::2],  # the short form: while it trains, and in the analyses
        *(pytest.param(schedule(seed), marks=pytest.mark.slow) for seed in range(SCHEDULES)),
    ],
)
def test_killed_again_and_again_it_ends_with_the_same_table(
    moments: list[str], swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    at, finished = sweep_paths(tmp_path), {}
    for moment in moments:
        environment = {"INTERRUPT": moment, "PYTHONPATH": INTERRUPTED}
        killed = sweep(workshop, at, *SEEDS, "--executor", "serial", **environment)
        assert killed.returncode == -9, f"{moment}: {killed.stderr}"
        assert {name: at.written()[name] for name in finished} == finished, moment
        finished = at.written()
    done = sweep(workshop, at, *SEEDS, "--executor", "serial")
    assert done.returncode == 0, done.stderr
    assert {name: at.written()[name] for name in finished} == finished
    assert at.table() == swept.table()
    assert not list(tmp_path.rglob("*.tmp"))


def children(process: int) -> list[int]:
    """A process's children, whichever of its threads started them."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return [int(word) for path in found for word in path.read_text().split()]


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def started(
    workshop: Workshop, at: Paths, errors: Path, executor: str = "process", **environment: str
) -> subprocess.Popen[str]:
    """The driver, with a process on each core unless another executor is named, in the background."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(workshop.folder / "compiled"), "PYTHONWARNINGS": "error"}
    cache |= {f"JAX_PERSISTENT_CACHE_MIN_{name}": "0" for name in ("COMPILE_TIME_SECS", "ENTRY_SIZE_BYTES")}
    line = [sys.executable, "-m", "eval_noise", *GRID, *SEEDS, *map(str, at.flags()), "--executor", executor]
    cache |= environment
    with errors.open("w") as file:
        return subprocess.Popen(line, cwd=ROOT, env=os.environ | cache, stdout=subprocess.PIPE, stderr=file, text=True)


def until(happened: Iterator[bool], what: str) -> None:
    for yes in happened:
        if yes:
            return
        time.sleep(0.005)
    raise AssertionError(f"{what} did not happen")


def within(seconds: float, ask: Callable[[], bool]) -> Iterator[bool]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield ask()


KINDS = ("*/meta.json", "*/checkpoints/step_*.safetensors", "*/params.safetensors", "*/metrics_summary.json")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_the_processes_of_a_killed_sweep_end_and_it_goes_on(
    seed: int, swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    """Killed as soon as so many files of a kind are there."""
    draw, at, finished = random.Random(seed), sweep_paths(tmp_path), {}
    for kind, least in [(draw.choice(KINDS[:2]), 1), (draw.choice(KINDS[2:]), draw.randint(1, 2))]:
        driver = started(workshop, at, tmp_path / "errors")
        try:
            there = within(120, lambda: len(list(at.runs.glob(kind))) >= least or driver.poll() is not None)  # noqa: B023
            until(there, kind)
            workers = children(driver.pid) if driver.poll() is None else []
        finally:
            driver.kill()
            driver.communicate()
        until(within(10, lambda: not any(map(is_alive, workers))), "the end of the workers")  # noqa: B023
        assert {name: at.written()[name] for name in finished} == finished
        finished = at.written()
    done = sweep(workshop, at, *SEEDS, "--executor", "process")
    assert done.returncode == 0, done.stderr
    assert {name: at.written()[name] for name in finished} == finished
    assert at.table() == swept.table()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_ends_a_sweep_with_checkpoints_and_a_table(
    name: str, status: int, swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    at = sweep_paths(tmp_path)
    environment = {"INTERRUPT": f"after:step_00000030.safetensors:{name}", "PYTHONPATH": INTERRUPTED}
    stopped = sweep(workshop, at, *SEEDS, "--executor", "serial", **environment)
    assert stopped.returncode == status, stopped.stderr
    sentence = stopped.stdout.splitlines()[-1]
    assert sentence.startswith("stopped; the same command without --overwrite resumes it: ")
    assert sentence.endswith("--seeds 0,1 --executor serial")
    assert "Traceback" not in stopped.stderr
    found = {row["exp"]: row["status"] for row in at.rows()}
    assert sorted(found.values()) == ["planned", "planned", "stopped", "stopped"]
    for run in (run for run, what in found.items() if what == "stopped"):
        assert rundir.read_meta(at.runs / run)["stopped_at"] == 30
    again = sweep(workshop, at, *SEEDS, "--executor", "serial")
    assert again.returncode == 0, again.stderr
    assert at.table() == swept.table()


@pytest.mark.slow
def test_a_signal_that_reaches_a_worker_alone_does_not_end_the_sweep(
    swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    """Each worker hears one as it saves its first training at step 30, and another takes its place."""
    at, log = sweep_paths(tmp_path), tmp_path / "log"
    environment = {"INTERRUPT": "after:step_00000030.safetensors:SIGTERM", "PYTHONPATH": INTERRUPTED}
    done = sweep(workshop, at, *SEEDS, "--executor", "process", **environment, INTERRUPT_LOG=str(log))
    assert done.returncode == 0, done.stderr
    assert len(log.read_text().splitlines()) == 2
    assert at.table() == swept.table()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_reaches_the_processes(
    number: int, status: int, swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    at = sweep_paths(tmp_path)
    driver = started(workshop, at, tmp_path / "errors")
    try:
        until(within(120, lambda: any(at.runs.glob("*/checkpoints/*.safetensors"))), "the first checkpoint")
        driver.send_signal(number)
        said, _ = driver.communicate(timeout=60)
    finally:
        driver.kill()
    assert driver.returncode == status, (tmp_path / "errors").read_text()
    assert "stopped; the same command without --overwrite resumes it: " in said.splitlines()[-1]
    assert "Traceback" not in (tmp_path / "errors").read_text()
    assert {row["status"] for row in at.rows()} <= {"planned", "stopped", "done"}
    again = sweep(workshop, at, *SEEDS, "--executor", "process")
    assert again.returncode == 0, again.stderr
    assert at.table() == swept.table()


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["process", "packed"])
def test_a_second_signal_ends_a_sweep_and_its_processes_while_they_compute(
    executor: str, swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    """Whoever trains stays where it has begun its first run, as while XLA compiles."""
    at, log, errors = sweep_paths(tmp_path), tmp_path / "log", tmp_path / "errors"
    environment = {"INTERRUPT": "after:meta.json:HOLD:2", "PYTHONPATH": INTERRUPTED, "INTERRUPT_LOG": str(log)}
    driver = started(workshop, at, errors, executor, **environment)
    try:
        until(within(120, log.exists), "the beginning of a run")
        driver.send_signal(signal.SIGINT)
        until(within(60, lambda: WAITING in errors.read_text()), "the word on the first signal")
        workers = children(driver.pid)
        driver.send_signal(signal.SIGINT)
        driver.communicate(timeout=60)
    finally:
        driver.kill()
    until(within(10, lambda: not any(map(is_alive, workers))), "the end of the workers")
    assert driver.returncode == 130
    assert errors.read_text().splitlines()[-1].startswith("stopped at once; what is on disk is kept")
    assert errors.read_text().count(WAITING) == 1
    again = sweep(workshop, at, *SEEDS, "--executor", "serial")
    assert again.returncode == 0, again.stderr
    if executor == "process":
        assert workers
        assert at.table() == swept.table()
