"""What the claims are made of: contrasts found by name, in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from src.statistics import ALPHA

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
Rows = Mapping[tuple[str, str], Row]
Claim = Callable[[Rows, "pd.DataFrame"], tuple[str, bool]]


def contrasts_of(rows: Rows, question: str, *words: str) -> list[Row]:
    """The contrasts of a question whose names hold all these words."""
    return [row for (asked, name), row in rows.items() if asked == question and all(word in name for word in words)]


def in_percent(row: Row) -> str:
    """The change with its 95 % interval."""
    return f"{100 * row['change']:+.2f} % [{100 * row['change_low']:+.2f}, {100 * row['change_high']:+.2f}]"


def widest(rows: Sequence[Row]) -> float:
    """The end of a 90 % interval that is farthest from no change, in per cent."""
    return 100 * max(max(abs(row["equivalence_low"]), abs(row["equivalence_high"])) for row in rows)


def all_equivalent(rows: Sequence[Row]) -> bool:
    """Whether equivalence is shown for each."""
    return all(row["verdict"] == "equivalent" for row in rows)


def equivalent_counts(found: Mapping[str, Sequence[Row]]) -> str:
    """In how many contrasts each model is equivalent."""
    counts = {model: sum(row["verdict"] == "equivalent" for row in own) for model, own in found.items()}
    return ", ".join(f"{model} in {counts[model]} of {len(own)}" for model, own in found.items())


def loss_ratios(table: pd.DataFrame, model: str, trained: str, tested: str) -> pd.Series:
    """The loss over gradient descent's, by seed, of a model trained clean in one order and tested clean in another."""
    clean = (table["train_noise_mode"] == "clean") & (table["eval_noise_mode"] == "clean")
    orders = (table["train_ordering"] == trained) & (table["eval_ordering"] == tested)
    found: pd.Series = table[clean & orders & (table["model"] == model)]["loss_ratio"]
    return found


def listed(rows: Sequence[Row]) -> str:
    """Contrasts with their changes and verdicts; for those that show no difference, whether they are equivalent."""
    words = []
    for row in rows:
        small = row["verdict"] == "no difference shown" and row["p_equivalence"] < ALPHA
        verdict = "no difference shown and within ±1 %" if small else row["verdict"]
        words.append(f"{row['contrast'].partition(': ')[2]} {in_percent(row)}, {verdict}")
    return "; ".join(words)


def treated_over_control(rows: Rows, question: str, name: str) -> float:
    """Treated over control."""
    row = rows[question, name]
    return float(row["treated"] / row["control"])
