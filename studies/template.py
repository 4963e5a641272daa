"""Renders pages from templates, with filters for numbers. A missing value is an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from store.readers import StoreError
from studies.claim import UNBOUNDED


def rendered(template: Path, **values: Any) -> str:
    """The template with the values in it. `StoreError` where jinja2 is missing."""
    try:
        import jinja2
    except ModuleNotFoundError:
        raise StoreError("pages are made with jinja2, which is missing: pip install jinja2") from None
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"accepted": accepted, "measured": measured, "place": place, "cell": cell}
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)


def accepted(row: Mapping[str, Any]) -> str:
    """The range of a line of the ledger."""
    low = f"{row['low']:.4g}"
    return f"at least {low}" if row["high"] >= UNBOUNDED else f"{low} to {row['high']:.4g}"


def measured(row: Mapping[str, Any]) -> str:
    """The mean of a line of the ledger with its 95 % interval; "diverged" where a run did."""
    if row["mean"] is None:
        return ""
    if not math.isfinite(row["mean"]):
        return "diverged"
    return f"{row['mean']:.4g} [{row['mean_low']:.4g}, {row['mean_high']:.4g}]"


def place(row: Mapping[str, Any]) -> str:
    """Where the claim stands: the paper, and the figure in it."""
    figure = str(row["figure"])
    words = {"code": "published code", "depth": "depth curve", "1, depth": "Fig. 1, depth curve"}
    numbered = f"App. {figure}" if figure.startswith("A.") else f"Fig. {figure}"
    return f"{row['paper'].split(',')[0]}, {words.get(figure, numbered)}"


def cell(text: str) -> str:
    """Text as it may stand in a cell of a Markdown table."""
    return text.replace("|", "\\|")
