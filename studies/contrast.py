"""Contrasts between the conditions of a study, paired by seed: what is compared, and the tests.

A condition is a model, what it was trained on and what it was tested on; its values are a column of the study's table,
one for each seed. Seeds share their tasks between conditions, so contrasts are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab.configs.columns import has_trained
from icl_lab.src import intervals, statistics
from icl_lab.store.readers import StoreError
from icl_lab.studies.words import CONTRADICTED, HIGHER, LOWER, NO_EFFECT, UNDECIDED, of_few_seeds

if TYPE_CHECKING:
    import pandas as pd

# unit -> the scales of differences and of relative changes: a positive value can fall by at most all of itself
SCALES = {"loss": ("linear", "change"), "step": ("linear", "linear"), "auroc": ("difference", "linear")}
DECIDING = {"exact": "largest_change", "equivalence": "p_equivalence", "difference": "p_holm"}  # by kind
EXACT = 1e-5  # relative: what summing the same float32 numbers in another order can change


class Context(NamedTuple):
    """How the pairs of a context are ordered and corrupted; no `difficulty` means the one of the noise mode."""

    ordering: str = "random"
    noise_mode: str = "clean"
    p: float = 0.0
    placement: str = "mixed"
    difficulty: str | None = None


CLEAN = Context()


class Condition(NamedTuple):
    """A column of the rows of a model that was trained and tested on these settings."""

    model: str
    train: Context = CLEAN
    test: Context = CLEAN
    column: str = "test_loss"


class Ratio(NamedTuple):
    """One condition's values over another's, seed by seed: an effect, where a contrast is one of effects."""

    of: Condition
    over: Condition


class Contrast(NamedTuple):
    """Treated against control, each the mean of its conditions or ratios of conditions.

    kind: "difference", a paired t test, Holm-corrected over the contrasts of the question; "equivalence", two one-sided
    tests of a change within the margin; "exact", no change beyond rounding. unit: "loss" and "step", whose changes are
    relative with a margin of 1 %, or "auroc", whose changes are absolute with a margin of .01.
    """

    question: str
    name: str
    kind: str
    treated: Sequence[Condition | Ratio]
    control: Sequence[Condition | Ratio]
    unit: str = "loss"

    @property
    def conditions(self) -> list[Condition]:
        """All conditions that it needs."""
        sides = (*self.treated, *self.control)
        return [part for side in sides for part in (side if isinstance(side, Ratio) else (side,))]


ValuesOf = Callable[[Condition | Ratio], "pd.Series"]  # a condition's values by seed
SORTED = ("easy2hard", "hard2easy")  # the orderings for which the difficulty matters


class Cells:
    """A study's table by condition: the rows of a model that was trained and tested on certain contexts."""

    def __init__(self, table: pd.DataFrame):
        places: dict[tuple[object, ...], list[int]] = {}
        for place, row in enumerate(table.to_dict("records")):
            places.setdefault((row["model"], context_of(row, "train_"), context_of(row, "eval_")), []).append(place)
        self.table, self.places = table, places
        self.runs = [*zip(table["exp"], table["seed"], strict=True)]

    def values(self, condition: Condition | Ratio) -> pd.Series:
        """A condition's values by seed; `StoreError` if the table does not hold it."""
        if isinstance(condition, Ratio):
            return self.values(condition.of) / self.values(condition.over)
        places = self.places.get((condition.model, _asked(condition.train), _asked(condition.test)), [])
        rows = [*{self.runs[place]: place for place in reversed(places)}.values()]  # a run's first row
        series = self.table[condition.column].iloc[rows].set_axis(self.table["seed"].iloc[rows]).sort_index()
        if series.empty or series.index.has_duplicates:
            raise StoreError(
                f"the study's table has {len(rows)} rows where one for each seed is needed, of {condition}"
            )
        return series


def context_of(row: Mapping[str, Any], prefix: str) -> Context:
    """How a row's contexts are, less what has no effect."""
    return _effective(*(row[f"{prefix}{name}"] for name in ("ordering", "noise_mode", "p", "placement", "difficulty")))


def _asked(context: Context) -> Context:
    difficulty = context.difficulty or ("gd_error" if context.noise_mode == "clean" else "residual")
    return _effective(*context._replace(difficulty=difficulty))


def _effective(ordering: str, noise_mode: str, p: float, placement: str, difficulty: str | None) -> Context:
    noisy = (round(float(p), 9), placement) if noise_mode != "clean" else (0.0, "mixed")
    return Context(ordering, noise_mode, *noisy, difficulty if ordering in SORTED else None)


def mean_of(values_of: ValuesOf, conditions: Sequence[Condition | Ratio]) -> pd.Series:
    """The mean of the conditions, by seed, nan where one of them is; seeds that one of them lacks are left out."""
    import pandas as pd

    if len(conditions) == 1:
        return values_of(conditions[0]).astype(float)
    columns = pd.concat([values_of(condition) for condition in conditions], axis=1, join="inner")
    return columns.mean(axis=1, skipna=False)


