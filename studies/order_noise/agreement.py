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
from icl_lab.studies.words import AS_PREDICTED, CONTRADICTED, NO_EFFECT, UNDECIDED, of_few_seeds

if TYPE_CHECKING:
    import pandas as pd

AGREEMENT = "agreement.csv"
SHARE, LEAST = 0.25, 0.005  # tolerance: a quarter of the prediction, but at least this
MARGIN_WORDS = "a quarter of the prediction (at least .5 %, 1 % where gradient descent is compared with)"
VERDICTS = (AS_PREDICTED, NO_EFFECT, UNDECIDED, CONTRADICTED)


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
    """The measured change with its 90 % interval, the margin around the prediction, and the verdict."""
    if not np.isfinite([predicted, *changes]).all():
        row: dict[str, Any] = dict.fromkeys(("change", "change_low", "change_high", "margin"), float("nan"))
        says = UNDECIDED
    else:
        change, margin = intervals.of(changes, "change"), max(least, SHARE * abs(predicted))
        row = {"change": change.estimate, "change_low": change.low, "change_high": change.high, "margin": margin}
        says = _says(predicted, changes, margin)
    n = len(changes)
    return {"n": n, "predicted": predicted, **row, "verdict": of_few_seeds(says, n), "reading_says": says}


def _says(predicted: float, changes: np.ndarray, margin: float) -> str:
    """What the 90 % interval of measured less predicted says: two one-sided tests at 5 %.

    as predicted: it lies within the margin; no effect: so it does, and the predicted change too, so that none at all
    would pass; contradicted: it lies outside; else undecided.
    """
    off = intervals.of(changes - predicted, "linear")
    if -margin <= off.low and off.high <= margin:
        return AS_PREDICTED if predicts_a_change({"predicted": predicted, "margin": margin}) else NO_EFFECT
    return CONTRADICTED if off.low > margin or off.high < -margin else UNDECIDED


def predicts_a_change(row: Mapping[str, Any]) -> bool:
    """Whether the predicted change is larger than the margin, so that no change would not be as predicted."""
    return bool(abs(row["predicted"]) > row["margin"])
