"""Checks of values that a user gave: what cannot be used is a `ConfigError`, whose message is one sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

LARGEST = 3.4028234663852886e38  # of the numbers of float32, in which everything is computed
TOO_MANY = 2**31  # elements of an array, or steps: indices are 32-bit integers


class UserError(Exception):
    """An error that its user can fix: a command prints the message, one sentence, and ends with exit status 2."""


class ConfigError(UserError, ValueError):
    """A value that cannot be used."""


class UsageError(UserError):
    """An invalid command line."""


def require(condition: bool, sentence: str) -> None:
    """Raises `ConfigError(sentence)` unless the condition holds."""
    if not condition:
        raise ConfigError(sentence)


def one_of(name: str, value: str, known: Iterable[str]) -> None:
    """Raises unless the value is one of the known words."""
    known = tuple(known)
    require(value in known, f"{name} is {value!r}; it must be one of {', '.join(known)}")


def named(names: Iterable[str], module: Mapping[str, Any]) -> dict[str, Any]:
    """The functions of these names in a module's `globals()`; raises for a name without one."""
    functions = {name: module.get(name) for name in names}
    for name, function in functions.items():
        require(
            callable(function), f"{name!r} is registered in src/registries.py, but {module['__name__']} has no {name}"
        )
    return functions


def with_pattern(name: str, value: str) -> None:
    """Raises unless the value is a regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise ConfigError(f"{name} is {value!r}, which is not a regular expression: {error}") from None


def finite(name: str, value: float) -> None:
    """Raises unless the value is a finite number."""
    require(math.isfinite(value), f"{name} is {value}; it must be finite")


def in_range(name: str, value: float, low: float, high: float = math.inf, open_low: bool = False) -> None:
    """Raises unless the value is finite and between the bounds, `low` itself excluded where `open_low`."""
    finite(name, value)
    inside = (value > low if open_low else value >= low) and value <= high
    bounds = f"between {low:g} and {high:g}"
    if open_low or not math.isfinite(high):
        most = f" and at most {high:g}" if math.isfinite(high) else ""
        bounds = f"{'above' if open_low else 'at least'} {low:g}{most}"
    require(inside, f"{name} is {value}; it must be {bounds}")


def scale(name: str, value: float, open_low: bool = True) -> None:
    """Raises unless a scale of data is finite, above 0 (at least 0 if not `open_low`) and a number of float32."""
    in_range(name, value, 0, open_low=open_low)
    require(value <= LARGEST, f"{name} is {value}; it must be at most {LARGEST:g}, float32's largest number")


def finite_results(name: str, value: float, rows: Iterable[Mapping[str, Any]]) -> None:
    """Raises if a number computed from a value is non-finite: the value was too large or too small."""
    numbers = (item for row in rows for item in row.values() if isinstance(item, float))
    require(
        all(map(math.isfinite, numbers)),
        f"{name} is {value:g}, at which the results are not finite; nothing was written, so take another value",
    )


def sizes(owner: Any, *names: str, least: int = 1) -> None:
    """Raises unless the owner's fields of these names are whole numbers of at least `least` and below `TOO_MANY`."""
    for name in names:
        size(name, getattr(owner, name), least)


def size(name: str, value: Any, least: int = 1) -> None:
    """Raises unless a value is a whole number of at least `least` and below `TOO_MANY`."""
    require(
        isinstance(value, int) and value >= least, f"{name} is {value}; it must be a whole number of at least {least}"
    )
    require(value < TOO_MANY, f"{name} is {value}; it must be below 2^31, the most that an index can count")


def same_shape(leading: bool = False, **arrays: Any) -> None:
    """Raises unless arrays, by name, have one shape: NumPy and JAX would pair every value of one with all of another.

    With `leading` the first may have further axes in front, as of layers.
    """
    (first, shape), *others = ((name, tuple(getattr(array, "shape", ()))) for name, array in arrays.items())
    for name, other in others:
        seen = shape[max(len(shape) - len(other), 0) :] if leading else shape
        require(seen == other, f"{first} has shape {shape} and {name} {other}; they must be the same")
