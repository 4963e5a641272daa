"""Text of files and folders: nothing is lost, held-out text is in no training text, and what is not text is said."""

import os
from itertools import zip_longest
from pathlib import Path

import pytest

from icl_lab.families.tokens import corpus
from icl_lab.src.checks import ConfigError


def text(length: int, first: int = 0) -> str:
    """Text in which every six characters stand once."""
    return "".join(f"{number:06d}" for number in range(first, first + length // 6))


@pytest.mark.parametrize("length", [20_004, 600_000, 1_234_566])
def test_a_file_is_divided_into_nine_parts_and_one(length: int, tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text(text(length))
    found = corpus.corpus_of(path)
    assert len("".join(found.train)) + len("".join(found.blocks)) == length
    assert 0.08 < len("".join(found.blocks)) / length < 0.12
    assert found.whole == ()
    parts = zip_longest(found.train, found.blocks, fillvalue="")
    assert "".join(part for pair in parts for part in pair) == text(length)


def test_of_a_folder_of_five_the_last_is_held_out_whole(tmp_path: Path) -> None:
    for folder, count in (("plays", 5), ("books", 2)):
        (tmp_path / folder).mkdir()
        for number in range(count):
            (tmp_path / folder / f"{number}.txt").write_text(text(6000, 1000 * number) + folder)
    (tmp_path / "plays" / "picture.png").write_bytes(b"\x89PNG")
    found = corpus.corpus_of(tmp_path)
    assert found.whole == (text(6000, 4000) + "plays",)
    assert not any(text(60, 4500) in part for part in (*found.train, *found.blocks))
    assert len(found.blocks) == 6


def test_its_digest_is_of_its_content_and_names(tmp_path: Path) -> None:
    digests = []
    for name, last in (("a", "x"), ("a", "y"), ("b", "x")):
        folder = tmp_path / f"{name}{last}"
        folder.mkdir()
        (folder / f"{name}.txt").write_text(text(30_000) + last)
        digests.append(corpus.corpus_of(folder).digest)
    assert len(set(digests)) == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"too short", "has 9 characters of text; a model of text needs at least 20000"),
        (b"\xff\xfe" + b"a" * 30_000, "is not text in UTF-8"),
        (b"a\0b" * 10_000, "is not text: it has a zero byte"),
    ],
)
def test_what_is_not_text_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        corpus.corpus_of(path)
    with pytest.raises(ConfigError, match="none does not exist"):
        corpus.corpus_of(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"has no text file; the name of one ends in \.txt or \.md"):
        corpus.corpus_of(tmp_path / "empty")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="pipe is neither a file nor a folder"):
        corpus.corpus_of(tmp_path / "pipe")


def test_more_text_than_memory_is_for_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with open(tmp_path / "own.txt", "wb") as file:
        file.truncate(2**28 + 1)  # takes no place on the disk
    with pytest.raises(ConfigError, match="has 268435457 bytes of text; a corpus has at most 268435456"):
        corpus.corpus_of(tmp_path)


def test_a_mark_of_the_order_of_bytes_is_no_character(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text(text(20_004), encoding="utf-8-sig")
    assert set("".join(corpus.corpus_of(tmp_path).train)) == set("0123456789")
