"""Times several functions in turns, so that a slow moment of the machine affects all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Timed = Callable[[int], float]  # number of units of work -> seconds they took


class Spread(NamedTuple):
    """Repeated measurements: median, smallest, largest, and all values in order."""

    median: float
    low: float
    high: float
    values: tuple[float, ...]


def spread(values: Sequence[float]) -> Spread:
    """The spread of some values."""
    return Spread(statistics.median(values), min(values), max(values), tuple(values))


def units_for(timed: Timed, seconds: float) -> int:
    """The number of units that take about `seconds`, after one unit for compilation."""
    timed(1)
    units, took = 1, timed(1)
    while took < seconds / 4:
        units *= 2
        took = timed(units)
    return max(1, round(units * seconds / took))


def in_turns(timed: Mapping[str, Callable[[], T]], repeats: int) -> dict[str, list[T]]:
    """The results of functions called in turns: a, b, a, b, ..."""
    values: dict[str, list[T]] = {name: [] for name in timed}
    for _ in range(repeats):
        for name, call in timed.items():
            values[name].append(call())
    return values


def ratios(values: Mapping[str, Sequence[float]], to: str) -> dict[str, Spread]:
    """How many times faster than `to` each of the others was, per turn."""
    return {
        name: spread([whole / part for whole, part in zip(values[to], seconds, strict=True)])
        for name, seconds in values.items()
        if name != to and to in values
    }


def compare(timed: Mapping[str, Timed], seconds: float, repeats: int, shares: Mapping[str, int]) -> dict[str, Any]:
    """Seconds per unit of each function, in `repeats` turns of about `seconds`, and ratios to the plain loop.

    A unit of a pack's work is a step of all its runs; `shares` gives their number, by which the time is divided.
    """
    units = {name: units_for(call, seconds) for name, call in timed.items()}

    def one(name: str) -> Callable[[], float]:
        return lambda: timed[name](units[name]) / units[name] / shares.get(name, 1)

    values = in_turns({name: one(name) for name in timed}, repeats)
    return {"units": units} | report(values)


def report(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The stored form of values: their spread, and that of the ratio to the plain loop."""
    return {
        "seconds": {name: spread(seconds)._asdict() for name, seconds in values.items()},
        "times_faster": {name: ratio._asdict() for name, ratio in ratios(values, "plain").items()},
    }


def seconds_of(work: Callable[[], Any]) -> float:
    """Seconds of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
