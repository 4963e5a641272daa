"""Contrasts as measured against the change that position-weighted gradient descent predicts, each with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab.configs.columns import has_trained
from icl_lab.src import intervals
from icl_lab.src.statistics import MARGIN
from icl_lab.store.readers import read_csv
from icl_lab.studies.contrast import Cells, Contrast, change_by_seed

if TYPE_CHECKING:
    import pandas as pd

AGREEMENT = "agreement.csv"
SHARE, LEAST = 0.25, 0.005  # tolerance: a quarter of the prediction, but at least this
MARGIN_WORDS = "a quarter of the prediction (at least .5 %, 1 % where gradient descent is compared with)"
VERDICTS = ("as predicted", "no change, as predicted", "undecided", "not as predicted")


def agreement(table: pd.DataFrame, contrasts: Sequence[Contrast], predictions: Path) -> list[dict[str, Any]]:
    """A row for each contrast that is predicted and measured on two seeds or more; none without predictions."""
    if not predictions.exists():
        return []
    predicted = read_predictions(predictions)
    learnt = Cells(table[has_trained(table)])
    rows = []
    for contrast in contrasts:
        key = contrast.question, contrast.name
        changes = np.array([*change_by_seed(learnt, contrast).values()]) if key in predicted else np.array([])
        if len(changes) > 1:
            least = LEAST if _is_of_one_model(contrast) else MARGIN
            rows.append({"question": key[0], "contrast": key[1], **_row(predicted[key], changes, least)})
    return rows


def read_predictions(path: Path) -> Mapping[tuple[str, str], float]:
    """The predicted changes, by question and contrast."""
    table = read_csv(path, ("predicted_change",), ("question", "contrast"))
    return {(row["question"], row["contrast"]): row["predicted_change"] for row in table.to_dict("records")}


def _is_of_one_model(contrast: Contrast) -> bool:
    """Whether a model is compared with itself; with gradient descent, the change has its distance from its optimum."""
    return all(condition.column == "test_loss" for condition in contrast.conditions)


def _row(predicted: float, changes: np.ndarray, least: float) -> dict[str, Any]:
    """The measured change with its 90 % interval, and what the interval of measured less predicted says.

    as predicted: it lies within the margin, two one-sided tests at 5 %; "no change, as predicted" where the predicted
    change lies within the margin too, so that none at all would pass; not as predicted: outside; else undecided, as
    where a number is missing.
    """
    if not np.isfinite([predicted, *changes]).all():
        missing = dict.fromkeys(("change", "change_low", "change_high", "margin"), float("nan"))
        return {"n": len(changes), "predicted": predicted, **missing, "verdict": "undecided"}
    change, off = intervals.of(changes, "change"), intervals.of(changes - predicted, "linear")
    margin = max(least, SHARE * abs(predicted))
    verdict = "undecided"
    if -margin <= off.low and off.high <= margin:
        verdict = "as predicted" if predicts_a_change({"predicted": predicted, "margin": margin}) else VERDICTS[1]
    elif off.low > margin or off.high < -margin:
        verdict = "not as predicted"
    interval = {"change": change.estimate, "change_low": change.low, "change_high": change.high}
    return {"n": change.n, "predicted": predicted, **interval, "margin": margin, "verdict": verdict}


def predicts_a_change(row: Mapping[str, Any]) -> bool:
    """Whether the predicted change is larger than the margin, so that no change would not be as predicted."""
    return bool(abs(row["predicted"]) > row["margin"])
