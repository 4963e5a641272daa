"""A sweep whose runs were begun in packs of another width goes on from their step, or refuses to; none is cleared."""

from pathlib import Path

import numpy as np
import pytest

from icl_lab.store import checkpoint, rundir
from tests.doors import snapshot
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, Workshop
from tests.sweeps.tiny_sweep import Paths, sweep, sweep_paths
from tests.sweeps.tiny_sweep import copied as copied_sweep

pytestmark = pytest.mark.robust

SEEDS = [*EVERY_CHUNK, "--seeds", "0,1"]


@pytest.fixture(scope="module")
def stopped(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """The sweep in packs of two trainings, stopped at step 30. Read only."""
    at = sweep_paths(tmp_path_factory.mktemp("stopped"))
    environment = {"INTERRUPT": "after:step_00000030.safetensors:SIGTERM", "PYTHONPATH": INTERRUPTED}
    done = sweep(workshop, at, *SEEDS, "--executor", "packed", "--width", 2, **environment)
    assert done.returncode == 143, done.stderr
    return at


def runs(at: Paths) -> list[Path]:
    return sorted({at.runs / row["exp"] for row in at.rows()})


@pytest.mark.slow
def test_runs_go_on_from_their_step_and_the_table_says_so(
    stopped: Paths, swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    at = copied_sweep(stopped, tmp_path)
    for run in runs(at):
        rundir.update_meta(run, mark="it was not begun again")
    done = sweep(workshop, at, *SEEDS, "--executor", "serial")
    assert done.returncode == 0, done.stderr
    assert "4 of 4 finished runs were resumed under other conditions" in done.stdout
    change = {"step": 30, "what": "pack_width", "was": 2, "is": 1}
    for meta in map(rundir.read_meta, runs(at)):
        assert (meta["resumed_elsewhere"], meta["mark"]) == ([change], "it was not begun again")
    for row, expected in zip(at.rows(), swept.rows(), strict=True):
        assert list(row)[-2:] == ["runs_dir", "bitwise"]
        assert (row["bitwise"], expected["bitwise"]) == ("false", "true")
        for name in ("test_mse", "align_cos", "gd_mse"):
            np.testing.assert_allclose(float(row[name]), float(expected[name]), rtol=1e-5, atol=1e-5)


def test_if_that_is_refused_the_runs_have_failed_and_stay_as_they_are(
    stopped: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    at = copied_sweep(stopped, tmp_path)
    before = {run: snapshot(run) for run in runs(at)}
    done = sweep(workshop, at, *SEEDS, "--executor", "process", "--strict_resume")
    assert done.returncode == 1
    for run in runs(at):
        reason = f"{run} was begun with pack_width 2, not 1; --overwrite retrains it"
        assert f"error: failed: {run}: {reason}" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert {run: snapshot(run) for run in runs(at)} == before
    assert [checkpoint.steps(run)[-1] for run in runs(at)] == [30] * 4
    assert {(row["status"], row["bitwise"]) for row in at.rows()} == {("failed", "")}
