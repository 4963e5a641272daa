"""Lines of a finished run's summary: losses on the test set, with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from icl_lab.src.words import printable

LABELS = {
    "tf": "trained transformer",
    "gd": "gradient descent, {steps} step{s}",
    "gd_plus_plus": "GD++, {steps} step{s}, fitted rates",
    "ridge": "ridge (Bayes on clean data)",
    "dmmse": "dMMSE (Bayes for its pool)",
    "laplace": "Laplace prior's mean (sampled)",
    "mixture": "mixture prior's mean (exact)",
    "sparse": "sparse prior's mean (exact)",
    "zero": "zero",
}


WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MATCHES, TIMES = 0.005, 2.0  # |ratio - 1| of losses that match, and ratios that are told as such from there on


def counted(number: int, what: str) -> str:
    """`one step`, `two steps`, `12 steps`."""
    return f"{WORDS[number] if number < len(WORDS) else number} {what}{'s' * (number != 1)}"


def compared(name: str, ratio: float) -> str:
    """A ratio of losses: `matches NAME to 0.2 % of the loss`, `8.0 % below NAME`, `2.7 times the loss of NAME`."""
    off = abs(ratio - 1)
    if off < MATCHES:
        return f"matches {name} to {100 * off:.1f} % of the loss"
    if ratio >= TIMES:
        return f"{ratio:.1f} times the loss of {name}"
    return f"{100 * off:.{int(off < 0.1)}f} % {'above' if ratio > 1 else 'below'} {name}"


def first_line(what: str, seed: int, loss: float, others: Mapping[str, Any]) -> str:
    """What a run is, and how its loss compares with those of others, by what they are; "" where none is known."""
    ratios = {
        name: loss / other for name, other in others.items() if other is not None and math.isfinite(other) and other > 0
    }
    told = [compared(name, ratio) for name, ratio in ratios.items() if math.isfinite(ratio)]
    return f"{what}, seed {seed}: {', '.join(told)}" if told else ""


def header(numbers: Mapping[str, Any], loss: str = "half MSE") -> str:
    """The header of a table of losses on the test set."""
    return f"{f'loss ({loss}) on ' + str(numbers['tasks']) + ' test tasks':<50}    loss   ± s.e."


def own_contexts(summary: Mapping[str, Any]) -> list[str]:
    """The line on the file that a run's contexts are from; none where they are drawn."""
    if "data" not in summary:
        return []
    facts = summary["data"]
    counts = ", ".join(f"{count} {name}" for name, count in facts["contexts"].items())
    left_out = f", {facts['left_out']} too short" if facts["left_out"] else ""
    return [f"contexts of {facts['file']}: {counts}{left_out}"]


def shown(value: Any) -> Any:
    """JSON values for the terminal: NaN for null, and text without control characters."""
    if isinstance(value, dict):
        return {printable(name): shown(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, str):
        return printable(value)
    return float("nan") if value is None else value


def row(label: str, numbers: Mapping[str, Any], key: str, digits: int = 4, deeper: int = 0) -> str:
    """A row of a table: a number with its standard error, or the reason why it is not defined."""
    indented = f"{'  ' * (1 + deeper) + label:<50}"
    if f"{key}_reason" in numbers:
        return f"{indented}not defined: {numbers[f'{key}_reason']}"
    return f"{indented}{numbers[key]:8.{digits}f}   {numbers[f'{key}_se']:.{digits}f}"


def losses(kind: str, rows: Mapping[str, str]) -> Callable[[Mapping[str, Any], Path, Any], list[str]]:
    """The lines of a summary that is a table of losses on the test set, of a kind: label -> name of a number."""

    def lines(summary: Mapping[str, Any], run: Path, config: Any) -> list[str]:
        numbers = summary["headline"]
        return [header(numbers, kind), *(row(label, numbers, name) for label, name in rows.items())]

    return lines
