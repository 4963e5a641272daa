"""The cache of pools: what it gives is what was made, and whatever lies in its folder costs time alone."""

import hashlib
import io
import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.families import cache
from icl_lab.families.cache import Arrays
from icl_lab.families.languages import codes, pools
from icl_lab.families.languages.codes import coded_pools
from icl_lab.families.languages.data import CodeConfig, LanguageData
from icl_lab.families.languages.pools import pools_of
from icl_lab.lab import caches
from tests.trust.damage import mutated

DATA = LanguageData(pool_size=64, max_length=12)
CODE = CodeConfig()


def cached(depends_on: str, make: Callable[[], Arrays]) -> Arrays:
    """Arrays that are kept as they are."""
    return cache.cached("languages", depends_on, make, lambda arrays: arrays, lambda arrays: arrays)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "icl-lab-languages"


def test_what_is_kept_is_made_once(folder: Path) -> None:
    made = []

    def make() -> dict[str, np.ndarray]:
        made.append(1)
        return {"a": np.arange(3), "words": np.array(["x", "y"])}

    for _ in range(2):
        found = cached("this", make)
        np.testing.assert_array_equal(found["a"], [0, 1, 2])
        assert list(found["words"]) == ["x", "y"]
    assert len(made) == 1
    cached("that", make)
    assert len(made) == 2
    assert len([*folder.iterdir()]) == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no archive"])
def test_a_broken_file_is_made_again(content: bytes, folder: Path) -> None:
    cached("this", lambda: {"a": np.arange(3)})
    (path,) = folder.iterdir()
    path.write_bytes(content)
    np.testing.assert_array_equal(cached("this", lambda: {"a": np.arange(4)})["a"], np.arange(4))
    np.testing.assert_array_equal(cached("this", lambda: {"a": np.arange(5)})["a"], np.arange(4))


def test_whatever_is_damaged_is_made_again(folder: Path) -> None:
    good, draw = {"a": np.arange(30), "words": np.array(["x", "y"])}, random.Random(1)
    cached("this", lambda: good)
    (path,) = folder.iterdir()
    content = path.read_bytes()
    for _ in range(1000):
        path.write_bytes(mutated(draw, content))
        found = cached("this", lambda: good)
        assert found.keys() == good.keys()
        assert all(np.array_equal(found[name], good[name]) for name in good)


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for name in ("this", "that"):
        np.testing.assert_array_equal(cached(name, lambda: {"a": np.arange(3)})["a"], np.arange(3))
    said = capsys.readouterr().err
    assert (said.count("\n"), said.startswith("arrays of languages are not kept: ")) == (1, True)


def opened_to_others(folder: Path) -> None:
    folder.chmod(0o777)


def made_a_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


@pytest.mark.parametrize("change", [opened_to_others, made_a_link])
def test_what_others_may_have_put_there_is_not_believed(
    change: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cached("this", lambda: {"a": np.arange(3)})
    change(folder)
    np.testing.assert_array_equal(cached("this", lambda: {"a": np.arange(4)})["a"], np.arange(4))
    assert capsys.readouterr().err.startswith(f"arrays of languages are not kept: {folder} is ")


def test_old_drafts_go_and_the_bound_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached("first", lambda: {"a": np.zeros(500)})
    (first,) = folder.iterdir()
    for path in (first, folder / "killed.tmp"):
        path.touch()
        os.utime(path, (1000, 1000))
    monkeypatch.setattr(caches, "MOST_BYTES", 5000)
    cached("second", lambda: {"a": np.zeros(500)})
    assert first not in folder.iterdir()
    assert len([*folder.iterdir()]) == 1


def archive(**arrays: Any) -> bytes:
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=True, **arrays)
    return packed.getvalue()


def compressed() -> bytes:
    packed = io.BytesIO()
    np.savez_compressed(packed, a=np.zeros(10**6))
    return packed.getvalue()


# contents that are odd, whose hash is right
ODD: Mapping[str, bytes] = {
    "empty": b"",
    "text": b"no archive",
    "an array": (lambda file: np.save(file, np.arange(3)) or file.getvalue())(io.BytesIO()),  # type: ignore[func-returns-value]
    "an archive that is cut": archive(a=np.arange(3))[:-9],
    "no arrays": archive(),
    "objects": archive(**{"train.strings": np.array([{}], dtype=object)}),
    "compressed": compressed(),
}


def stored(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


@pytest.mark.parametrize("kind", ODD)
def test_odd_content_of_a_right_hash_is_made_again(kind: str, folder: Path) -> None:
    before = pools_of.__wrapped__(DATA)
    (path,) = folder.iterdir()
    path.write_bytes(stored(ODD[kind]))
    again = pools_of.__wrapped__(DATA)
    np.testing.assert_array_equal(again.train.strings, before.train.strings)
    assert len(path.read_bytes()) > 1000


def changes_of(arrays: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Every array left out, emptied, shortened, of another type, and beyond its range."""
    odd: list[dict[str, np.ndarray]] = []
    for name, array in arrays.items():
        rest = {other: content for other, content in arrays.items() if other != name}
        odd += [rest, rest | {name: array[:0]}, rest | {name: array[:-1]}, rest | {name: array.astype("U9")}]
        odd += [rest | {name: array[None]}]
        if np.issubdtype(array.dtype, np.signedinteger):
            odd += [rest | {name: array - 10**4}, rest | {name: array + 10**4}]
    return odd


@pytest.mark.parametrize("what", ["pools", "codes"])
def test_arrays_that_are_not_of_a_config_are_refused(what: str) -> None:
    """What is taken of them has the form of what is made: there is nothing else that they could break."""
    if what == "pools":
        made, read = pools._written(pools._made(DATA)), pools._read
        again = lambda arrays: pools._written(read(DATA, arrays))  # noqa: E731
    else:
        made = codes._made(DATA, CODE)._asdict()
        again = lambda arrays: codes._read(DATA, arrays)._asdict()  # noqa: E731
    assert {name: array.shape for name, array in again(made).items()} == {name: a.shape for name, a in made.items()}
    for arrays in changes_of(made):
        try:
            taken = again(arrays)
        except Exception:
            continue
        form = {name: (array.dtype.kind, array.shape) for name, array in taken.items()}
        assert form == {name: (array.dtype.kind, array.shape) for name, array in made.items()}


def test_what_is_kept_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pools_of.cache_clear()
    coded_pools.__wrapped__(DATA, CODE)
    assert len([*folder.iterdir()]) == 2
    for module in (pools, codes):
        monkeypatch.setattr(module, "_made", None)  # it would be called
    pools_of.__wrapped__(DATA)
    coded_pools.__wrapped__(DATA, CODE)
    pools_of.cache_clear()


def test_pools_that_are_read_are_those_that_were_made(folder: Path) -> None:
    one = pools_of.__wrapped__(DATA)
    assert len([*folder.iterdir()]) == 1
    again = pools_of.__wrapped__(DATA)
    for first, second in zip((one.train, one.test, one.unseen), (again.train, again.test, again.unseen), strict=True):
        for left, right in zip(first, second, strict=True):
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype
    for left, right in zip(one.languages + one.unseen_languages, again.languages + again.unseen_languages, strict=True):
        assert left.name == right.name
        assert left.automaton.alphabet == right.automaton.alphabet
        np.testing.assert_array_equal(left.automaton.transitions, right.automaton.transitions)
        np.testing.assert_array_equal(left.automaton.accepting, right.automaton.accepting)
