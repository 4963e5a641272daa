"""A matcher by Brzozowski derivatives (1964), which shares nothing with the library.

An expression is a nested tuple. Binding, from loose to tight: |, &, what stands side by side, then *, +, ?, {m,n}.
"""

from functools import cache, reduce
from itertools import product
from typing import Any

import numpy as np

NOTHING, EMPTY = ("nothing",), ("empty",)
PAD = "#"
Expression = tuple[Any, ...]


def concatenated(one: Expression, other: Expression) -> Expression:
    if NOTHING in (one, other):
        return NOTHING
    if one == EMPTY:
        return other
    return one if other == EMPTY else ("cat", one, other)


def either(one: Expression, other: Expression) -> Expression:
    parts = {part for each in (one, other) for part in (each[1] if each[0] == "or" else {each})} - {NOTHING}
    if not parts:
        return NOTHING
    return parts.pop() if len(parts) == 1 else ("or", frozenset(parts))


def both(one: Expression, other: Expression) -> Expression:
    return NOTHING if NOTHING in (one, other) else ("and", one, other)


def starred(one: Expression) -> Expression:
    return one if one[0] == "star" else ("star", one)


@cache
def parsed(text: str) -> Expression:
    found, rest = _either(text)
    assert not rest, f"{rest!r} is left of {text!r}"
    return found


def _either(text: str) -> tuple[Expression, str]:
    found, text = _both(text)
    while text.startswith("|"):
        other, text = _both(text[1:])
        found = either(found, other)
    return found, text


def _both(text: str) -> tuple[Expression, str]:
    found, text = _side_by_side(text)
    while text.startswith("&"):
        other, text = _side_by_side(text[1:])
        found = both(found, other)
    return found, text


def _side_by_side(text: str) -> tuple[Expression, str]:
    found = EMPTY
    while text and text[0] not in "|&)":
        other, text = _repeated(text)
        found = concatenated(found, other)
    return found, text


def _repeated(text: str) -> tuple[Expression, str]:
    found, text = _single(text)
    while text and text[0] in "*+?{":
        sign, text = text[0], text[1:]
        if sign == "*":
            found = starred(found)
        elif sign == "+":
            found = concatenated(found, starred(found))
        elif sign == "?":
            found = either(EMPTY, found)
        else:
            inside, text = text.split("}", 1)
            least, most = map(int, inside.split(","))
            needed = reduce(concatenated, [found] * least, EMPTY)
            found = concatenated(needed, reduce(concatenated, [either(EMPTY, found)] * (most - least), EMPTY))
    return found, text


def _single(text: str) -> tuple[Expression, str]:
    if text[0] != "(":
        assert text[0].isalnum(), text
        return ("symbol", text[0]), text[1:]
    found, text = _either(text[1:])
    assert text.startswith(")"), text
    return found, text[1:]


@cache
def nullable(of: Expression) -> bool:
    match of:
        case ("cat", one, other) | ("and", one, other):
            return nullable(one) and nullable(other)
        case ("or", parts):
            return any(map(nullable, parts))
    return of[0] in ("empty", "star")


@cache
def derivative(of: Expression, symbol: str) -> Expression:
    match of:
        case ("symbol", own):
            return EMPTY if own == symbol else NOTHING
        case ("cat", one, other):
            first = concatenated(derivative(one, symbol), other)
            return either(first, derivative(other, symbol)) if nullable(one) else first
        case ("or", parts):
            return reduce(either, (derivative(part, symbol) for part in parts), NOTHING)
        case ("and", one, other):
            return both(derivative(one, symbol), derivative(other, symbol))
        case ("star", one):
            return concatenated(derivative(one, symbol), of)
    return NOTHING


def matches(expression: str, text: str) -> bool:
    """Whether a text is a member of an expression; a pad is no symbol of any."""
    return nullable(reduce(derivative, text, parsed(expression)))


def members(expression: str, alphabet: str, max_length: int, min_length: int = 0) -> list[str]:
    """All members of these lengths, in order."""
    return [text for text in every(alphabet, max_length, min_length) if matches(expression, text)]


@cache
def every(alphabet: str, max_length: int, min_length: int = 0) -> tuple[str, ...]:
    """All texts of these lengths, short ones first."""
    lengths = range(min_length, max_length + 1)
    return tuple("".join(symbols) for length in lengths for symbols in product(alphabet, repeat=length))


def texts_of(strings: np.ndarray, alphabet: str) -> list[str]:
    """Rows of symbols as texts, without the pads behind the last symbol; a pad before one is #."""
    count, length = strings.shape
    letters = np.frombuffer((alphabet + PAD).encode(), np.uint8)[strings].tobytes().decode()
    return [letters[start : start + length].rstrip(PAD) for start in range(0, count * length, length)]


def strings_of(texts: list[str] | tuple[str, ...], alphabet: str, length: int) -> np.ndarray:
    """Texts, # for a pad, as rows of symbols with pads behind."""
    numbers = {symbol: number for number, symbol in enumerate(alphabet + PAD)}
    return np.array([[numbers[symbol] for symbol in text.ljust(length, PAD)] for text in texts], np.uint8)
