"""What findings are made of: contrasts, selected by name, in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icl_lab.src import intervals
from icl_lab.src.statistics import ALPHA
from icl_lab.studies.words import HIGHER, LOWER

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
Rows = Mapping[tuple[str, str], Row]
Finding = Callable[[Rows, "pd.DataFrame"], tuple[str, bool]]

SHOWN = (HIGHER, LOWER)  # what the numbers say of a difference after Holm's correction


def contrasts_of(rows: Rows, question: str, *words: str) -> list[Row]:
    """The contrasts of a question whose names hold all these words; `LookupError` if none is measured."""
    contrasts = [
        row for (asked, name), row in rows.items() if asked == question and all(word in name for word in words)
    ]
    if not contrasts:
        raise LookupError(f"no contrast of {question!r} is measured")
    return contrasts


def in_percent(row: Row) -> str:
    """The mean relative change over seeds with its 90 % interval and n; of an AUROC, the difference.

    Where some seeds have not trained, that of all seeds first.
    """
    if row["unit"] == "auroc" or row["n_all"] == row["n"]:
        return of_trained(row)
    return f"{_percent(*_of_all_seeds(row), row['n_all'])}, trained: {of_trained(row)}"


def of_trained(row: Row) -> str:
    """The same of the seeds that trained alone."""
    low, high = row["equivalence_low"], row["equivalence_high"]
    if row["unit"] == "auroc":
        return f"{(low + high) / 2:+.4f} [{low:+.4f}, {high:+.4f}; n = {row['n']}]"
    return _percent(low, high, row["n"])


def _percent(low: float, high: float, seeds: int) -> str:
    return f"{50 * (low + high):+.2f} % [{100 * low:+.2f}, {100 * high:+.2f}; n = {seeds}]"


def _of_all_seeds(row: Row) -> tuple[float, float]:
    """The 90 % interval of the change over all seeds, of which a contrast has the 95 % one."""
    from scipy.stats import t

    ratio = t.ppf(0.95, row["n_all"] - 1) / t.ppf(0.975, row["n_all"] - 1)
    half = ratio * (row["change_all_high"] - row["change_all_low"]) / 2
    return row["change_all"] - half, row["change_all"] + half


def auroc(table: pd.DataFrame, name: str) -> str:
    """A score's AUROC with its 90 % interval over seeds, and n; of a seed the mean over its cells."""
    interval = intervals.of(table.groupby("seed")[name].mean().to_numpy(), "fraction")
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}; n = {interval.n}]"


def largest_end(rows: Sequence[Row]) -> str:
    """The 90 % interval's end that is farthest from no change, of all these."""
    end = max(max(abs(row["equivalence_low"]), abs(row["equivalence_high"])) for row in rows)
    return f"{end:.4f}" if rows[0]["unit"] == "auroc" else f"{100 * end:.2f} %"


def widest(rows: Sequence[Row]) -> str:
    """The same in a sentence."""
    return f"90 % intervals within ±{largest_end(rows)}"


def none_lower(rows: Sequence[Row]) -> bool:
    """Whether each is computed and none is shown to be lower."""
    return bool(rows) and all(row["reading_says"] != LOWER and not row["because"] for row in rows)


def is_equivalent(row: Row) -> bool:
    """Whether the test of equivalence shows it, whatever the contrast's kind."""
    return bool(row["p_equivalence"] < ALPHA)


def all_equivalent(rows: Sequence[Row]) -> bool:
    """Whether equivalence is shown for each."""
    return bool(rows) and all(is_equivalent(row) for row in rows)


def equivalent_counts(contrasts: Mapping[str, Sequence[Row]]) -> str:
    """In how many contrasts each model is equivalent."""
    return ", ".join(
        f"{model} in {sum(map(is_equivalent, group))} of {len(group)}" for model, group in contrasts.items()
    )


def loss_ratios(table: pd.DataFrame, model: str, trained: str, tested: str) -> pd.Series:
    """The loss over gradient descent's, by seed, of a model trained clean in one order and tested clean in another."""
    clean = (table["train_noise_mode"] == "clean") & (table["eval_noise_mode"] == "clean")
    orders = (table["train_ordering"] == trained) & (table["eval_ordering"] == tested)
    ratios: pd.Series = table[clean & orders & (table["model"] == model)]["test_loss_ratio"]
    return ratios


def short(row: Row) -> str:
    """A contrast's name less its model."""
    return str(row["contrast"].partition(": ")[2])


def span(rows: Sequence[Row]) -> str:
    """The smallest and the largest of their changes."""
    changes = sorted(100 * row["change"] for row in rows)
    return f"{changes[0]:+.2f} to {changes[-1]:+.2f} %"


def treated_over_control(rows: Rows, question: str, name: str) -> float:
    """Treated over control."""
    row = rows[question, name]
    return float(row["treated"] / row["control"])
