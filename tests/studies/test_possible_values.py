"""Intervals in the committed tables: each end is a value that its quantity can have.

What a quantity can be is said by the table's kind (`RULES`), for figures by the scale that the figure declares, and
once more by the words that name it (`BY_WORD`), whatever is declared. An interval of which nothing is said fails.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icl_lab.src.intervals import ROUNDING, SCALES
from icl_lab.studies import contrast
from icl_lab.studies.distance_figure import SCALE_OF, Distances
from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.figure import Figure
from icl_lab.studies.study import all_studies
from tests.runners.tiny import ROOT

Row = Mapping[str, Any]
Rule = Callable[[Row], str]  # the scale of a row's interval
FIGURES = {f"{study.name}/{figure.name}.csv": figure for study in all_studies() for figure in study.figures}
SWEEP = {
    **{"align_cos": "fisher", "align_l2": "nonnegative", "AUROC": "fraction", "change from GD, %": "linear"},
    **dict.fromkeys(("test loss", "loss / GD's loss", "MSE", "MSE / GD's MSE"), "nonnegative"),
}
OF_CONTRASTS: dict[str, Rule] = {
    "low": lambda row: contrast.SCALES[row["unit"]][0],
    "change_low": lambda row: contrast.SCALES[row["unit"]][1],
    "equivalence_low": lambda row: "difference" if row["unit"] == "auroc" else contrast.SCALES[row["unit"]][1],
    "change_all_low": lambda row: "difference" if row["unit"] == "auroc" else contrast.SCALES[row["unit"]][1],
}
# tables that are of no figure -> the column of an interval's lower end -> the scale of a row
RULES: dict[str, dict[str, Rule]] = {
    "claims.csv": {
        "mean_low": lambda row: row["scale"],
        "share_low": lambda row: "share",
        "of_kind_low": lambda row: "share",
        "control_low": lambda row: row["scale"],
        "difference_low": lambda row: "linear",  # of two values on the scale of their means
    },
    r"\w+/main_results.csv": {"mean_low": lambda row: row["scale"]},
    "order_noise/contrasts.csv": OF_CONTRASTS,
    r"order_noise/effects_\w+.csv": OF_CONTRASTS,
    "order_noise/agreement.csv": {"change_low": lambda row: "change"},
    "order_noise/predictions.csv": {"low": lambda row: "change"},
    "order_noise/plateaus.csv": {"share_low": lambda row: "share"},
    "order_noise/cells.csv": {"auroc_low": lambda row: "fraction"},
    r"order_noise/(alignment_metrics|attention_separation|noise_robustness|ood_curve|order_sensitivity).csv": {
        "low": lambda row: SWEEP[row["measure"]]
    },
}
RANGES = {"claims.csv": {"low", "no_effect_low", "earlier_low"}}  # accepted values, which are no intervals
# words of a panel, measure or claim -> what it can be; those that follow are of something else
BY_WORD = {
    r"^(?!.*(1 - |less)).*cosine of sensitivities": (-1, 1),
    r"^(?!.*less)[^:]*: (partial )?rank correlation": (-1, 1),
    r"rank correlation.* less ": (-2, 2),
    r"^accuracy$|^AUROC$|^share of runs$|^attention entropy$": (0, 1),
    r": accuracy of [^:]* less |: accuracy less ": (-1, 1),
    r"^loss$|^test loss$|^loss on |^mean norm|^mean absolute|^squared prediction$|^distance to ridge$": (
        0,
        float("inf"),
    ),
}


def ends_of(columns: list[str]) -> Iterator[tuple[str, str]]:
    """The columns of lower and upper ends."""
    pairs = ((name, re.sub("low$", "high", name)) for name in columns if re.search("(^|_)low$", name))
    return ((low, high) for low, high in pairs if high in columns)


def rules_of(name: str) -> dict[str, Rule]:
    """By column, what the intervals of a table are declared to be."""
    figure = FIGURES.get(name)
    if isinstance(figure, Figure | Dots):
        return {"low": lambda row: figure.scale_of(row["panel"])}
    if isinstance(figure, Distances):
        return {"low": lambda row: SCALE_OF[row.get("measure", "cosine")]}
    return next((rules for pattern, rules in RULES.items() if re.fullmatch(pattern, name)), {})


def impossible(name: str, table: pd.DataFrame) -> list[str]:
    """The intervals of a table that reach beyond what is possible, and those of which nothing is declared."""
    rules, found = rules_of(name), []
    if "panel" in table:
        table = table.assign(panel=table["panel"].astype(object).fillna(""))
    rows = table.to_dict("records")
    for low, high in ends_of([*table.columns]):
        if low in RANGES.get(name, ()):
            continue
        if low not in rules:
            found.append(f"{name}: it is not declared what {low} and {high} can be")
            continue
        for row in rows:
            scale = SCALES[rules[low](row)]
            found += [
                f"{name}: {row}" for limits in ((scale.lowest, scale.highest), *named(row)) if out(row, low, limits)
            ]
    return found


def named(row: Row) -> Iterator[tuple[float, float]]:
    words = str(row.get("panel") or row.get("measure") or row.get("says") or "")
    return (limits for pattern, limits in BY_WORD.items() if re.search(pattern, words))


def out(row: Row, name: str, limits: tuple[float, float]) -> bool:
    """Whether an end lies beyond the limits; a single value may by rounding, an end that is missing does not."""
    low, high = row[name], row[re.sub("low$", "high", name)]
    room = ROUNDING if low == high else 0.0
    return bool(low > high or low < limits[0] - room or high > limits[1] + room)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "report").rglob("*.csv")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_no_interval_of_the_committed_tables_is_outside_possible_values(path: Path) -> None:
    assert impossible(path.relative_to(ROOT / "report").as_posix(), pd.read_csv(path)) == []


CURVE = {"panel": "", "series": "a", "x": 1.0, "mean": 0.9, "low": 0.7, "high": 0.95, "seeds": 3}
COSINE = CURVE | {"panel": "cosine of sensitivities with the algorithm's"}


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("reproduction/ten_layers_training.csv", COSINE | {"high": 1.108}),
        ("reproduction/rollout.csv", CURVE | {"low": -0.01}),
        ("languages/val_acc.csv", CURVE | {"high": 1.0000001}),
        ("reproduction/rollout.csv", CURVE | {"low": 0.8, "high": 0.7}),
        ("task_diversity/gap.csv", COSINE | {"high": 1.108}),  # its figure declares a linear scale
        ("languages/codes.csv", CURVE | {"panel": "accuracy", "high": 1.061}),
        ("claims.csv", {"scale": "rank", "says": "s", "mean_low": 0.7, "mean_high": 1.128}),
        (
            "order_noise/contrasts.csv",
            {"unit": "loss", "low": 0.0, "high": 1.0, "change_low": -1.1, "change_high": 0.0},
        ),
        ("order_noise/attention_separation.csv", {"measure": "AUROC", "low": -0.1, "high": 0.5}),
        ("of_nobody.csv", {"low": 0.1, "high": 0.2}),
        ("claims.csv", {"scale": "log", "other_low": 0.1, "other_high": 0.2}),
    ],
)
def test_an_interval_outside_possible_values_is_found(name: str, row: Row) -> None:
    assert impossible(name, pd.DataFrame([row]))


def test_what_is_possible_passes() -> None:
    rows = [COSINE, COSINE | dict.fromkeys(("mean", "low", "high"), 1.0 + 1e-7), COSINE | {"low": None, "high": None}]
    assert impossible("reproduction/ten_layers_training.csv", pd.DataFrame(rows)) == []
