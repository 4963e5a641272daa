"""What columns of tables are made of: places in a finished run's files, and arithmetic that passes over missing values.

What is not finite is null in a run's files, and empty in its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]


def at(*path: Any) -> Callable[[Results], Any]:
    """The value at a path of keys and indices."""

    def value(results: Results) -> Any:
        inside: Any = results
        for key in path:
            inside = inside[key]
        return inside

    return value


def doubled(*path: Any) -> Callable[[Results], float | None]:
    """Twice the value at a path: the mean squared error of a loss."""
    return scaled(2.0, *path)


def halved(*path: Any) -> Callable[[Results], float | None]:
    """Half the value at a path: the loss of a mean squared error."""
    return scaled(0.5, *path)


def scaled(factor: float, *path: Any) -> Callable[[Results], float | None]:
    """So many times the value at a path."""
    find = at(*path)

    def value(results: Results) -> float | None:
        number = find(results)
        return None if number is None else factor * number

    return value


def ratio(value: float | None, of: float | None) -> float | None:
    """A ratio, where there is one."""
    return None if value is None or not of else value / of


def mean(values: Sequence[float | None]) -> float | None:
    """The mean, unless a value is missing."""
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if len(known) == len(values) else None


def left_plateau(results: Results) -> str | None:
    """Whether a run has left the plateau, as a word."""
    met = results["left_plateau"]["met"]
    return None if met is None else str(met).lower()
