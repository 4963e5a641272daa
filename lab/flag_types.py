"""The types of flags: numbers within bounds. Any other text is refused at parsing, by a sentence with what is allowed.

Whole numbers may be written as 20, 2e1 or 20.0, in flags, fields of a config, lists and plans alike.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

MOST_INDEX = 2**31 - 1  # indices of arrays, and steps, are 32-bit integers
SMALLEST, LARGEST = 2.0**-126, 3.4028234663852886e38  # of the normal numbers of float32
MOST_DIGITS, MOST_SHOWN = 1000, 40  # of a whole number, and characters of a value in a sentence


def whole(text: str) -> int:
    """A whole number from its text; `ValueError` for any other."""
    try:
        value = Decimal(text)
        if value.is_finite() and value.adjusted() < MOST_DIGITS and value == value.to_integral_value():
            return int(value)
    except InvalidOperation:
        pass
    raise ValueError(f"{text!r} is not a whole number")


def whole_value(value: Any) -> Any:
    """A float that is a whole number as an int, as JSON and Python may write one; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class Whole:
    """Whole numbers from `least` to `most`; `why` says where the upper bound comes from."""

    least: int
    most: int = MOST_INDEX
    why: str = ""

    def __call__(self, text: str) -> int:
        """The number in a text; `argparse.ArgumentTypeError` if there is none within the bounds."""
        value: int = _read(text, whole, self)
        return value

    def has(self, value: Any) -> bool:
        """Whether a value is such a number."""
        return type(value) is int and self.least <= value <= self.most

    def __str__(self) -> str:
        return f"a whole number from {self.least} to {_power(self.most)}{f' ({self.why})' if self.why else ''}"


@dataclass(frozen=True)
class Number:
    """Finite numbers from `low` to `high`, or between them where the ends do not belong; `why` says why there."""

    low: float = -LARGEST
    high: float = LARGEST
    open_high: bool = False
    why: str = ""

    def __call__(self, text: str) -> float:
        """The number in a text; `argparse.ArgumentTypeError` if there is none within the bounds."""
        value: float = _read(text, float, self)
        return value

    def has(self, value: Any) -> bool:
        """Whether a value is such a number."""
        inside = isinstance(value, int | float) and self.low <= value <= self.high
        return inside and not (self.open_high and value == self.high)

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        to = "to below" if self.open_high else "to"
        above = " above 0," if self.low == SMALLEST else ""
        return f"a number{above} from {self.low:.3g} {to} {self.high:.3g}{why}"


@dataclass(frozen=True)
class Ranges:
    """Whole numbers of a kind, and ranges of them, as in 0-4, of which both ends count; at most `most` in a range."""

    kind: Whole
    most: int

    def __call__(self, text: str) -> int | range:
        """The number or the range in a text; `argparse.ArgumentTypeError` for any other."""
        first, _, last = text.partition("-")
        if not (first.isdecimal() and last.isdecimal()):
            return self.kind(text)
        low, high = self.kind(first), self.kind(last)
        if not low <= high < low + self.most:
            raise argparse.ArgumentTypeError(f"{shown(text)} is not a range of 1 to {self.most} numbers, such as 0-4")
        return range(low, high + 1)


@dataclass(frozen=True)
class Either:
    """A word, in any of its spellings, which stands for a value; or what `other` reads."""

    words: tuple[str, ...]
    value: Any
    other: Callable[[str], Any]

    def __call__(self, text: str) -> Any:
        """The value of a text; `argparse.ArgumentTypeError` for any other."""
        if text.strip().lower() in self.words:
            return self.value
        try:
            return self.other(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{error}, nor {self.words[0]}") from None


def of_field(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """The type of a flag that sets a field of the config, whose bounds are checked there next."""
    return {int: whole_number, float: number}.get(read, read)  # type: ignore[call-overload, no-any-return]


def whole_number(text: str) -> int:
    """A whole number whose bounds are checked elsewhere; `argparse.ArgumentTypeError` for any other text."""
    return int(_read(text, whole, "a whole number"))


def number(text: str) -> float:
    """A number whose bounds are checked elsewhere; `argparse.ArgumentTypeError` for any other text."""
    return float(_read(text, float, "a number"))


def truth(text: str) -> bool:
    """True or false; `argparse.ArgumentTypeError` for any other text."""
    return bool(_read(text, lambda word: {"true": True, "false": False}.get(word.strip().lower()), "true or false"))


SEED = Whole(0, 2**32 - 1)
SEEDS = Ranges(SEED, 100_000)
COUNT = Whole(1)
TASKS = Whole(2, 2**22, "tasks are in memory at once")
POSITIVE = Number(SMALLEST, why="float32 has no others")
NOT_NEGATIVE = Number(0.0, why="float32 has no larger ones")
INFINITY = ("inf", "infinity", "+inf", "+infinity")


def _read(text: str, read: Callable[[str], Any], kind: object) -> Any:
    try:
        value = read(text)
    except ValueError:
        value = None
    if value is None or (isinstance(kind, Whole | Number) and not kind.has(value)):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not {kind}")
    return value


def shown(text: str) -> str:
    """A value in a sentence: quoted, and cut if it is long."""
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


def _power(number: int) -> str:
    """A number in figures; one at a large power of two as that."""
    for value, rest in ((number, ""), (number + 1, " - 1")):
        if value >= 2**20 and value & (value - 1) == 0:
            return f"2^{value.bit_length() - 1}{rest}"
    return str(number)
