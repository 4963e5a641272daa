"""Who has left the plateau: thresholds, values that are not finite, and what a predictor of the mean sine reaches."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import plateau
from analysis.layerwise import verdict
from analysis.plateau import ALIGNED, SINE_LEFT, UNTRAINED, in_words, left_plateau
from report.contrasts import has_learnt
from src.config import FAMILIES, DataConfig
from store import layout


def layerwise(rolled_out: bool, *losses: float, zero: float = 20.0) -> dict[str, Any]:
    references = {"zero": {"mse": [zero]}}
    return {"layerwise": {"rolled_out": rolled_out, "trimmed_mean": list(losses), "references": references}}


def diversity(loss: float | None) -> dict[str, Any]:
    return {"headline": {"id_tf_loss": loss, "id_zero_loss": 2.0}}


@pytest.mark.parametrize(
    ("family", "summary", "value", "met"),
    [
        ("regression", {"alignment": {"align_cos": 0.6}}, 0.6, True),
        ("regression", {"alignment": {"align_cos": 0.37}}, 0.37, False),
        ("regression", {"alignment": {"align_cos": None}}, None, False),
        ("regression", {"alignment": {"align_cos": float("nan")}}, None, False),
        ("layerwise", layerwise(False, 30.0, 18.0), 0.9, True),
        ("layerwise", layerwise(False, 10.0, 18.1), 0.905, False),
        ("layerwise", layerwise(True, 10.0, 1e9), 0.5, True),  # a trained layer, whose roll-out diverges
        ("sine", {"headline": {"loss": 0.01, "zero_loss": 0.02}}, 0.5, True),
        ("sine", {"headline": {"loss": 0.0134, "zero_loss": 0.02}}, 0.67, False),
        ("diversity", diversity(1.8), 0.9, True),
        ("diversity", diversity(1.81), 0.905, False),
        ("diversity", diversity(None), None, False),
    ],
)
def test_the_threshold_itself_is_reached(family: str, summary: dict[str, Any], value: float, met: bool) -> None:
    found = left_plateau(family, summary)
    assert found["met"] is met
    assert found["value"] == (None if value is None else pytest.approx(value))
    assert f"{found['threshold']:g}" in found["criterion"]
    assert in_words(family, summary).startswith("left the plateau: " if met else "NOT off the plateau: ")


def test_every_family_has_a_criterion() -> None:
    assert set(plateau.CRITERIA) == set(FAMILIES)


def test_the_line_of_a_summary() -> None:
    words = in_words("regression", {"alignment": {"align_cos": 0.9993}})
    assert words == "left the plateau: cosine of sensitivities 0.9993, at least 0.6"
    words = in_words("regression", {"alignment": {"align_cos": 0.37}})
    assert words == (
        "NOT off the plateau: cosine of sensitivities 0.3700, less than 0.6; train longer (--steps) or take another "
        "--seed"
    )


def test_a_stack_is_judged_as_its_verdict_is() -> None:
    for last in (17.9, 18.1):
        losses = np.array([30.0, last])
        found = left_plateau("layerwise", layerwise(False, *losses))["met"]
        assert found is (verdict(False, losses, losses, 20.0) != "did not train")
    assert UNTRAINED == 0.9


def test_the_study_of_orders_and_noise_takes_the_same_cosine() -> None:
    import pandas as pd

    table = pd.DataFrame({"align_cos": [ALIGNED, ALIGNED - 1e-9]})
    assert list(has_learnt(table)) == [True, False]
    assert [left_plateau("regression", {"alignment": row})["met"] for row in table.to_dict("records")] == [True, False]


def test_a_predictor_that_knows_the_mean_sine_alone_is_on_the_plateau() -> None:
    """E[(y - E y)^2 | x] over E y^2 by quadrature, at the amplitudes, phases and inputs of the preset: .67."""
    low, high = DataConfig().amplitude_low, DataConfig().amplitude_high
    points, weights = np.polynomial.legendre.leggauss(40)

    def average(values: np.ndarray) -> np.ndarray:
        """Over the last axis, uniform between its ends."""
        return values @ weights / 2

    a, phi, x = ((end - start) / 2 * points + (end + start) / 2 for start, end in ((low, high), (0, np.pi), (-5, 5)))
    y = a[None, :, None] * np.sin(x[:, None, None] + phi[None, None, :])
    mean, square = (average(average(values)) for values in (y, y**2))
    share = average(square - mean**2) / average(square)
    assert share == pytest.approx(0.67, abs=0.005)
    assert share > SINE_LEFT


def test_a_finished_runs_summary_has_it_and_it_follows_from_the_rest(lsa1_run: Path, sine_run: Path) -> None:
    """So it is known of runs whose summary does not have it."""
    for run, family in ((lsa1_run, "regression"), (sine_run, "sine")):
        summary = json.loads((run / layout.SUMMARY).read_text())
        kept = summary.pop("left_plateau")
        assert kept == left_plateau(family, summary)
        assert kept["met"] is False  # of 100 steps
