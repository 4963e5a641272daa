"""Files are there in full or not at all, equal contents are equal bytes, and nothing in JSON is NaN."""

import csv
import json
import math
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from icl_lab.store import atomic, layout, manifest, ownership

pytestmark = pytest.mark.robust

ARRAYS = hnp.arrays(
    st.sampled_from([np.float32, np.int32, np.bool_]), hnp.array_shapes(max_dims=3, max_side=4), elements=None
)
NAMED = st.dictionaries(st.text("abc_/", min_size=1, max_size=6), ARRAYS, min_size=1, max_size=3)
NUMBERS = st.floats() | st.integers(-(2**53), 2**53) | st.booleans() | st.none() | st.text(max_size=5)
TREES = st.recursive(NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def break_os(monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException) -> None:
    def broken(*args: object) -> None:
        raise error

    monkeypatch.setattr(os, function, broken)


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException
) -> None:
    path = tmp_path / "a.json"
    atomic.write_json(path, {"old": 1})
    break_os(monkeypatch, function, error)
    with pytest.raises(type(error)):
        atomic.write_json(path, {"new": 2})
    assert json.loads(path.read_text()) == {"old": 1}
    assert files(tmp_path) == ["a.json"]


def test_a_writer_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def save(buffer: object) -> None:
        buffer.write(b"half")  # type: ignore[attr-defined]
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        atomic.write_with(tmp_path / "a.png", save)
    assert files(tmp_path) == []


def test_a_file_appears_under_its_name_only_when_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is write, sync, rename: a crash between any two of them shows the old file or the new one."""
    path, seen = tmp_path / "deep" / "a.bin", []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (seen.append(("sync", path.exists(), os.fstat(fd).st_size)), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append(("rename", path.exists(), None)), replace(a, b)))
    atomic.write_bytes(path, b"12345")
    assert seen == [("sync", False, 5), ("rename", False, None)]
    assert path.read_bytes() == b"12345"
    assert files(tmp_path) == ["a.bin"]


def test_a_name_is_in_the_manifest_on_disk_before_its_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between any two syncs leaves no file without its line."""
    manifest.begin(tmp_path)
    record, fsync, seen = tmp_path / layout.MANIFEST, os.fsync, []

    def noted(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), os.stat(record)):
            seen.append((b'"a.bin"' in record.read_bytes(), files(tmp_path)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    atomic.write_bytes(tmp_path / "a.bin", b"12345")
    assert seen == [(True, [layout.MANIFEST])]
    assert files(tmp_path) == ["a.bin", layout.MANIFEST]


def write_everything(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    rows = [{"step": index, "loss": float(index) / 3} for index in range(3)]
    atomic.write_npz(folder / "a.npz", arrays)
    atomic.write_npy(folder / "a.npy", next(iter(arrays.values())))
    atomic.write_safetensors(folder / "a.safetensors", arrays, {"z": 1, "a": {"nan": math.nan}})
    atomic.write_json(folder / "a.json", dict(arrays))
    atomic.write_csv(folder / "a.csv", rows)


@given(NAMED)
def test_equal_arrays_are_equal_bytes_whenever_written(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray]
) -> None:
    early, late = tmp_path_factory.mktemp("early"), tmp_path_factory.mktemp("late")
    write_everything(early, arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: 2e9)  # the year 2033
        write_everything(late, {name: array.copy() for name, array in arrays.items()})
    for name in files(early):
        assert (early / name).read_bytes() == (late / name).read_bytes()
    assert len(files(early)) == 5


@given(NAMED)
def test_arrays_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray]) -> None:
    from safetensors.numpy import load

    folder = tmp_path_factory.mktemp("arrays")
    write_everything(folder, arrays)
    with np.load(folder / "a.npz", allow_pickle=False) as archive:
        from_npz = dict(archive)
    for found in (from_npz, load((folder / "a.safetensors").read_bytes())):
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)


def test_memory_layout_does_not_reach_safetensors(tmp_path: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    atomic.write_safetensors(tmp_path / "c", {"a": array}, {})
    atomic.write_safetensors(tmp_path / "f", {"a": np.asfortranarray(array)}, {})
    assert (tmp_path / "c").read_bytes() == (tmp_path / "f").read_bytes()


def test_the_order_of_metadata_does_not_reach_safetensors(tmp_path: Path) -> None:
    for name, metadata in {"a": {"x": 1, "y": 2}, "b": {"y": 2, "x": 1}}.items():
        atomic.write_safetensors(tmp_path / name, {"a": np.zeros(2)}, metadata)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def without_nan(value: object) -> object:
    """What strict JSON can hold of a tree: the same with null for every number that is not finite."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def forbidden(constant: str) -> None:
    raise AssertionError(f"{constant} in JSON")


@given(TREES)
def test_json_is_strict_and_exact(tree: object) -> None:
    assert json.loads(atomic.json_text(tree), parse_constant=forbidden) == without_nan(tree)


def test_numpy_values_are_numbers_in_json() -> None:
    value = {"a": np.float32(0.5), "b": np.int32(3), "c": np.bool_(True), "d": np.array([1.0, np.nan]), "e": (1, 2)}
    expected = {"a": 0.5, "b": 3, "c": True, "d": [1.0, None], "e": [1, 2]}
    assert json.loads(atomic.json_text(value), parse_constant=forbidden) == expected


@given(st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 99)), min_size=1))
def test_csv_keeps_every_bit_of_a_number(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, int]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    atomic.write_csv(path, [{"value": value, "step": step} for value, step in rows])
    with open(path, newline="", encoding="utf-8") as file:
        found = [(float(row["value"]), int(row["step"])) for row in csv.DictReader(file)]
    assert found == rows
    assert b"\r" not in path.read_bytes()


@pytest.mark.parametrize("block", [1, 3, 7, 100])
def test_a_csv_in_blocks_is_the_same_bytes(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a block has no number, or its first one, in a column."""
    rows = [{"step": step, "more": "x", "loss": None if step % 4 else step / 3, "never": None} for step in range(7)]
    monkeypatch.setattr(atomic, "BLOCK", block)
    columns = ("step", "loss", "never")
    assert b"".join(atomic.csv_blocks(iter(rows), columns)) == atomic.csv_bytes(rows, columns)


# Several writers of one file


def test_a_draft_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    """One that has been killed on this host leaves none; of others it is not known."""
    here, elsewhere = ownership.this_process(), ownership.Owner("", "elsewhere", 1, "1")
    running = here._replace(pid=os.getppid(), start=ownership.started(os.getppid()))
    for writer in (running, elsewhere, here._replace(start="1")):
        layout.draft(tmp_path / "a", writer.writer()).write_bytes(b"half")
    atomic.replace_file(tmp_path / "a", b"whole")
    drafts = [layout.draft(tmp_path / "a", writer.writer()).name for writer in (running, elsewhere)]
    assert files(tmp_path) == sorted(["a", *drafts])


@pytest.mark.parametrize("name", ["a", ".a.b", "checkpoints/step_00000010.safetensors"])
def test_the_name_of_a_draft_says_whose_it_is_and_of_what(name: str) -> None:
    for owner in (ownership.this_process(), ownership.Owner("", "elsewhere boot 1", 7, "")):
        draft = layout.draft(Path(name), owner.writer())
        assert layout.draft_parts(draft.name) == (Path(name).name, owner.writer())
        assert layout.draft_target(draft.as_posix()) == layout.manifest_name(name)
    assert layout.draft_parts(f".{Path(name).name}{layout.DRAFT}") == (Path(name).name, "")  # of earlier versions
    assert layout.draft_parts(Path(name).name) == ("", "")
