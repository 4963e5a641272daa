"""An error, a divergence or a death is that run's alone: the others are done, and a failed run is tried again."""

import re
from pathlib import Path

import pytest

from icl_lab.store import rundir
from icl_lab.sweeps.plan import runs_of
from icl_lab.sweeps.training import Progress
from tests.runners.tiny import INTERRUPTED, Workshop
from tests.sweeps.tiny_sweep import SIZES, Paths, sweep, sweep_paths, tiny_plan
from tests.trust.test_disks import mounted, remount

pytestmark = pytest.mark.robust

FAILING = str(Path(__file__).parent / "failing")
SEEDS = ["--seeds", "0,1"]
NAMES = [run.name for run in runs_of(tiny_plan())]
NOISY_1 = next(name for name in NAMES if "label_noise" in name and "seed1" in name)


def statuses(at: Paths) -> dict[str, str]:
    return {row["exp"]: row["status"] for row in at.rows()}


def tried_again(workshop: Workshop, at: Paths, swept: Paths | None, *words: object) -> None:
    """The next time all is done, and only what failed was."""
    before = at.written()
    done = sweep(workshop, at, *SEEDS, *words)
    assert done.returncode == 0, done.stderr
    assert set(statuses(at).values()) == {"done"}
    assert {name: at.written()[name] for name in before} == before
    if swept is not None:
        assert at.table() == swept.table()


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["packed", "process"])
def test_an_error_at_the_end_of_one_run_leaves_the_others_done(
    executor: str, swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    at, fail = sweep_paths(tmp_path), {"FAIL": f"*/{NOISY_1}/analysis/ood.csv", "PYTHONPATH": FAILING}
    done = sweep(workshop, at, *SEEDS, "--executor", executor, **fail)
    assert done.returncode == 1
    assert f"error: failed: {at.runs / NOISY_1}: RuntimeError: the sky has fallen" in done.stderr
    assert "the same command without --overwrite tries the failed runs again" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.endswith(": 7 of 8 planned rows are done\n")
    assert {name for name, status in statuses(at).items() if status == "failed"} == {NOISY_1}
    assert {status for name, status in statuses(at).items() if name != NOISY_1} == {"done"}
    error = rundir.read_meta(at.runs / NOISY_1)["error"]
    assert error.startswith("Traceback (most recent call last):")
    assert error.endswith("RuntimeError: the sky has fallen\n")
    tried_again(workshop, at, swept if executor == "process" else None, "--executor", executor)
    assert "error" not in rundir.read_meta(at.runs / NOISY_1)


@pytest.mark.slow
def test_a_place_that_is_taken_is_a_failed_run(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    at = sweep_paths(tmp_path)
    at.runs.mkdir()
    (at.runs / NOISY_1).write_text("not a folder")
    done = sweep(workshop, at, *SEEDS, "--executor", "serial")
    assert done.returncode == 1
    assert f"error: failed: {at.runs / NOISY_1}: " in done.stderr
    assert (at.runs / NOISY_1).read_text() == "not a folder"
    assert statuses(at) == {name: "failed" if name == NOISY_1 else "done" for name in NAMES}
    (at.runs / NOISY_1).unlink()
    tried_again(workshop, at, swept, "--executor", "serial")


@pytest.mark.slow
def test_a_directory_that_cannot_be_written_is_a_failed_run(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    at = sweep_paths(tmp_path)
    at.runs.mkdir()
    with mounted(at.runs / NOISY_1, "size=4m,ro"):
        done = sweep(workshop, at, *SEEDS, "--executor", "serial")
        assert done.returncode == 1
        assert f"error: failed: {at.runs / NOISY_1}: {at.runs / NOISY_1}/.lock: Read-only file system" in done.stderr
        assert statuses(at) == {name: "failed" if name == NOISY_1 else "done" for name in NAMES}
        remount(at.runs / NOISY_1, "rw")
        tried_again(workshop, at, swept, "--executor", "serial")


@pytest.mark.slow
def test_a_process_that_dies_takes_its_pack_and_no_more(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    """Each worker is killed as it writes parameters: every pack loses its process, and the sweep goes on and ends."""
    at = sweep_paths(tmp_path)
    place_hit = {"INTERRUPT": "before:params.safetensors:SIGKILL", "PYTHONPATH": INTERRUPTED}
    done = sweep(workshop, at, *SEEDS, "--executor", "process", **place_hit)
    assert done.returncode == 1
    assert done.stderr.count("its process ended with exit status -9") == len(NAMES)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert set(statuses(at).values()) == {"failed"}
    assert rundir.read_meta(at.runs / NOISY_1)["error"] == "its process ended with exit status -9"
    tried_again(workshop, at, swept, "--executor", "process")


@pytest.mark.slow
def test_a_run_that_diverges_is_not_tried_again_and_the_others_are_done(workshop: Workshop, tmp_path: Path) -> None:
    at = sweep_paths(tmp_path)
    noise = "--models lsa1 --noise_mode label_noise --p 0.5 --sigma 0.5,1e30 --placement mixed".split()
    words = ["--seeds", 0, "--executor", "packed", "--config.grad_clip=0"]
    done = sweep(workshop, at, *words, grid=[*noise, *SIZES])
    assert done.returncode == 0, done.stderr
    found = {row["sigma"]: row for row in at.rows()}
    assert {sigma: row["status"] for sigma, row in found.items()} == {"0.5": "done", "1e+30": "diverged"}
    assert (found["1e+30"]["test_mse"], found["0.5"]["test_mse"] != "") == ("", True)
    run = at.runs / found["1e+30"]["exp"]
    assert f"diverged: {run}" in done.stderr
    before = (run / "meta.json").read_bytes(), at.written(), at.table()
    again = sweep(workshop, at, *words, grid=[*noise, *SIZES])
    assert again.returncode == 0, again.stderr
    assert ((run / "meta.json").read_bytes(), at.written(), at.table()) == before


def test_there_is_a_sweep_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with Progress(10, 1) as progress:
        progress.report(3)
        progress.ended(10)


def test_progress_never_passes_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(10, 2) as progress:
        for _ in range(3):
            progress.report(6)
        progress.ended(10)
    assert [line.split("  ")[1] for line in capsys.readouterr().err.splitlines()] == ["6/10 steps", "10/10 steps"]
    assert progress.made == 10


def test_packs_that_end_early_count_as_made(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(100, 4) as progress:
        progress.report(10)
        progress.ended(25)
        progress.ended(50)
    shown = [re.sub(r"  [^ ]+ step/s  .* left", "", line) for line in capsys.readouterr().err.splitlines()]
    assert shown == [
        "10 %  10/100 steps  0 of 4 packs",
        "25 %  25/100 steps  1 of 4 packs",
        "50 %  50/100 steps  2 of 4 packs",
    ]


def test_a_quiet_sweep_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(10, 1, quiet=True) as progress:
        progress.report(10)
        progress.ended(10)
    assert capsys.readouterr() == ("", "")
