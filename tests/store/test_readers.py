"""Readers give what was written or a `StoreError` that names the file; no bytes make them do anything else."""

import json
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.run import to_dict
from icl_lab.store import StoreError, atomic, layout, readers, rundir
from icl_lab.store.metrics import read_metrics

READERS: dict[str, Callable[[Path], Any]] = {
    "json": readers.read_json,
    "jsonl": readers.read_json_lines,
    "csv": lambda path: readers.read_csv(path, ("step", "loss")),
    "npy": readers.read_npy,
    "npz": lambda path: readers.read_npz(path, ("x", "y")),
    "safetensors": readers.read_safetensors,
}
ROWS = [{"step": 0, "loss": 0.25}, {"step": 10, "loss": 0.125}]
ARRAYS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.array([True, False])}


class Trap:
    """Unpickling one of these fails the test."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return pytest.fail, ("a pickle was run",)


def valid(kind: str, folder: Path) -> bytes:
    """The bytes of a valid file of a kind."""
    path = folder / f"valid.{kind}"
    writers: dict[str, Callable[[], None]] = {
        "json": lambda: atomic.write_json(path, {"rows": ROWS}),
        "jsonl": lambda: atomic.write_bytes(path, "".join(json.dumps(row) + "\n" for row in ROWS).encode()),
        "csv": lambda: atomic.write_csv(path, ROWS),
        "npy": lambda: atomic.write_npy(path, ARRAYS["x"]),
        "npz": lambda: atomic.write_npz(path, ARRAYS),
        "safetensors": lambda: atomic.write_safetensors(path, ARRAYS, {"step": 3}),
    }
    writers[kind]()
    return path.read_bytes()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return {kind: valid(kind, tmp_path_factory.mktemp("good")) for kind in READERS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def attempt(read: Callable[[], Any]) -> Any:
    """What a reader gives, or its refusal."""
    try:
        return read()
    except StoreError as refusal:
        return refusal


def read_or_refuse(kind: str, content: bytes, folder: Path) -> Any:
    """What a reader gives, or its refusal, which must name the file and be one line."""
    path = folder / f"some.{kind}"
    path.write_bytes(content)
    found = attempt(lambda: READERS[kind](path))
    if isinstance(found, StoreError):
        assert str(path) in str(found)
        assert "\n" not in str(found)
    return found


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and np.array_equal(found, expected)
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(same(found[name], value) for name, value in expected.items())
    return bool(found == expected)


def test_what_was_written_is_read(good: dict[str, bytes], folder: Path) -> None:
    found = {kind: read_or_refuse(kind, content, folder) for kind, content in good.items()}
    assert found["json"] == {"rows": ROWS}
    assert found["jsonl"] == ROWS
    assert found["csv"].to_dict("records") == ROWS
    assert same(found["npy"], ARRAYS["x"])
    assert same(found["npz"], ARRAYS)
    assert same(found["safetensors"][0], ARRAYS)
    assert found["safetensors"][1] == {"step": 3}


@pytest.mark.parametrize("kind", READERS)
def test_missing_files_and_folders_are_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, words in {"missing": "does not exist", "folder": "is a folder"}.items():
        with pytest.raises(StoreError, match=words) as caught:
            READERS[kind](tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("kind", READERS)
@given(content=st.binary(max_size=200))
@example(content=b"")
@example(content=b"[" * 100_000)
@example(content=b'{"a":' * 100_000)
@example(content=b"PK\x03\x04 not a zip file")
@example(content=b"PK\x05\x06" + bytes(18))
@example(content=b"\x93NUMPY\x01\x00\x10\x00{'descr': (((((\n")
@example(content=b"\xff" * 8 + b"{}")
def test_no_bytes_make_a_reader_raise_anything_else(kind: str, content: bytes, folder: Path) -> None:
    read_or_refuse(kind, content, folder)


@pytest.mark.parametrize("kind", ["json", "npy", "npz", "safetensors"])
@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_files_are_refused(kind: str, share: float, good: dict[str, bytes], folder: Path) -> None:
    content = good[kind].rstrip(b"\n")
    assert isinstance(read_or_refuse(kind, content[: int(share * len(content))], folder), StoreError)


@pytest.mark.parametrize("kind", READERS)
@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_files_with_a_wrong_byte_are_read_or_refused(
    kind: str, place: float, byte: int, good: dict[str, bytes], folder: Path
) -> None:
    content = bytearray(good[kind])
    content[int(place * len(content))] = byte
    read_or_refuse(kind, bytes(content), folder)


TEXT = {"json", "jsonl", "csv"}  # the same text can be several of these


@pytest.mark.parametrize(("kind", "other"), [(a, b) for a in READERS for b in READERS if a != b and not {a, b} <= TEXT])
def test_files_of_another_format_are_refused(kind: str, other: str, good: dict[str, bytes], folder: Path) -> None:
    assert isinstance(read_or_refuse(kind, good[other], folder), StoreError)


@pytest.mark.parametrize("kind", READERS)
def test_pickles_are_refused_and_not_run(kind: str, folder: Path) -> None:
    assert isinstance(read_or_refuse(kind, pickle.dumps(Trap()), folder), StoreError)


def test_arrays_of_objects_are_refused_and_not_run(folder: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.array([Trap()], dtype=object), y=np.zeros(2))
    for kind in ("npy", "npz"):
        assert isinstance(read_or_refuse(kind, (tmp_path / f"a.{kind}").read_bytes(), folder), StoreError)


def test_missing_names_are_said(tmp_path: Path) -> None:
    atomic.write_npz(tmp_path / "a.npz", {"x": np.zeros(2)})
    atomic.write_csv(tmp_path / "a.csv", [{"step": 1, "accuracy": 2}])
    with pytest.raises(StoreError, match=r"a\.npz.*y"):
        readers.read_npz(tmp_path / "a.npz", ("x", "y"))
    with pytest.raises(StoreError, match=r"a\.csv.*no column loss"):
        readers.read_csv(tmp_path / "a.csv", ("step", "loss"))


def test_text_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LARGEST_TEXT", 2**20)
    (tmp_path / "a.json").write_bytes(b" " * (2**20 + 1))
    for read in (readers.read_json, readers.read_json_lines, lambda path: readers.read_csv(path, ())):
        with pytest.raises(StoreError, match=r"a\.json is larger than 1 MiB"):
            read(tmp_path / "a.json")


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers()), max_size=5), st.integers(0, 500))
def test_json_lines_lose_at_most_the_line_that_was_cut(folder: Path, records: list[dict[str, int]], cut: int) -> None:
    """Cut anywhere, a file of lines holds exactly the records whose line had ended."""
    lines = [json.dumps(record) + "\n" for record in records]
    content = "".join(lines).encode()[:cut]
    path = folder / "cut.jsonl"
    path.write_bytes(content)
    assert readers.read_json_lines(path) == records[: content.count(b"\n")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
LEAVES = [
    (section, name)
    for section, value in to_dict(RegressionConfig()).items()
    for name in (value if isinstance(value, dict) else [None])
]


@given(st.sampled_from(LEAVES), JSON)
@example(("training", "lr"), 10**400)
@example(("data", None), 3)
def test_a_config_with_a_foreign_value_is_read_or_refused(
    folder: Path, leaf: tuple[str, str | None], value: object
) -> None:
    config = to_dict(RegressionConfig())
    if leaf[1] is None:
        config[leaf[0]] = value
    else:
        config[leaf[0]][leaf[1]] = value
    (folder / layout.CONFIG).write_text(json.dumps(config))
    found = attempt(lambda: rundir.read_config(folder))
    assert isinstance(found, RegressionConfig) or str(folder / layout.CONFIG) in str(found)


@given(st.lists(JSON, max_size=3))
@example([3])
@example([[1]])
def test_metrics_with_foreign_lines_are_read_or_refused(folder: Path, lines: list[object]) -> None:
    (folder / layout.METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = attempt(lambda: read_metrics(folder))
    if isinstance(found, StoreError):
        assert str(folder / layout.METRICS) in str(found)
    else:
        assert found == lines
        assert all("step" in record for record in found)


# Files that claim more than they hold, or hold more than is read


def header(shape: str, descr: str = "<f4") -> bytes:
    """An npy file's header of 128 bytes."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n"


