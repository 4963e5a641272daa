"""Damage to the content of files: bytes flipped, cut, doubled, spliced, or replaced by what parsers trip over.

A reader must accept a damaged file, or refuse it with one of the user's errors. Draws have fixed seeds, so the same
inputs come each time.
"""

import math
import random
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from icl_lab.lab import cli
from icl_lab.src.checks import ConfigError
from icl_lab.store.readers import StoreError
from tests.doors import snapshot

USER_ERRORS = (cli.UsageError, ConfigError, StoreError)
SECONDS = 10  # in which an input must be read
TOKENS = (
    *(b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"9" * 400, b"true", b"[]", b"{}", b"[" * 3000, b'""'),
    *(b"\x00", b"\xff\xfe", b"\xe2\x80\xae", b"\n", b"\r\n", b",", b'"', b"\\u0000", b"../../x", b"/", b"%s", b"$(x)"),
)
WORD = re.compile(rb'"[^"\n]*"|[^\s,:"{}\[\]]+')  # of JSON or CSV: a name or a value
# what is damaged -> the number of inputs
INPUTS = {"runs": 5000, "sweeps": 2000, "results": 3000, "figures": 1000, "development": 100, "words": 3000}
BY_SUBPROCESS = 200

Readers = dict[Path, list[Callable[[], object]]]  # file -> who reads it


def mutated(draw: random.Random, content: bytes) -> bytes:
    """A content with one to four kinds of damage."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, size = draw.randint(0, len(content)), draw.choice((1, 2, 8, 64))
        change = draw.randrange(7)
        if change == 0 and content:
            flipped = bytearray(content)
            for _ in range(size):
                flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
            content = bytes(flipped)
        elif change == 1:
            content = content[:at]
        elif change == 2:
            content = content[:at] + content[at + size :]
        elif change == 3:
            content = content[:at] + content[max(0, at - size) :]
        elif change == 4:
            content = content[:at] + draw.choice(TOKENS) + content[at + draw.choice((0, size)) :]
        elif change == 5 and (words := [*WORD.finditer(content)]):
            word = draw.choice(words)
            content = content[: word.start()] + draw.choice(TOKENS) + content[word.end() :]
        else:
            other = draw.randint(0, len(content))
            content = content[:at] + content[other : other + size] + content[at:]
    return content


@contextmanager
def limited() -> Iterator[None]:
    """An error instead of a hang."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"it takes longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_read(read: Callable[[], object], what: object, silently: bool = True) -> bool:
    """Whether it was accepted; fails at anything but one of the user's errors, and `silently` at a warning."""
    with limited(), warnings.catch_warnings():
        warnings.simplefilter("error" if silently else "ignore")
        try:
            read()
        except USER_ERRORS as error:
            return not str(error) and bool(pytest.fail(f"{what!r} is refused without a word"))
        except Exception as error:
            raise AssertionError(f"{what!r} raises {type(error).__name__}: {error}") from error
    return True


def damage(kind: str, share: float, readers: Readers, seed: int, folder: Path, draws: bool = False) -> float:
    """Damages files, one at a time, before their readers, for this share of a kind's inputs; the share accepted.

    Nothing in the folder changes, but for what readers draw of accepted files. Where they draw, damaged numbers may
    make matplotlib and NumPy warn.
    """
    draw, number, accepted = random.Random(seed), math.ceil(share * INPUTS[kind]), 0
    for _ in range(number):
        path = draw.choice([*readers])
        good = path.read_bytes()
        content = mutated(draw, good)
        path.write_bytes(content)
        before = snapshot(folder) if draw.random() < 0.02 else None
        was_read = is_read(draw.choice(readers[path]), (path.name, content[:4000]), silently=not draws)
        accepted += was_read
        if before is not None and not (draws and was_read):
            assert snapshot(folder) == before
        path.write_bytes(good)
    return accepted / number
