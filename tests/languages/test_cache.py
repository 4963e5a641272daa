"""The cache of pools: what it gives is what was made, and a file that is broken costs time alone."""

import random
from pathlib import Path

import numpy as np
import pytest

from languages.cache import cached
from languages.config import LanguageData
from languages.pools import pools_of
from tests.trust.damage import mutated

DATA = LanguageData(pool_size=64, max_length=12)


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


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    np.testing.assert_array_equal(cached("this", lambda: {"a": np.arange(3)})["a"], np.arange(3))


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