CLAIMS = ["(1000000000000,)", "(1000000, 1000000, 1000000)", "(4294967296, 4294967296)", "(3,)", "(-1,)", "(2.5,)"]


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_a_header_claims_is_not_allocated(claim: str, tmp_path: Path) -> None:
    tracemalloc.start()
    (tmp_path / "a.npy").write_bytes(header(claim) + bytes(8))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", header(claim) + bytes(8))
        archive.writestr("y.npy", header("(2,)") + bytes(8))
    for kind in ("npy", "npz"):
        with pytest.raises(StoreError, match=rf"a\.{kind} cannot be read"):
            READERS[kind](tmp_path / f"a.{kind}")
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.parametrize("descr", ["|V0", "|S0", "|O"])
def test_values_without_a_size_are_refused(descr: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(header("(1000000000000,)", descr) + bytes(8))
    with pytest.raises(StoreError, match=r"a\.npy"):
        readers.read_npy(tmp_path / "a.npy")


def test_a_small_zip_of_much_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LARGEST_ARRAYS", 2**22)
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(2**18, np.float32), y=np.zeros(2**18, np.float32), z=np.zeros(2**20))
    assert path.stat().st_size < 2**15
    tracemalloc.start()
    with pytest.raises(StoreError, match=r"a\.npz cannot be read: it holds more than"):
        readers.read_npz(path, ("x", "y"))
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_arrays_that_are_too_large_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LARGEST_ARRAYS", 2**10)
    atomic.write_npy(tmp_path / "a.npy", np.zeros(2**9))
    atomic.write_npz(tmp_path / "a.npz", {"x": np.zeros(2**9), "y": np.zeros(2)})
    atomic.write_safetensors(tmp_path / "a.safetensors", {"x": np.zeros(2**9)}, {})
    for kind in ("npy", "npz", "safetensors"):
        with pytest.raises(StoreError, match=rf"a\.{kind} cannot be read: it holds more than"):
            READERS[kind](tmp_path / f"a.{kind}")


