"""A sweep from Python: the table and the runs of the command, errors as exceptions, and a process left as it was."""

from __future__ import annotations

import csv
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.lab.executors.task import Outcome, Task
from icl_lab.src.checks import UserError
from icl_lab.sweeps import sweep as module
from icl_lab.sweeps.plan_file import read_plan
from icl_lab.sweeps.sweep import RunsFailed, sweep
from tests.doors import Ran, snapshot
from tests.runners.tiny import ROOT, Workshop, results
from tests.sweeps.tiny_sweep import SETTINGS

AXES: dict[Any, Any] = {"num_layers": [1, 2], ("lr", "steps"): [(1e-3, 10), (1e-4, 20)]}


def rows(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(out.read_text().splitlines()))


def test_the_plan_is_that_of_the_command(ending: dict[str, Any], ran: Ran, tmp_path: Path) -> None:
    out = sweep("lsa1", AXES, seeds=range(2), settings=SETTINGS | {"p": 0.5}, preset="paper")
    assert (out, os.path.isabs(out)) == (Path("results_lsa1.csv"), False)
    words = ["--sweep", "num_layers=1,2", "--zip", "lr=1e-3,1e-4", "steps=10,20", "--seeds", "0-1", "--noise_p", "0.5"]
    words += ["--preset", "paper", *(f"--config.{name}={value}" for name, value in SETTINGS.items())]
    ran("sweeps.run", "lsa1", *words, "--out", "other.csv", "--runs_dir", "other")
    asked, same = (
        read_plan(tmp_path / place) for place in ("runs/sweep_lsa1/plan_results_lsa1.json", "other/plan_other.json")
    )
    assert asked == same
    assert len(asked) == 8


def test_values_of_numpy_are_those_of_python(ending: dict[str, Any]) -> None:
    out = sweep("lsa1", {"num_layers": np.array([1, 2]), "lr": np.geomspace(1e-3, 1e-1, 3)}, seeds=np.arange(2))
    assert [(row["model.num_layers"], float(row["training.lr"]), row["seed"]) for row in rows(out)] == [
        (layers, pytest.approx(rate), seed) for layers in "12" for rate in (1e-3, 1e-2, 1e-1) for seed in "01"
    ]


