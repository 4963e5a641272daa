"""A sweep killed with SIGKILL at any moment and begun again writes the same CSV, and repeats no finished cell."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runners.tiny import ROOT, Workshop
from tests.sweeps.tiny_sweep import GRID, Place, place, sweep

# What the driver is killed for: the next file of this kind that appears below the runs folder. The moments are drawn
# by seed; where exactly the processes stand then, differs from time to time, and must not matter.
KINDS = (
    "plan.json",
    "config.json",
    "meta.json",
    "step_*.safetensors",
    "metrics.jsonl",
    "params.safetensors",
    "attention_stats.json",
    "comparators.json",
    "metrics_summary.json",
)
PATIENCE = 120.0  # seconds for the next file, or for a process to go
LINE = [sys.executable, "-m", "eval_noise", *GRID, "--seeds", "0,1", "--executor", "process"]


def children(parent: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
        except OSError:  # it is gone
            continue
    return found


def killed(at: Place, kind: str, environment: dict[str, str]) -> bool:
    """Starts the sweep and kills its driver when one more file of a kind is there; whether it came to that."""
    before = len(list(at.runs.rglob(kind)))
    driver = subprocess.Popen(
        [*LINE, *map(str, at.flags())], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + PATIENCE
    while driver.poll() is None and len(list(at.runs.rglob(kind))) <= before:
        assert time.monotonic() < deadline, f"no further {kind}"
        time.sleep(0.01)
    workers = children(driver.pid)
    driver.kill()
    ended = driver.wait()
    while any(Path(f"/proc/{worker}").exists() for worker in workers):  # they end with their input, by themselves
        assert time.monotonic() < deadline, "a worker outlives its driver"
        time.sleep(0.01)
    return ended == -signal.SIGKILL


def until_killed(times: int, seed: int, workshop: Workshop, folder: Path, swept: Place) -> None:
    """Kills sweeps as often, begins each again until it is done, and looks at what is there then."""
    draw, hits, number = random.Random(seed), 0, 0
    environment = os.environ | workshop.cache | {"NPROC": "1"}
    while hits < times:
        at, number = place(folder / str(number)), number + 1
        at.runs.parent.mkdir()
        kinds = draw.sample(KINDS, min(4, times - hits))
        written: dict[str, int] = {}
        for kind in kinds:
            hits += killed(at, kind, environment)
            now = at.written() if at.runs.exists() else {}
            assert written.items() <= now.items()  # what was finished is as it was
            written = now
        done = sweep(workshop, at, "--seeds", "0,1", "--executor", "process")
        assert done.returncode == 0, done.stderr
        assert written.items() <= at.written().items()
        assert at.table() == swept.table()


def test_a_sweep_that_is_killed_ends_with_the_same_table(workshop: Workshop, tmp_path: Path, swept: Place) -> None:
    until_killed(3, 0, workshop, tmp_path, swept)


@pytest.mark.slow
def test_a_sweep_that_is_killed_twenty_times_does_too(workshop: Workshop, tmp_path: Path, swept: Place) -> None:
    until_killed(20, 1, workshop, tmp_path, swept)
