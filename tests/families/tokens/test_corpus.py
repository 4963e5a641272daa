"""Text of files and folders: nothing is lost, held-out text is in no training text, and what is no text is said."""

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
        (b"too short", "has 9 characters of text; a model learns nothing of fewer than 20000"),
        (b"\xff\xfe" + b"a" * 30_000, "is no text in UTF-8"),
        (b"a\0b" * 10_000, "is no text: it has a zero byte"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        corpus.corpus_of(path)
    with pytest.raises(ConfigError, match="is neither a file nor a folder"):
        corpus.corpus_of(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="has no text file"):
        corpus.corpus_of(tmp_path / "empty")
