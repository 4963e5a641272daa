"""The study of languages: runs that build on others, measures of summaries and predictions, its figures' rows."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.store import layout
from icl_lab.store.atomic import write_npz
from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.languages import measures
from icl_lab.studies.languages.runs import RUNS
from icl_lab.studies.matrix_figure import Matrix


def made(folder: Path, name: str, **headline: Any) -> Path:
    run = folder / name
    (run / layout.ANALYSIS).mkdir(parents=True)
    unseen = {"loss": 0.6, "ridge_loss": 0.4}
    (run / layout.SUMMARY).write_text(json.dumps({"headline": headline, "unseen": unseen}))
    return run


def test_the_runs_of_a_claim_leave_out_those_that_they_build_on() -> None:
    cells = RUNS["autoencoder"].cells
    assert [cell.config.name for cell in cells] == ["languages"] * 5
    assert sorted(cell.config.init_seed for cell in cells) == [0, 1, 2, 3, 4]
    assert all(cell.config.requires for cell in cells)


def test_measures_of_a_summary(tmp_path: Path) -> None:
    run = made(tmp_path, "one", loss=0.3, accuracy=0.9, ridge_accuracy=0.8, optimum_ratio=1.01)
    other = made(tmp_path, "other", loss=0.2, accuracy=0.95, ridge_accuracy=0.8, optimum_ratio=1.03)
    assert measures.difference("accuracy", "ridge_accuracy")(run) == pytest.approx(0.1)
    assert measures.over("loss", "ridge_loss", "unseen")(run) == pytest.approx(1.5)
    assert measures.unseen_over_trained(run) == pytest.approx(2.0)
    assert measures.reaches("optimum_ratio", 1.02)(run) == 1
    assert measures.reaches("optimum_ratio", 1.02)(other) == 0
    assert measures.one_over_paired(1, measures.value("loss"))((other, other), run) == pytest.approx(2 / 3)
    assert measures.mean_over(measures.value("loss"))((run, other)) == pytest.approx(0.25)
    assert measures.over_paired("loss")(run, other) == pytest.approx(1.5)


def test_matches_are_root_mean_squares_over_the_models_own(tmp_path: Path) -> None:
    run, rng = made(tmp_path, "run"), np.random.default_rng(0)
    x, y, x_query = rng.normal(size=(50, 10, 16)), rng.choice([-1.0, 1.0], (50, 10)), rng.normal(size=(50, 16))
    batch = {"x": x, "y": y, "x_query": x_query, "y_query": y[:, 0], "w": np.zeros((50, 1))}
    write_npz(run / layout.ANALYSIS_BATCH, batch)
    step = 4 / math.sqrt(17) * np.einsum("bn,bnd,bd->b", y, x, x_query)
    write_npz(run / layout.PREDICTIONS, {"tf": -step, "gd": step})
    assert measures.published_match(run) == pytest.approx(0, abs=1e-9)  # its sign is turned
    assert measures.fitted_match(run) == pytest.approx(2)


def test_dots_are_means_of_a_setting_with_t_intervals(tmp_path: Path) -> None:
    values = {"a": [0.8, 0.9, 1.0], "b": [0.5]}
    runs = {name: [made(tmp_path, f"{name}{i}", v=v) for i, v in enumerate(own)] for name, own in values.items()}
    dots = Dots("dots", "A title", {"a": "first", "b": "second"}, lambda run: {("p", "s"): measures.value("v")(run)})
    first, second = dots.rows(runs)
    assert (first["setting"], first["panel"], first["series"], first["seeds"]) == ("first", "p", "s", 3)
    assert first["mean"] == pytest.approx(0.9)
    assert first["high"] - first["mean"] == pytest.approx(2.919986 * 0.1 / math.sqrt(3), rel=1e-5)  # t of 2 degrees
    assert (second["low"], second["mean"], second["high"]) == (0.5, 0.5, 0.5)
    seeds = dots._replace(by_seed=True).rows(runs)
    assert [(row["setting"], row["mean"], row["low"], row["high"]) for row in seeds] == [
        *(("first", value, value, value) for value in values["a"]),
        ("second", 0.5, 0.5, 0.5),
    ]


def test_dots_of_shares_have_clopper_and_pearsons_intervals(tmp_path: Path) -> None:
    """Of three of three: the lower end is the cube root of .05, and nothing lies above 1."""
    runs = {"a": [made(tmp_path, f"a{i}", v=1.0) for i in range(3)]}
    dots = Dots("dots", "A title", {"a": "first"}, lambda run: {("p", "s"): measures.value("v")(run)}, scale="share")
    (row,) = dots.rows(runs)
    assert (row["mean"], row["high"], row["seeds"]) == (1.0, 1.0, 3)
    assert row["low"] == pytest.approx(0.05 ** (1 / 3), rel=1e-6)


def test_a_matrix_is_the_mean_of_its_runs() -> None:
    ones = {"a": [Path("1"), Path("3")]}
    matrix = Matrix("m", "A title", ("a",), lambda run: np.diag([float(run.name), 0.0]))
    rows = matrix.rows(ones)
    assert [(row["i"], row["j"], row["value"]) for row in rows] == [(0, 0, 2.0), (0, 1, 0.0), (1, 0, 0.0), (1, 1, 0.0)]
    assert {row["limit"] for row in rows} == {2.0}
    beside = matrix._replace(beside=lambda run: np.full((2, 2), -5.0))
    assert {row["limit"] for row in beside.rows(ones)} == {5.0}
