"""Renders pages from templates, with filters for numbers. A missing value is an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from store.readers import StoreError
from studies.claim import OURS, UNBOUNDED
from studies.verdict import FEW

SMALLEST = 1e-5  # a lower end below it stands for 0, which is not in the range


def rendered(template: Path, **values: Any) -> str:
    """The template with the values in it. `StoreError` where jinja2 is missing."""
    try:
        import jinja2
    except ModuleNotFoundError:
        raise StoreError("pages are made with jinja2, which is missing: pip install jinja2") from None
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"accepted": accepted, "measured": measured, "verdict": verdict, "control": control}
    environment.filters |= {"place": place, "cell": cell}
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)


def accepted(row: Mapping[str, Any]) -> str:
    """The range of a line of the ledger, with the one before it was revised."""
    words = _range(row["low"], row["high"])
    return words if row["range"] == "original" else f"{words} (was {_range(row['earlier_low'], row['earlier_high'])})"


def _range(low: float, high: float) -> str:
    if high >= UNBOUNDED:
        return f"at least {low:.4g}" if low > SMALLEST else "above 0"
    return f"at most {high:.4g}" if low == 0 else f"{low:.4g} to {high:.4g}"


def measured(row: Mapping[str, Any]) -> str:
    """The mean of a line of the ledger with its 90 % interval; of what is said of every run, of how many it holds."""
    if row["mean"] is None:
        return ""
    if row["share"] is not None:
        return f"{row['share'] * row['n']:.0f} of {row['n']}: at least {100 * row['share_low']:.0f} % of runs"
    if not math.isfinite(row["mean"]):
        return "diverged"
    low, high = (number(row[name]) for name in ("mean_low", "mean_high"))
    return f"{row['mean']:.4g} [{low}, {high}]" if row["n"] > 1 else f"{row['mean']:.4g}, one run"


def number(value: float) -> str:
    """A number with four digits; what is not finite in words."""
    return f"{value:.4g}" if math.isfinite(value) else "unbounded"


def verdict(row: Mapping[str, Any]) -> str:
    """The verdict of a line, with the seeds that would decide it, few seeds, and the verdict by its first range."""
    words = str(row["verdict"])
    if words == "undecided" and row["n"]:
        needed = row["seeds_needed"]
        words += f", {needed} seeds would decide" if needed else ""
    if 0 < row["n"] < FEW:
        words += f" (few: {row['n']} seeds)"
    if row["earlier_verdict"]:
        words += f"; by the first range {row['earlier_verdict']}"
    return words


def control(row: Mapping[str, Any]) -> str:
    """The estimate of what is measured alike on the control."""
    if not row["control"]:
        return "none"
    return "not measured" if row["control_mean"] is None else number(row["control_mean"])


def place(row: Mapping[str, Any]) -> str:
    """Where the claim stands: the paper, and the figure in it."""
    figure = str(row["figure"])
    if row["paper"] == OURS:
        return "ours"
    words = {"code": "published code", "depth": "depth curve", "1, depth": "Fig. 1, depth curve"}
    numbered = f"App. {figure}" if figure.startswith("A.") else f"Fig. {figure}"
    return f"{row['paper'].split(',')[0]}, {words.get(figure, numbered)}"


def cell(text: str) -> str:
    """Text as it may stand in a cell of a Markdown table."""
    return text.replace("|", "\\|")