@pytest.mark.parametrize(
    ("axes", "more", "sentence"),
    [
        ({"num_tasks": [3]}, {}, "unknown config key 'num_tasks' of the family regression"),
        ({"lr": 3.0}, {}, "the values of lr are 3.0; give a list of them"),
        ({"lr": "1e-3"}, {}, "the values of lr are '1e-3'; give a list of them"),
        ({3: [1]}, {}, "3 is not the name of a field"),
        ({("lr", "steps"): [(1e-3, 2), (1e-4,)]}, {}, r"lr and steps move together, so \(0.0001,\) must have 2 values"),
        ({("lr", "steps"): []}, {}, "lr and steps is an empty list"),
        ({"lr": [1e-3]}, {"settings": {"training.lr": 2.0}}, "lr is swept, and set for all runs alike"),
        ({}, {"settings": {"num_task": 2}}, "unknown config key 'num_task' of the family regression"),
        ({"lr": ["x"]}, {}, "training.lr is 'x'; it must be a number"),
        ({"lr": [-1.0]}, {}, "lsa1 with lr -1.0: lr is -1.0; it must be above 0"),
        ({"steps": [True]}, {}, "steps is True; it must be of type int"),
        ({"attention": ["linear"]}, {}, "attention is a list of words; each of its values stands in brackets"),
        ({}, {"seeds": 3}, "the seeds are 3; give a list of them"),
        ({}, {"seeds": ["0-4"]}, r"the seeds are \['0-4'\]; they must be whole numbers"),
        ({}, {"seeds": [-1]}, "data_seed is -1; it must be a whole number"),
        ({}, {"executor": "none"}, "executor is 'none'; it must be one of process"),
        ({}, {"width": 0}, "width is 0, which is not a whole number from 1 to 4096"),
        ({}, {"preset": "x"}, "lsa1 has no preset x; it has default, paper, published"),
        ({}, {"model": []}, "model is an empty list"),
        ({}, {"model": "lsa9"}, "unknown model 'lsa9'"),
        ({}, {"out": "/proc/no/t.csv"}, "/proc/no/t.csv"),
        ({}, {"runs_dir": "file"}, "file is a file, not a folder"),
    ],
)
def test_what_cannot_be_swept_is_an_exception_and_nothing_is_written(
    axes: Any, more: dict[str, Any], sentence: str, ending: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    before = snapshot(tmp_path)
    with pytest.raises(UserError, match=sentence):
        sweep(**{"model": "lsa1", "axes": axes, **more})
    assert snapshot(tmp_path) == before


def test_an_interrupted_call_is_a_keyboard_interrupt_with_its_table_and_plan_there(
    ending: dict[str, Any], tmp_path: Path
) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    ended: list[str] = []

    def interrupted(task: Task) -> Outcome:
        ended.append(task.name)
        signal.raise_signal(signal.SIGINT)
        return Outcome(task, ({}, True))

    ending["task"] = interrupted
    with pytest.raises(KeyboardInterrupt):
        sweep("lsa1", {"lr": [1e-3, 1e-2]})
    assert len(ended) == 1
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert [row["status"] for row in rows(tmp_path / "results_lsa1.csv")] == ["planned", "planned"]
    assert len(read_plan(tmp_path / "runs/sweep_lsa1/plan_results_lsa1.json")) == 2


def test_failed_runs_are_an_exception_once_the_table_is_written(ending: dict[str, Any], tmp_path: Path) -> None:
    ending["task"] = lambda task: Outcome(task, error=ValueError("no luck"))
    with pytest.raises(
        RunsFailed, match=r"^2 of 2 runs have failed, such as runs/sweep_lsa1/lsa1_random_seed0-\w+: Va"
    ):
        sweep("lsa1", {"lr": [1e-3, 1e-2]})
    assert [row["status"] for row in rows(tmp_path / "results_lsa1.csv")] == ["failed", "failed"]


def test_rows_of_another_grid_are_kept_or_dropped_only_when_asked(ending: dict[str, Any]) -> None:
    out = sweep("lsa1", {"lr": [1e-3, 1e-2]})
    with pytest.raises(UserError, match="rows that this sweep does not plan"):
        sweep("lsa1", {"num_layers": [2]})
    sweep("lsa1", {"num_layers": [2]}, append=True)
    assert len(rows(out)) == 3
    sweep("lsa1", {"num_layers": [2]}, replace_table=True)
    assert len(rows(out)) == 1


def test_the_environment_is_left_as_it_was(ending: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "")  # which counts as unset, and is taken away while the call lasts
    before = dict(os.environ)
    sweep("lsa1")
    assert dict(os.environ) == before
    monkeypatch.setattr(module.work, "checked", lambda *_: os.environ.pop("JAX_PLATFORMS") or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sweep("lsa1")
    assert dict(os.environ) == before


SCRIPT = """
import os, signal, sys, threading, time, warnings
from pathlib import Path
import jax
from icl_lab.sweeps.sweep import sweep

folder, interrupted, *executors = sys.argv[1:]
os.chdir(folder)

def state():
    return dict(os.environ), signal.getsignal(signal.SIGINT), warnings.filters[:], dict(jax.config.values)

def interrupt():
    while not [*Path(executors[0]).glob("*/metrics.jsonl")]:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

before = state()
if interrupted == "interrupted":
    threading.Thread(target=interrupt, daemon=True).start()
for executor in executors:
    while True:
        try:
            places = {"runs_dir": executor, "out": executor + ".csv"}
            sweep("lsa1", {"lr": [1e-3, 1e-2]}, settings=SETTINGS, executor=executor, **places)
            break
        except KeyboardInterrupt:
            print("interrupted")
        finally:
            assert state() == before, [one for one, other in zip(state(), before) if one != other]
"""


def swept_by(script: Path, workshop: Workshop, steps: int, *words: object) -> str:
    """What the script printed, whose sweep has so many steps."""
    script.write_text(f"SETTINGS = {SETTINGS | {'steps': steps}!r}\n{SCRIPT}")
    done = workshop.python(script, script.parent, *words, NPROC="1", PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_command(workshop: Workshop, folder: Path, steps: int) -> list[dict[str, str]]:
    sizes = [f"--config.{name}={value}" for name, value in SETTINGS.items()]
    words = ["--sweep", "lr=1e-3,1e-2", "--steps", steps, *sizes, "--executor", "serial"]
    done = workshop.run("sweeps.run", "lsa1", *words, "--runs_dir", folder / "c", "--out", folder / "c.csv", NPROC="1")
    assert done.returncode == 0, done.stderr
    return rows(folder / "c.csv")


@pytest.mark.slow
def test_runs_in_this_process_or_in_others_are_those_of_the_command(workshop: Workshop, tmp_path: Path) -> None:
    """To the byte, with one thread each; and the process that called has the settings that it had."""
    swept_by(tmp_path / "script.py", workshop, 60, "whole", "serial", "process")
    expected = by_command(workshop, tmp_path, 60)
    for name in ("serial", "process"):
        assert [row | {"runs_dir": "c"} for row in rows(tmp_path / f"{name}.csv")] == expected
        for row in expected:
            assert results(tmp_path / name / row["exp"]) == results(tmp_path / "c" / row["exp"])


@pytest.mark.robust
@pytest.mark.parametrize("executor", ["serial", "process"])
def test_an_interrupted_call_made_again_gives_the_runs_of_an_uninterrupted_one(
    executor: str, workshop: Workshop, tmp_path: Path
) -> None:
    said = swept_by(tmp_path / "script.py", workshop, 3000, "interrupted", executor)
    assert said.count("interrupted") == 1
    expected = by_command(workshop, tmp_path, 3000)
    for row in expected:
        assert results(tmp_path / executor / row["exp"]) == results(tmp_path / "c" / row["exp"])
