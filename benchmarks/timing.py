"""Times things in turns, so that a slow moment of the machine falls on all of them, and says how far repeats differ."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Timed = Callable[[int], float]  # does so many units of work, gives the seconds they took


class Spread(NamedTuple):
    """Repeated measurements of one thing: the median, the least, the largest, and all of them in order."""

    median: float
    low: float
    high: float
    values: tuple[float, ...]


def spread(values: Sequence[float]) -> Spread:
    """The spread of some values."""
    return Spread(statistics.median(values), min(values), max(values), tuple(values))


def units_for(timed: Timed, seconds: float) -> int:
    """How many units take about `seconds`, after one that may still compile."""
    timed(1)
    units, took = 1, timed(1)
    while took < seconds / 4:
        units *= 2
        took = timed(units)
    return max(1, round(units * seconds / took))


def in_turns(timed: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, list[T]]:
    """What each gives, called in turns: a, b, a, b, ..."""
    values: dict[str, list[T]] = {name: [] for name in timed}
    for _ in range(repeats):
        for name, call in timed.items():
            values[name].append(call())
    return values


def ratios(values: Mapping[str, Sequence[float]], to: str) -> dict[str, Spread]:
    """How many times faster than `to` each of the others was, turn by turn."""
    return {
        name: spread([whole / part for whole, part in zip(values[to], own, strict=True)])
        for name, own in values.items()
        if name != to and to in values
    }


def compare(timed: Mapping[str, Timed], seconds: float, repeats: int, shares: Mapping[str, int]) -> dict[str, Any]:
    """Seconds a unit of each, `repeats` times in turns of about `seconds`; and each one's ratio to the plain loop.

    A unit of a pack's work is a step of all its members: `shares` says among how many runs it is divided.
    """
    units = {name: units_for(call, seconds) for name, call in timed.items()}

    def one(name: str) -> Callable[[], float]:
        return lambda: timed[name](units[name]) / units[name] / shares.get(name, 1)

    values = in_turns({name: one(name) for name in timed}, repeats)
    return {"units": units} | report(values)


def report(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Values as they are stored: the spread of each and of its ratio to the plain loop."""
    return {
        "seconds": {name: spread(own)._asdict() for name, own in values.items()},
        "times_faster": {name: ratio._asdict() for name, ratio in ratios(values, "plain").items()},
    }
