"""Lines of a finished run's summary: losses on the test set, with their standard errors."""

from __future__ import annotations

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
