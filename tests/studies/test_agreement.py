"""Predictions and what is measured: verdicts, and what is written where nothing is predicted."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.store.atomic import csv_bytes
from icl_lab.studies.contrast import CLEAN, Condition, Context, Contrast
from icl_lab.studies.order_noise.agreement import LEAST, agreement, read_predictions
from icl_lab.studies.order_noise.measures import CONTRASTS
from icl_lab.studies.order_noise.table import read_cells
from tests.runners.tiny import ROOT

FOLDER = ROOT / "report/order_noise"
SORTED_CONTEXT = Context("easy2hard")
OWN = Contrast(
    "q", "twolayer: own", "difference", [Condition("twolayer", SORTED_CONTEXT, CLEAN)], [Condition("twolayer")]
)
DESCENT = Contrast(
    "q", "twolayer: gd", "difference", [Condition("twolayer")], [Condition("twolayer", column="test_gd_loss")]
)


def table(*ratios: float, gd: float = 1.0) -> pd.DataFrame:
    """Cells of a model trained in random order, with a loss of 1, and easy first, with these losses."""
    rows = []
    for seed, ratio in enumerate(ratios):
        for trained, loss in (("random", 1.0), ("easy2hard", ratio)):
            row = {"exp": f"{trained}{seed}", "model": "twolayer", "seed": seed, "test_loss": loss, "test_gd_loss": gd}
            for context, ordering in (("train", trained), ("eval", "random")):
                row |= {f"{context}_ordering": ordering, f"{context}_noise_mode": "clean", f"{context}_p": 0.0}
                row |= {f"{context}_placement": "mixed", f"{context}_difficulty": "gd_error"}
            rows.append(row | {"trained": "true"})
    return pd.DataFrame(rows)


def predictions(path: Path, **changes: float) -> Path:
    rows = [{"question": "q", "contrast": f"twolayer: {name}", "predicted_change": v} for name, v in changes.items()]
    path.write_bytes(csv_bytes(rows))
    return path


def verdict(tmp_path: Path, predicted: float, *ratios: float) -> str:
    (row,) = agreement(table(*ratios), [OWN], predictions(tmp_path / "p.csv", own=predicted))
    assert row["verdict"] == ("undecided" if row["reading_says"] == "undecided" else "provisional")
    return str(row["reading_says"])


def test_a_prediction_is_met_within_a_quarter_of_it(tmp_path: Path) -> None:
    around = (0.899, 0.9, 0.901)
    assert verdict(tmp_path, -0.1, *around) == "as predicted"
    assert verdict(tmp_path, -0.13, *around) == "as predicted"  # .03 of .0325
    assert verdict(tmp_path, -0.15, *around) == "contradicted"
    assert verdict(tmp_path, +0.1, *around) == "contradicted"
    assert verdict(tmp_path, -0.1, 0.8, 0.9, 1.0) == "undecided"


def test_small_predictions_need_not_be_met_more_exactly_than_the_least_margin(tmp_path: Path) -> None:
    near = 1 + 0.8 * LEAST
    assert verdict(tmp_path, 0.0, near, near + 1e-4, near - 1e-4) == "no effect"
    assert verdict(tmp_path, 0.0, *(near + LEAST + shift for shift in (0, 1e-4, -1e-4))) == "contradicted"


def test_eight_seeds_are_not_provisional(tmp_path: Path) -> None:
    ratios = [0.9 + shift for shift in (0, 1e-3, -1e-3, 2e-3, -2e-3, 3e-3, -3e-3, 0)]
    path = predictions(tmp_path / "p.csv", own=-0.1)
    found = [agreement(table(*ratios[:n]), [OWN], path)[0]["verdict"] for n in (7, 8)]
    assert found == ["provisional", "as predicted"]


def test_with_descent_a_models_distance_from_its_optimum_is_allowed(tmp_path: Path) -> None:
    path = predictions(tmp_path / "p.csv", own=0.0, gd=0.0)
    rows = {row["contrast"]: row for row in agreement(table(1.0, 1.0, gd=1 / 1.008), [OWN, DESCENT], path)}
    assert rows["twolayer: gd"]["reading_says"] == "no effect"
    assert (rows["twolayer: gd"]["margin"], rows["twolayer: own"]["margin"]) == (0.01, LEAST)


def test_what_is_not_predicted_or_not_measured_has_no_row(tmp_path: Path) -> None:
    assert agreement(table(0.9, 0.9), [OWN], tmp_path / "none.csv") == []
    assert agreement(table(0.9, 0.9), [OWN], predictions(tmp_path / "p.csv", gd=0.0)) == []
    assert agreement(table(0.9), [OWN], predictions(tmp_path / "p.csv", own=0.0)) == []


def test_the_committed_predictions_are_of_the_studys_contrasts() -> None:
    predicted = read_predictions(FOLDER / "predictions.csv")
    rows = agreement(read_cells(FOLDER), CONTRASTS, FOLDER / "predictions.csv")
    assert len(rows) > 150
    found: dict[str, Any] = {row["contrast"]: row for row in rows if row["question"] == "order in training"}
    easy = found["twolayer: trained easy2hard, tested easy2hard"]
    assert easy["predicted"] == predicted["order in training", easy["contrast"]] == pytest.approx(-0.095, abs=0.002)
    assert easy["change_low"] < easy["change"] < easy["change_high"] < 0
    measured = np.array([row["change"] for row in rows])
    assert np.corrcoef([row["predicted"] for row in rows], measured)[0, 1] > 0.95