def by_name(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of contrasts by question and name."""
    return {(row["question"], row["contrast"]): row for row in rows}


def change_by_seed(learnt: Cells, contrast: Contrast) -> dict[int, float]:
    """The change of each seed that has all conditions: relative, of an AUROC the difference; nan if not computed."""
    treated, control = _of_common_seeds(learnt.values, contrast)
    changes = treated - control if contrast.unit == "auroc" else treated / control - 1
    return {int(seed): float(change) for seed, change in changes.items()}


def results(
    table: pd.DataFrame, contrasts: Sequence[Contrast], trained: pd.Series | None = None
) -> list[dict[str, Any]]:
    """A row for each contrast: means, change with intervals, p (raw and Holm's over the question), `judged`.

    A contrast that fewer than two seeds have has no interval, and no row.
    They are of the seeds that have trained in all of the contrast's conditions: a model that has not begun to learn
    tells nothing of what it would have learnt. `trained`: these rows, by default those of `has_trained`. `n_all`,
    `change_all` and its ends are of all seeds.
    """
    learnt, whole = (
        cache(Cells(part).values) for part in (table[has_trained(table) if trained is None else trained], table)
    )  # contrasts share them
    pairs = [(contrast, _paired(learnt, contrast)) for contrast in contrasts]
    measured = [(contrast, pair) for contrast, pair in pairs if len(pair[0]) > 1]
    rows = [
        _result(contrast, *pair) | _of_all(_result(contrast, *_paired(whole, contrast))) for contrast, pair in measured
    ]
    for question in dict.fromkeys(contrast.question for contrast in contrasts):
        family = [row for row in rows if row["question"] == question and row["kind"] == "difference"]
        for row, adjusted in zip(family, statistics.holm(np.array([row["p"] for row in family])), strict=True):
            row["p_holm"] = float(adjusted)
    for row in rows:
        row |= judged(row)
    return rows


def _paired(values_of: ValuesOf, contrast: Contrast) -> tuple[np.ndarray, np.ndarray]:
    """The values of treated and control, of the seeds that have both."""
    treated, control = _of_common_seeds(values_of, contrast)
    return treated.to_numpy(float), control.to_numpy(float)


def _of_common_seeds(values_of: ValuesOf, contrast: Contrast) -> tuple[pd.Series, pd.Series]:
    """Treated and control by seed, of the seeds that have both."""
    treated, control = mean_of(values_of, contrast.treated), mean_of(values_of, contrast.control)
    if treated.index.equals(control.index):
        return treated, control
    seeds = treated.index.intersection(control.index)
    return treated[seeds], control[seeds]


def _possible(low: float, high: float, scale: str) -> tuple[float, float]:
    return intervals.clipped(intervals.Interval(np.nan, low, high, 0), intervals.SCALES[scale])[1:3]


def _result(contrast: Contrast, one: np.ndarray, other: np.ndarray) -> dict[str, Any]:
    t_test, same = statistics.contrast(one, other), _equivalence(one, other, contrast.unit)
    of_difference, of_change = SCALES[contrast.unit]
    low, high = _possible(t_test.low, t_test.high, of_difference)
    change_low, change_high = _possible(t_test.relative_low, t_test.relative_high, of_change)
    return {
        "question": contrast.question,
        "contrast": contrast.name,
        "kind": contrast.kind,
        "unit": contrast.unit,
        "n": t_test.n,
        "treated": float(one.mean()),
        "control": float(other.mean()),
        "difference": t_test.difference,
        "low": low,
        "high": high,
        "change": t_test.relative,
        "change_low": change_low,
        "change_high": change_high,
        "largest_change": float(np.abs(one / other - 1).max()),
        "d_z": t_test.d_z,
        "p": t_test.p,
        "p_holm": None,
        "equivalence_low": same.low,
        "equivalence_high": same.high,
        "p_equivalence": same.p,
    }


def _of_all(row: dict[str, Any]) -> dict[str, Any]:
    """The values of a row for all seeds."""
    names = ("n_all", "change_all", "change_all_low", "change_all_high")
    return dict(zip(names, (row["n"], *change_of(row)), strict=True))


def change_of(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """The change of a contrast with its 95 % interval: relative, of an AUROC the difference."""
    names = ("difference", "low", "high") if row["unit"] == "auroc" else ("change", "change_low", "change_high")
    change, low, high = (float(row[name]) for name in names)
    return change, low, high


def _equivalence(treated: np.ndarray, control: np.ndarray, unit: str) -> statistics.Equivalence:
    """Of the relative change; of an AUROC, which has no zero to be relative to, of the difference."""
    if unit == "auroc":
        return statistics.equivalence(1 + (treated - control), np.ones_like(control))
    return statistics.equivalence(treated, control)


def judged(row: Mapping[str, Any]) -> dict[str, str]:
    """A contrast's verdict, what its numbers say, and the number that would decide, if it is missing."""
    deciding = DECIDING[row["kind"]]
    if row[deciding] is None or not np.isfinite(row[deciding]):
        return {"verdict": UNDECIDED, "reading_says": UNDECIDED, "because": f"{deciding} is not computed"}
    says = _by_numbers(row)
    return {"verdict": of_few_seeds(says, row["n"]), "reading_says": says, "because": ""}


def _by_numbers(row: Mapping[str, Any]) -> str:
    """Exactly no change or not; a change within the margin, wholly outside, or neither; higher, lower, or neither."""
    if row["kind"] == "exact":
        return NO_EFFECT if row["largest_change"] <= EXACT else CONTRADICTED
    if row["kind"] == "difference":
        direction = HIGHER if row["difference"] > 0 else LOWER
        return direction if row["p_holm"] < statistics.ALPHA else UNDECIDED
    if row["p_equivalence"] < statistics.ALPHA:
        return NO_EFFECT
    low, high = row["equivalence_low"], row["equivalence_high"]
    return CONTRADICTED if low > statistics.MARGIN or high < -statistics.MARGIN else UNDECIDED
