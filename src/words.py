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
    inside = text.strip()
    if inside.startswith("(") and inside.endswith(")"):
        words, balanced = _parted(inside[1:-1])
        if balanced and len(words) != 1:  # of (a)|(b) the inside is not balanced, and of (a|b) it is one word
            return tuple(filter(None, words))
    return tuple(filter(None, _parted(inside)[0]))


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
