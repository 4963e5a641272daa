"""Measures of step sizes by position, from what the analyses give."""

import json
from pathlib import Path

import numpy as np
import pytest

from icl_lab.store import layout
from icl_lab.studies.order_noise import step_sizes

RUN = Path("run")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "regressed": [0.5, 1.0, 1.5],
        "predicted": [0.4, 1.0, 1.6],
        "variance_explained": 0.97,
        "regressed_r2": 0.9,
    }
    monkeypatch.setattr(step_sizes, "steps_of", lambda run: found)


@pytest.mark.usefixtures("steps")
def test_step_sizes_have_a_spread_relative_to_their_mean() -> None:
    assert step_sizes.spread(RUN) == pytest.approx(np.std([0.5, 1.0, 1.5]))
    assert step_sizes.variance_explained(RUN) == 0.97
    assert step_sizes.agreement("regressed")(RUN) == 0.9


def test_a_loss_is_compared_with_the_predicted_one_in_units_of_one_tuned_step(tmp_path: Path) -> None:
    (tmp_path / "analysis").mkdir()
    (tmp_path / layout.SUMMARY).write_text(json.dumps({"headline": {"tf_loss": 0.19, "gd_loss": 0.2}}))
    (tmp_path / layout.COMPARATORS).write_text(json.dumps({"gd_positions_trained": {"loss": 0.18}}))
    assert step_sizes.beyond_the_prediction(tmp_path) == pytest.approx(0.01 / 0.2)
