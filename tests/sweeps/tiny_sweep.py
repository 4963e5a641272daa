"""A sweep of a few seconds: eight planned points that mean four things, evaluated on two trainings.

Clean and label noise at evaluation, rates 0 and 1/2, trained clean, two seeds. The clean points and those of rate 0
are one run a seed; runs of one seed differ in evaluation alone and share its training.
"""

import csv
import fcntl
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from icl_lab.families.regression.config import CONTEXT_FLAGS
from icl_lab.lab.configs.family import AUTO
from icl_lab.store import layout, rundir
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import Point, plan
from tests.runners import tiny
from tests.runners.tiny import Done, Workshop

SETTINGS = {
    "dim": 4,
    "num_pairs": 6,
    "batch_size": 64,
    "eval_tasks": 64,
    "test_tasks": 200,
    "step_size_tasks": 256,
    "eval_every": 30,
}
SIZES = ["--steps", "60", *(f"--config.{name}={value}" for name, value in SETTINGS.items())]
POINTS = "--models lsa1 --noise_mode clean,label_noise --p 0,0.5 --sigma 0.5 --placement mixed".split()
GRID = [*POINTS, "--train_noise_mode", "clean", *SIZES]
LONG_GRID = [word if word != "60" else "1500" for word in GRID]  # to be disturbed
TRAINED = "params.safetensors"


class Paths(NamedTuple):
    """Where a sweep's runs and its CSV are."""

    runs: Path
    out: Path

    def flags(self) -> list[object]:
        return ["--runs_dir", self.runs, "--out", self.out]

    def table(self) -> bytes:
        return self.out.read_bytes()

    def rows(self) -> list[dict[str, str]]:
        """The CSV's rows, by column."""
        return list(csv.DictReader(self.out.read_text().splitlines()))

    def written(self) -> dict[str, int]:
        """When each finished run was written: its parameters, and the last word on it."""
        done = [path.parent for path in self.runs.glob(f"*/{layout.META}") if rundir.read_status(path.parent) == "done"]
        return {
            f"{run.name}/{name}": (run / name).stat().st_mtime_ns for run in done for name in (TRAINED, "meta.json")
        }


def sweep_paths(folder: Path) -> Paths:
    return Paths(folder / "runs", folder / "results.csv")


def sweep(workshop: Workshop, at: Paths, *words: object, grid: Sequence[object] = GRID, **environment: str) -> Done:
    """The driver, on a core of its own."""
    return workshop.run("eval_noise", *grid, *at.flags(), *words, **{"NPROC": "1", **environment})


def tiny_plan(seeds: Sequence[int] = (0, 1)) -> list[Point]:
    """The plan of the tiny sweep, made without its command line."""
    axes = {flag.name: [AUTO] for flag in CONTEXT_FLAGS}
    axes |= {"noise_mode": ["clean", "label_noise"], "noise_p": [0.0, 0.5], "noise_sigma": [0.5]}
    axes |= {"noise_placement": ["mixed"], "train_noise_mode": ["clean"]}
    return plan([Grid(("lsa1",), axes, tuple(seeds), {"training.steps": 60, **SETTINGS})])


@pytest.fixture(scope="session")
def swept(workshop: Workshop) -> Paths:
    """The finished sweep of seeds 0 and 1, one training after another; not to be changed."""
    folder = workshop.folder / "sweep"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "said").exists():
            done = sweep(workshop, sweep_paths(folder), "--seeds", "0,1", "--executor", "serial")
            assert done.returncode == 0, done.stderr
            (folder / "said").write_text(done.stdout)
    return sweep_paths(folder)


def copied(swept: Paths, to: Path) -> Paths:
    """A copy of a sweep, times of writing included, to be changed."""
    tiny.copied(swept.runs, to / "runs")
    shutil.copy2(swept.out, to / "results.csv")
    return sweep_paths(to)
