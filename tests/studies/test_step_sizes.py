"""Measures of step sizes by position, and of the distance to the algorithms, from what the analyses give."""

import json
from pathlib import Path

import numpy as np
import pytest

from store import layout
from studies.order_noise import step_sizes
from studies.reproduction.measures import distances

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


@pytest.fixture
def matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        ("tf", "gd_plus_plus", "cosine"): 0.998,
        ("tf", "gd_own_steps", "cosine"): 0.96,
        ("tf", "", "loss_replaced_2"): 0.23,
    }
    monkeypatch.setattr(distances, "_matrix", lambda run: found)
    cosines = {
        "step": np.array([0, 250, 500]),
        "gd": np.array([0.5, 0.99, 0.95]),
        "gd_plus_plus": np.array([0.4, 0.9, 0.99]),
    }
    monkeypatch.setattr(distances, "_cosines", lambda run: cosines)


@pytest.mark.usefixtures("matrix")
def test_distances_to_the_algorithms() -> None:
    assert distances.nearer_than("gd_plus_plus", "gd_own_steps")(RUN) == pytest.approx(0.002 / 0.04)
    assert distances.loss_with_replaced(2)(RUN) == 0.23
    assert distances.cosine_at("gd", 250)(RUN) == 0.99
    assert distances.step_of_turn(RUN) == 375  # halfway between the two records


def test_what_never_turns_has_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    cosines = {"step": np.array([0, 250]), "gd": np.array([0.5, 0.9]), "gd_plus_plus": np.array([0.4, 0.8])}
    monkeypatch.setattr(distances, "_cosines", lambda run: cosines)
    assert distances.step_of_turn(RUN) == np.inf
