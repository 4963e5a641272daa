"""Snapshots: rows in any order, read back as the parameters they were; what is broken is a sentence."""

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from icl_lab.store import layout, manifest, readers, snapshots
from icl_lab.store.params import flattened
from icl_lab.store.readers import StoreError

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
    with pytest.raises(StoreError, match="--overwrite retrains the run"):
        snapshots.check(run)


def test_a_file_cut_short_is_seen(run: Path) -> None:
    with open(run / layout.GROWING_SNAPSHOTS, "r+b") as file:
        file.truncate(40)
    with pytest.raises(StoreError, match="is not the snapshots of a run; --overwrite"):
        snapshots.check(run)


@pytest.mark.parametrize("steps", [[0, [5], 7], [0, {}, 7], [0, "5", 7], [0, -5, 7]])
def test_an_index_of_steps_that_are_none_is_named(run: Path, steps: list[object]) -> None:
    index = run / layout.SNAPSHOTS_INDEX
    index.write_text(json.dumps(json.loads(index.read_text()) | {"steps": steps}))
    with pytest.raises(StoreError, match="is not the snapshots of a run; --overwrite"):
        snapshots.steps(run)


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


def test_the_exported_file_is_the_one_that_safetensors_writes(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows of an array are in memory at a time; its manifest names it, and no draft stays."""
    for step in STEPS:
        snapshots.write(run, step, params(step))
    manifest.begin(run)
    whole = {name: np.stack([flattened(params(step))[name] for step in STEPS]) for name in flattened(params(0))}
    expected = save(whole | {"step": np.array(STEPS)}, {"json": json.dumps({"rows": len(STEPS)})})
    for block in (1, 50, 2**24):
        monkeypatch.setattr(snapshots, "BLOCK", block)
        snapshots.export(run)
        assert (run / layout.SNAPSHOTS).read_bytes() == expected
    assert layout.SNAPSHOTS in manifest.names(run)
    assert not list(run.rglob("*.tmp"))


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """What is allocated at a time inside is at most so many bytes."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


def test_a_large_file_is_exported_and_read_in_the_memory_of_a_few_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 rows of a megabyte, beyond what is read of arrays at once."""
    steps, row = range(64), 2**20
    wide = {"layer": {"w": np.zeros((512, 256), np.float32), "v": np.zeros(2**17, np.float32)}}
    snapshots.begin(tmp_path, steps, wide)
    for step in steps:
        snapshots.write(tmp_path, step, {"layer": {name: value + step for name, value in wide["layer"].items()}})
    monkeypatch.setattr(snapshots, "BLOCK", row)
    monkeypatch.setattr(readers, "LARGEST_ARRAYS", 4 * row)
    with at_most(4 * row):
        snapshots.export(tmp_path)
    assert (tmp_path / layout.SNAPSHOTS).stat().st_size > 64 * row
    with pytest.raises(StoreError, match="it holds more than"):
        readers.read_safetensors(tmp_path / layout.SNAPSHOTS)
    with at_most(4 * row):
        found = [
            (step, float(read["layer"]["w"].min()), float(read["layer"]["v"].max()))
            for step, read in snapshots.read(tmp_path)
        ]
    assert found == [(step, step, step) for step in steps]


def test_a_row_that_is_too_large_is_refused_before_it_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots.export(run)
    monkeypatch.setattr(readers, "LARGEST_ARRAYS", 50)
    with pytest.raises(StoreError, match=r"snapshots\.safetensors cannot be read: it holds more than"):
        list(snapshots.read(run))


@pytest.mark.parametrize("change", ["cut short", "longer", "more rows"])
def test_a_header_that_does_not_fit_the_file_is_refused(run: Path, change: str) -> None:
    """A hostile one too, of which nothing is allocated."""
    snapshots.export(run)
    path = run / layout.SNAPSHOTS
    content = path.read_bytes()
    length = 8 + int.from_bytes(content[:8], "little")
    header = content[8:length].replace(b'"shape":[3]', b'"shape":[9]')
    changed = {
        "cut short": content[:-4],
        "longer": content + b"0000",
        "more rows": content[:8] + header + content[length:],
    }
    path.write_bytes(changed[change])
    with pytest.raises(StoreError, match=r"snapshots\.safetensors cannot be read"):
        list(snapshots.read(run))
