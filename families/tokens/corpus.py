"""Text of a file or a folder, and which of it is kept for the tests.

Of every text each tenth block of 50 000 characters is held out, so that the tests are spread over it; of every folder
of at least five texts the last one by name is held out whole, as text that shares no passage with what is trained on.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from icl_lab.src.checks import ConfigError, require

BLOCK, HELD_OUT = 50_000, 10  # characters, and one block of so many
FOLDER = 5  # texts of a folder of which one is held out whole
LEAST = 20_000  # characters
MOST = 2**28  # bytes: all of it is in memory
SUFFIXES = (".txt", ".md", "")


class Corpus(NamedTuple):
    """The pieces of text that are trained on, held-out blocks of the same texts, and whole texts that are held out."""

    train: tuple[str, ...]
    blocks: tuple[str, ...]
    whole: tuple[str, ...]
    digest: str


def corpus_of(place: Path) -> Corpus:
    """The corpus of a file or of all text files below a folder; `ConfigError` where there is too little text."""
    files = _files(place)
    size = sum(path.stat().st_size for path in files)
    require(size <= MOST, f"{place} has {size} bytes of text; a corpus has at most {MOST}")
    texts = {path: _text(path) for path in files}
    total = sum(map(len, texts.values()))
    require(
        total >= LEAST,
        f"{place} has {total} characters of text; a model of text needs at least {LEAST}",
    )
    together = defaultdict[Path, list[Path]](list)
    for path in texts:
        together[path.parent].append(path)
    whole = {paths[-1] for paths in together.values() if len(paths) >= FOLDER}
    train, blocks = list[str](), list[str]()
    for path, text in texts.items():
        if path not in whole:
            kept, out = _divided(text, BLOCK if len(text) >= HELD_OUT * BLOCK else max(1, len(text) // HELD_OUT))
            train += kept
            blocks += out
    digest = hashlib.sha256()
    for path, text in texts.items():
        name = path.relative_to(place).as_posix() if place.is_dir() else ""
        digest.update(f"{name}\0{len(text)}\0{text}".encode())
    return Corpus(tuple(train), tuple(blocks), tuple(texts[path] for path in sorted(whole)), digest.hexdigest())


def stamp(place: Path) -> tuple[tuple[str, int, int], ...]:
    """By what a text is seen to have changed without reading it."""
    states = ((path, path.stat()) for path in _files(place))
    return tuple((str(path), state.st_mtime_ns, state.st_size) for path, state in states)


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    require(place.exists(), f"{place} does not exist")
    require(place.is_dir(), f"{place} is neither a file nor a folder")
    named = (path for path in place.rglob("*") if path.suffix in SUFFIXES and not path.name.startswith("."))
    found = sorted(path for path in named if path.is_file())
    require(bool(found), f"{place} has no text file; the name of one ends in .txt or .md, or has no ending")
    return found


def _text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not text in UTF-8") from None
    require("\0" not in text, f"{path} is not text: it has a zero byte")
    return text


def _divided(text: str, block: int) -> tuple[list[str], list[str]]:
    """What is between the held-out blocks, each the last of ten, and these."""
    kept, out = list[str](), list[str]()
    for begin in range(0, len(text), HELD_OUT * block):
        end = begin + (HELD_OUT - 1) * block
        kept.append(text[begin:end])
        if len(text) > end:
            out.append(text[end : end + block])
    return kept, out
