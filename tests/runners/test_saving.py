"""How often a run's state is saved: by an interval of its own, at every stop, and not where a run diverged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.lab.progress import NullLogger
from icl_lab.runners import loop
from icl_lab.runners.command import report_divergence
from icl_lab.runners.loop import Run, run_pack
from icl_lab.runners.resume import Persistence
from icl_lab.store import checkpoint, layout, rundir
from tests.doors import Refused, ran, refused
from tests.runners.test_loop import FakePack, runs, sending, train
from tests.runners.tiny import INTERRUPTED, LSA1, SIZES, Workshop, results

__all__ = ["ran", "refused", "runs"]

LARGE = ("--checkpoint_seconds", "1e6", "--config.snapshots=true")
Saved = Callable[..., list[int]]


@pytest.fixture
def saved(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> Saved:
    """The steps at which a run of six chunks of ten seconds each is saved, by the interval and the cost of a save."""
    clock, steps, cost = [100.0], [], [0.0]

    def advance(pack: FakePack) -> Any:
        clock[0] += 10.0
        return FakePack.advance(pack)

    def save(pack: FakePack, index: int) -> None:
        steps.append(pack.step)
        clock[0] += cost[0]
        FakePack.save(pack, index)

    timed = type("Timed", (FakePack,), {"advance": advance, "save": save})
    monkeypatch.setattr(loop, "Pack", timed)
    monkeypatch.setattr(loop.time, "monotonic", lambda: clock[0])

    def trained(seconds: float, save_seconds: float = 0.0) -> list[int]:
        cost[0] = save_seconds
        run_pack(runs[:1], NullLogger(), width=2, persistence=Persistence(seconds))
        return steps

    return trained


@pytest.mark.parametrize(
    ("seconds", "steps"),
    [(0, [1, 2, 3, 4, 5, 6]), (10, [1, 2, 3, 4, 5, 6]), (15, [2, 4, 6]), (40, [4, 6]), (float("inf"), [6])],
)
def test_a_state_is_saved_when_so_long_has_passed_since_the_last_and_at_the_end(
    seconds: float, steps: list[int], saved: Saved
) -> None:
    assert saved(seconds) == steps


@pytest.mark.parametrize(("seconds", "steps"), [(0, [1, 2, 3, 4, 5, 6]), (10, [1, 4, 6]), (30, [3, 6])])
def test_a_state_that_takes_long_to_save_is_saved_less_often(seconds: float, steps: list[int], saved: Saved) -> None:
    """Half a second is 2 % of 25: where saves are asked for every ten seconds they come after thirty."""
    assert saved(seconds, 0.5) == steps


def test_of_a_run_that_diverged_the_last_saved_state_stays(
    saved: Saved, runs: list[Run], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakePack, "diverging_at", 4)
    assert saved(25) == [3]
    run = runs[0].directory
    assert (rundir.read_status(run), checkpoint.steps(run)) == ("diverged", [3])
    report_divergence(run, "lsa1")
    assert f"the state after step 3 is kept in {layout.checkpoint(run, 3)}" in capsys.readouterr().err


def test_of_a_run_that_diverged_before_it_was_saved_nothing_is_said_to_be_kept(
    saved: Saved, runs: list[Run], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakePack, "diverging_at", 2)
    assert saved(25) == []
    report_divergence(runs[0].directory, "lsa1")
    assert capsys.readouterr().err.endswith("usually helps\n")


def test_a_signal_while_runs_are_saved_stops_them_there(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    sending(monkeypatch, FakePack, "save")
    assert train(runs) == "stopped"
    assert [checkpoint.steps(run.directory) for run in runs] == [[1], [1]]


def steps_of(run: Path) -> tuple[list[int], list[int]]:
    """The steps with records, and those with checkpoints."""
    lines = (run / layout.METRICS).read_text().splitlines()
    return [json.loads(line)["step"] for line in lines], checkpoint.steps(run)


@pytest.mark.slow
def test_a_kill_costs_what_came_since_the_last_save_and_a_stop_nothing(workshop: Workshop, tmp_path: Path) -> None:
    """Each time at a record in the middle of an interval, in which nothing is saved; at the end the bytes are those of
    a run that nothing happened to.
    """
    run, line = tmp_path / "run", [LSA1, *SIZES, *LARGE, "--out", tmp_path / "run"]

    def interrupted(name: str, count: int) -> int:
        place = f"synced:metrics.jsonl:{name}:{count}"
        return workshop.run(*line, INTERRUPT=place, PYTHONPATH=INTERRUPTED).returncode

    assert (interrupted("SIGKILL", 3), *steps_of(run)) == (-9, [0, 30, 60], [])  # before anything was saved
    assert (interrupted("SIGTERM", 2), *steps_of(run)) == (143, [0, 30], [30])  # begun again, and stopped
    assert rundir.read_meta(run)["stopped_at"] == 30
    assert (interrupted("SIGKILL", 2), *steps_of(run)) == (-9, [0, 30, 60, 90], [30])
    assert (interrupted("SIGTERM", 1), *steps_of(run)) == (143, [0, 30, 60], [30, 60])  # again from step 30
    done = workshop.run(*line)
    assert done.returncode == 0, done.stderr
    assert results(run) == results(workshop.finished("saved", LSA1, *LARGE))


@pytest.mark.slow
def test_snapshots_of_steps_after_the_last_save_are_written_again(workshop: Workshop, tmp_path: Path) -> None:
    """What such a row held, before the run went on, does not matter."""
    run, line = tmp_path / "run", [LSA1, *SIZES, *LARGE, "--out", tmp_path / "run"]
    for place in ("synced:metrics.jsonl:SIGTERM:2", "synced:metrics.jsonl:SIGKILL:1"):
        workshop.run(*line, INTERRUPT=place, PYTHONPATH=INTERRUPTED)
    assert steps_of(run) == ([0, 30, 60], [30])
    growing = run / layout.GROWING_SNAPSHOTS
    rows = np.fromfile(growing, "<f4").reshape(5, -1)
    rows[2:] = np.pi
    rows.tofile(growing)
    assert workshop.run(*line).returncode == 0
    assert results(run) == results(workshop.finished("saved", LSA1, *LARGE))


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon", "''"])
@pytest.mark.parametrize("command", [LSA1, "eval_noise", "eval_diversity", "studies.run", "scripts.demo_seeds"])
def test_an_interval_that_is_none_is_refused(command: str, seconds: str, refused: Refused) -> None:
    said = refused(command, f"--checkpoint_seconds={seconds}")
    assert said.startswith(
        f"error: argument --checkpoint_seconds: {seconds!r} is not a number from 0 to 1e+09 (30 years)"
    )
    assert said.endswith(", nor inf\n")