def test_a_zip_entry_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", header("(1000000,)") + bytes(4_000_000))
        archive.writestr("y.npy", header("(2,)") + bytes(8))
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content.replace((4_000_128).to_bytes(4, "little"), (200).to_bytes(4, "little")))
    with pytest.raises(StoreError, match=r"a\.npz cannot be read"):
        readers.read_npz(tmp_path / "a.npz", ("x", "y"))


@pytest.mark.parametrize("kind", READERS)
def test_pipes_are_refused(kind: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="pipe is not a regular file"):
        READERS[kind](tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    with pytest.raises(StoreError, match="endless is not a regular file"):
        READERS[kind](tmp_path / "endless")


def test_text_columns_hold_what_their_cells_say(tmp_path: Path) -> None:
    """Whatever looks like a number or like nothing; one that is missing is named with the others."""
    path = tmp_path / "table.csv"
    path.write_text("name,version,loss\nNA,02,.5\n,2,\n")
    table = readers.read_csv(path, ["loss"], ["name", "version"])
    assert table["name"].tolist() == ["NA", ""]
    assert table["version"].tolist() == ["02", "2"]
    assert table["loss"].isna().tolist() == [False, True]
    with pytest.raises(StoreError, match=r"table\.csv cannot be read: it has no column status, seed"):
        readers.read_csv(path, ["loss", "seed"], ["name", "status"])
