"""A backup of hard links (`cp -al`) keeps its content whatever is done to the run that it was made of."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.store import checkpoint, layout, manifest, outputs, rundir, snapshots
from icl_lab.store.lock import locked
from icl_lab.store.metrics import append_metrics, truncate_metrics
from icl_lab.store.replacing import unshare
from tests.runners.tiny import INTERRUPTED, LSA1, SIZES, Workshop, workshop

pytestmark = pytest.mark.robust

__all__ = ["workshop"]

STEPS = (0, 5)
PARAMS = {"layer": {"w": np.ones((2, 3), np.float32)}}
RECORD = {"step": 5, "train_loss": 0.5, "test_loss": 0.5}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file's bytes, without locks, whose owners beat in place."""
    files = (path for path in folder.rglob("*") if path.is_file() and not layout.is_lock(path.name))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def linked_copy(folder: Path) -> Path:
    """What `cp -al` makes of a folder beside it."""
    return Path(shutil.copytree(folder, folder.with_name(f"{folder.name}.backup"), copy_function=os.link))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a file of each kind that grows or is cut."""
    run = tmp_path / "run"
    rundir.begin(run, RegressionConfig())
    rundir.update_meta(run, status="running")
    append_metrics(run, RECORD | {"step": 0})
    snapshots.begin(run, STEPS, PARAMS)
    snapshots.write(run, 0, PARAMS)
    checkpoint.save(run, 0, {"a": np.zeros(3)}, {})
    outputs.write({run.with_name("t.csv"): b"a\n"}, "a test")
    return run


# what is done to a run -> how
CHANGES: dict[str, Callable[[Path], object]] = {
    "status": lambda run: rundir.update_meta(run, status="stopped"),
    "record": lambda run: append_metrics(run, RECORD),
    "cut": lambda run: truncate_metrics(run, -1, []),
    "snapshot": lambda run: snapshots.write(run, 5, PARAMS),
    "snapshots anew": lambda run: snapshots.begin(run, STEPS, {"layer": {"w": np.zeros(7, np.float32)}}),
    "checkpoint": lambda run: checkpoint.save(run, 5, {"a": np.ones(3)}, {}),
    "same checkpoint": lambda run: checkpoint.save(run, 0, {"a": np.ones(3)}, {}),
    "file": lambda run: manifest.claim(run / layout.LLC),
    "release": lambda run: manifest.release(run, layout.METRICS),
    "cleared": rundir.clear,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_done_to_a_run_leaves_its_hard_links_as_they_were(change: str, run: Path) -> None:
    backup = linked_copy(run)
    before, of_run = contents(backup), contents(run)
    assert before == of_run
    with locked(run):
        CHANGES[change](run)
    assert contents(run) != of_run
    assert contents(backup) == before


def test_the_record_of_files_outside_of_runs_is_not_written_through_hard_links(run: Path) -> None:
    backup = run.with_name("backup")
    os.link(run.with_name(outputs.RECORD), backup)
    before = backup.read_bytes()
    outputs.write({run.with_name("t.csv"): b"b\n"}, "a test")
    assert backup.read_bytes() == before
    assert run.with_name(outputs.RECORD).read_bytes().startswith(before)


def test_a_file_without_further_names_stays_the_file_that_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a"
    unshare(path)  # there is none
    path.write_bytes(b"content")
    inode = path.stat().st_ino
    unshare(path)
    assert path.stat().st_ino == inode
    os.link(path, tmp_path / "b")
    (tmp_path / "link").symlink_to(path)
    unshare(tmp_path / "link")
    assert path.stat().st_nlink == 2
    unshare(path)
    assert (path.stat().st_nlink, path.read_bytes()) == (1, b"content")
    assert (tmp_path / "b").stat().st_ino == inode
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "link"]


def test_a_run_that_is_resumed_or_trained_again_leaves_its_backup_alone(tmp_path: Path, workshop: Workshop) -> None:
    line = [LSA1, *SIZES, "--config.snapshots=true", "--checkpoint_seconds", "0", "--quiet", "--out", tmp_path / "run"]
    killed = workshop.run(*line, INTERRUPT="after:step_00000060.safetensors:SIGKILL", PYTHONPATH=INTERRUPTED)
    assert killed.returncode == -9, killed.stderr
    for words in ([], ["--overwrite"]):
        backup = linked_copy(tmp_path / "run")
        before = contents(backup)
        assert workshop.run(*line, *words).returncode == 0
        assert contents(backup) == before
        backup.rename(tmp_path / f"kept{len(words)}")
