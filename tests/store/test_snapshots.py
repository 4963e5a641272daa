"""Snapshots: rows in any order, read back as the parameters they were; what is broken is a sentence."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from store import layout, snapshots
from store.readers import StoreError

STEPS = (0, 5, 7)


def params(seed: int) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
    return {"layer/attention": {"key": draw(2, 3), "query": draw(4)}, "layer/norm": {"scale": draw()}}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    snapshots.begin(tmp_path, STEPS, params(0))
    return tmp_path


def test_rows_come_back_as_they_were_written(run: Path) -> None:
    for step in (7, 0, 5, 0):  # a resume writes a row again
        snapshots.write(run, step, params(step))
    snapshots.export(run)
    found = list(snapshots.read(run))
    assert [step for step, _ in found] == list(STEPS)
    for step, arrays in found:
        for module, leaves in params(step).items():
            assert set(arrays[module]) == set(leaves)
            for name, value in leaves.items():
                assert arrays[module][name].dtype == np.float32
                np.testing.assert_array_equal(arrays[module][name], value)


def test_the_file_has_its_full_size_at_once(run: Path) -> None:
    size = (run / layout.GROWING_SNAPSHOTS).stat().st_size
    assert size == len(STEPS) * (2 * 3 + 4 + 1) * 4
    snapshots.write(run, 7, params(7))
    assert (run / layout.GROWING_SNAPSHOTS).stat().st_size == size


@pytest.mark.parametrize("lost", [layout.GROWING_SNAPSHOTS, layout.SNAPSHOTS_INDEX])
def test_a_run_that_lost_them_is_not_gone_on_with(run: Path, lost: str) -> None:
    snapshots.check(run)
    (run / lost).unlink()
    with pytest.raises(StoreError, match="--overwrite trains the run anew"):
        snapshots.check(run)


def test_a_file_cut_short_is_seen(run: Path) -> None:
    with open(run / layout.GROWING_SNAPSHOTS, "r+b") as file:
        file.truncate(40)
    with pytest.raises(StoreError, match="is not the snapshots of a run; --overwrite"):
        snapshots.check(run)


def test_a_run_without_them_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"has no snapshots of its training; --config\.snapshots=true keeps them"):
        next(snapshots.read(tmp_path))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"text", "cannot be read"),
        (save({"a/b": np.zeros((3, 2), np.float32)}), "is not the snapshots of a run"),
        (save({"a/b": np.zeros((3, 2), np.float32), "step": np.array([0, 5])}), "is not the snapshots of a run"),
    ],
)
def test_a_file_of_something_else_is_named(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / layout.SNAPSHOTS).write_bytes(content)
    with pytest.raises(StoreError, match=rf"snapshots\.safetensors {sentence}"):
        list(snapshots.read(tmp_path))
