"""Words on the command line and in sentences: lists of them, the nearest known one, and text that is safe to print."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CONFIG_PREFIX = "--config."
LEAST_BEGINNING = 3  # letters that suggest the flag which begins with them
NEAR = 0.7  # share of the letters that a word has in common with one it is taken for


def words_of(text: str) -> tuple[str, ...]:
    """Words parted by commas, as in a,b or (a, b). A comma in brackets is part of a word: these may be expressions.

    So is a blank inside a word: whoever reads it says whether it may be there.
    """
    words = _in_brackets(text)
    return parted(text) if words is None or len(words) == 1 else tuple(filter(None, words))  # (a|b) is one word


def in_brackets(text: str) -> tuple[str, ...] | None:
    """The words of a text that stands whole in one pair of brackets, as (a, b) does and (a)|(b) does not; else None."""
    words = _in_brackets(text)
    return None if words is None else tuple(filter(None, words))


def _in_brackets(text: str) -> list[str] | None:
    """The same with empty words, as behind the comma of (a,)."""
    inside = text.strip()
    if not (inside.startswith("(") and inside.endswith(")")):
        return None
    words, balanced = _parted(inside[1:-1])
    return words if balanced else None


def parted(text: str) -> tuple[str, ...]:
    """The words between commas outside all brackets."""
    return tuple(filter(None, _parted(text.strip())[0]))


def _parted(text: str) -> tuple[list[str], bool]:
    """The words between commas outside all brackets, and whether every bracket that closes was open."""
    words, depth, balanced = [""], 0, True
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        balanced &= depth >= 0
        if letter == "," and depth <= 0:
            words.append("")
        else:
            words[-1] += letter
    words = [word.strip() for word in words]
    return words if words != [""] else [], balanced


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """', did you mean ...?' with the nearest known word, or ''. What flags begin with counts for nothing."""
    names: dict[str, str] = {}
    for each in known:
        names.setdefault(_bare(each), each)
    bare = _bare(word)
    begun = [name for name in names if len(bare) >= LEAST_BEGINNING and name.startswith(bare)]
    nearest = difflib.get_close_matches(bare, names, n=1, cutoff=NEAR) or begun
    return f", did you mean {names[nearest[0]]}?" if nearest else ""


def _bare(word: str) -> str:
    """A flag, or a word, without what all of them begin with."""
    return word.removeprefix(CONFIG_PREFIX).lstrip("-")


def printable(text: object) -> str:
    """Text that is safe to print: control characters, line ends and direction marks are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
