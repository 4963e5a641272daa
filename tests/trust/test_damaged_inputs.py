"""A damaged input is one sentence and exit status 2, and what was measured before stays as it is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from icl_lab.store import StoreError, layout
from icl_lab.store.atomic import csv_bytes, write_bytes
from tests.doors import ROOT, Ran
from tests.runners.tiny import LSA1, Workshop, copied

pytestmark = pytest.mark.robust

GOOD = b'{"a good": "result"}\n'  # what every analysis left
NONE: list[object] = []

# commands that read the snapshots of a run -> what asks for them
READ_SNAPSHOTS: dict[str, list[object]] = {
    "losses": NONE,
    "over_training": NONE,
    "algorithm_distance": ["--snapshots"],
    "essential_dynamics": NONE,
    "developmental_metrics": NONE,
    "curvature": ["--checkpoints", "all"],
    "llc": ["--checkpoints", "all"],
    "llc_calibrate": NONE,
    "llc_saturation": ["--checkpoints", "all"],
    "develop": NONE,
}


def arrays_with(change: Callable[[np.ndarray], np.ndarray], steps: bool) -> Callable[[bytes], bytes]:
    """Changes the parameters of snapshots, or their steps too."""

    def changed(content: bytes) -> bytes:
        arrays = load(content)
        return save({name: change(array) if steps or name != "step" else array for name, array in arrays.items()})

    return changed


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:-100],
    "garbage": lambda content: b"\xff" * 500,
    "no rows": arrays_with(lambda array: array[:0], steps=True),
    "one row": arrays_with(lambda array: array[:1], steps=True),
    "no steps": arrays_with(lambda array: array * 0, steps=True),
    "not finite": arrays_with(lambda array: array * np.float32(np.nan), steps=False),
    "other shapes": arrays_with(lambda array: array[..., None], steps=False),
}


def outputs_of_analyses() -> list[str]:
    """The files that analyses of a run write."""
    folders = (f"{layout.ANALYSIS}/", f"{layout.FIGURES}/")
    return sorted(name for name in layout.FIXED_NAMES if name.startswith(folders) and layout.is_run_file(name))


@pytest.fixture(scope="module")
def kept(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with snapshots, and a good result of every analysis. Read only."""
    run = copied(
        workshop.finished("damaged", LSA1, "--config.snapshots=true", "--eval_every", 15),
        tmp_path_factory.mktemp("kept") / "run",
    )
    for name in outputs_of_analyses():
        if not (run / name).exists():
            write_bytes(run / name, GOOD)
    return run


def contents(run: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    files = (path for path in run.rglob("*") if path.is_file() and not layout.is_lock(path.name))
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", READ_SNAPSHOTS)
def test_damaged_snapshots_leave_every_result_as_it_was(name: str, kept: Path, tmp_path: Path, ran: Ran) -> None:
    run = copied(kept, tmp_path / "run")
    good = (run / layout.SNAPSHOTS).read_bytes()
    for what, damaged in DAMAGE.items():
        (run / layout.SNAPSHOTS).write_bytes(damaged(good))
        before = contents(run)
        done = ran(f"analysis.{name}", "--run", run, *READ_SNAPSHOTS[name])
        assert (done.status, done.err.count("\n")) == (2, 1), (what, done)
        assert str(run / layout.SNAPSHOTS) in done.err, what
        assert contents(run) == before, what


def test_no_other_command_reads_snapshots() -> None:
    """By their sources, which speak of checkpoints or snapshots."""
    speak = {
        path.stem
        for path in (ROOT / "analysis").glob("*.py")
        if "checkpoints" in (text := path.read_text()) or "snapshots" in text
    }
    assert speak - {*READ_SNAPSHOTS} == {
        "loaded_run",
        "run",
        "hessian",
        "stages",
        "nearest_algorithm",
    }  # no commands, one that reads llc.csv, and one of prompts of functions: tests/runners/test_run_functions.py


def test_a_table_without_rows_is_not_written() -> None:
    with pytest.raises(StoreError, match="a table would have no rows"):
        csv_bytes([])
    assert csv_bytes([], ("a", "b")) == b"a,b\n"
