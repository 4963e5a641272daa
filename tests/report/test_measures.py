"""What claims measure, on runs whose answers are known: from their own files, or made by hand."""

import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from report.claims import CLAIMS, RUNS
from report.curves import heat_maps, rows_of
from report.figures import FIGURES, HEAT_MAPS
from report.measures import algorithms, depth, over_training, rolled, sines, trained
from runners.families import FAMILIES
from src.prng import key
from store import layout
from sweeps.plan import cells, plan
from tests.runners.tiny import DIM


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", RUNS)
def test_every_training_of_the_ledger_is_of_a_model_that_can_be_made(name: str) -> None:
    """Its parameters have shapes, and its batches; no seed of it is left out."""
    found = cells(plan([RUNS[name].grid]))
    assert tuple(cell.config.data_seed for cell in found) == RUNS[name].seeds
    config = found[0].config
    family = FAMILIES[config.family]
    assert jax.tree.leaves(jax.eval_shape(family.make_model(config).init, key(0)))
    knobs = {"noise_p": np.float32(0), "noise_sigma": np.float32(0)}
    batch = jax.eval_shape(lambda: family.training_batches(config)(key(0), np.int32(0), **knobs))
    assert batch.x.shape[0] == config.training.batch_size


def test_figures_are_of_runs_of_the_ledger() -> None:
    assert {name for figure in FIGURES for name in figure.runs} | set(HEAT_MAPS) <= set(RUNS)
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
    shown = {name for figure in FIGURES for name in figure.runs} | set(HEAT_MAPS)
    quick = {name for figure in FIGURES if figure.profile == "quick" for name in figure.runs}
    assert quick & {c.runs for c in CLAIMS if c.profile == "quick"}
    assert {"one_layer", "two_layers", "five_layers", "ten_layers", "interleaved", "sine", "depth_lsa"} <= shown


def test_losses_and_ratios_are_those_of_the_runs_summary(lsa1_run: Path) -> None:
    headline = read(lsa1_run / layout.SUMMARY)["headline"]
    assert trained.loss(lsa1_run) == pytest.approx(headline["tf_loss"], rel=1e-5)
    assert trained.loss_of("gd")(lsa1_run) == pytest.approx(headline["gd_loss"], rel=1e-5)
    assert trained.over("gd")(lsa1_run) == pytest.approx(headline["tf_loss"] / headline["gd_loss"], rel=1e-5)
    assert trained.loss_over_that_of(lsa1_run, lsa1_run) == 1
    assert trained.median_loss(lsa1_run) < trained.loss(lsa1_run)


def test_comparisons_are_those_of_the_runs_alignment(lsa1_run: Path, twolayer_run: Path) -> None:
    aligned = read(lsa1_run / layout.ALIGNMENT)
    for name in ("model_cos", "preds_diff", "model_diff"):
        assert trained.against("gd", name)(lsa1_run) == pytest.approx(aligned[name], rel=1e-4)
    copied = read(twolayer_run / layout.COPYING)["averaged_before_norm"]
    assert trained.sensitivity_to("own")(twolayer_run) == pytest.approx(copied["own"], rel=1e-4)


def test_a_shift_of_nothing_changes_nothing(lsa1_run: Path) -> None:
    furthest = trained.furthest_under("input_range", (1.0,))(lsa1_run)
    assert furthest == pytest.approx(trained.over("gd")(lsa1_run), rel=1e-5)


def test_one_application_undamped_is_the_model_itself(lsa1_run: Path) -> None:
    """So its mean is the headline loss; the lowest mean of any number of them is no higher."""
    losses, _ = rolled.rolled_out(lsa1_run, 1.0)["tf"]
    assert losses.shape[0] == rolled.ROLLED
    assert losses[0].mean() == pytest.approx(trained.loss(lsa1_run), rel=1e-4)
    assert rolled.lowest_mean(1.0)(lsa1_run) <= losses[0].mean()


def metrics(run: Path, losses: list[float]) -> Path:
    run.mkdir()
    lines = [json.dumps({"step": 10 * i, "train_loss": 1.0, "test_loss": loss}) for i, loss in enumerate(losses)]
    (run / layout.METRICS).write_text("\n".join(lines) + "\n")
    return run


def test_the_end_of_a_plateau_and_what_a_pool_does(tmp_path: Path) -> None:
    run = metrics(tmp_path / "falls", [0.42, 0.41, 0.41, 0.25, 0.4, 0.21])
    assert over_training.steps_until_learnt(run) == 30
    assert over_training.last_loss(run) == 0.21
    assert over_training.highest_loss(run) == 0.41  # not the first: it is of no training
    assert over_training.steps_until_learnt(metrics(tmp_path / "stays", [0.42, 0.41])) == math.inf


def test_copying_before_learning_is_a_ratio_below_one(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = {
        "step": np.array([0, 10, 20, 30, 40]),
        "next": np.array([0.0, 0.5, 0.8, 0.8, 0.8]),
        "tf_loss": np.array([0.4, 0.4, 0.4, 0.25, 0.2]),
        "gd_plus_plus_model_cos": np.array([0.1, 0.1, 0.1, 0.99, 0.99]),
        "gd_model_cos": np.array([0.2, 0.2, 0.2, 0.95, 1.0]),
    }
    monkeypatch.setattr(over_training, "moments", lambda run: moments)
    assert over_training.copies_before_it_learns(Path("run")) == pytest.approx(10 / 30)
    assert over_training.nearer_to_gd_plus_plus(Path("run")) == 0.5
    moments["tf_loss"] = np.full(5, 0.4)
    assert over_training.nearer_to_gd_plus_plus(Path("run")) == 0


def test_the_depth_curves_measures_read_its_summary(tmp_path: Path) -> None:
    layerwise = {
        "layers": 3,
        "trimmed_mean": [12.0, 6.0, 9.0],
        "ratio_to_gd": [1.01, 0.9, 1.05],
        "references": {"ridge": {"mse": [3.0, 3.0, 3.0]}, "zero": {"mse": [10.0, 10.0, 10.0]}},
    }
    (tmp_path / layout.SUMMARY).write_text(json.dumps({"layerwise": layerwise}))
    assert depth.furthest_from_gd(tmp_path) == 0.9
    assert (depth.after(1)(tmp_path), depth.after(2)(tmp_path), depth.after(-1)(tmp_path)) == (12, 6, 9)
    assert depth.reference("ridge", 1)(tmp_path) == 3
    assert depth.last_over("ridge")(tmp_path) == 3
    assert depth.first_over_zero(tmp_path) == 1.2
    assert depth.largest_step_up(tmp_path) == 1.5


def test_a_model_of_sines_is_no_distance_from_itself(sine_run: Path) -> None:
    assert sines.loss(sine_run) == pytest.approx(read(sine_run / layout.SUMMARY)["headline"]["loss"], rel=1e-5)
    assert sines.functions_apart("before")(sine_run, sine_run) == 0
    assert sines.beside_control("loss_ratio")(sine_run, sine_run) == 1


def test_the_best_step_is_the_closed_form() -> None:
    assert algorithms.best_step(0) == pytest.approx(8.3333 / 13.75, rel=0.02)  # sampled: 65 536 tasks


def test_a_point_beyond_the_limit_is_left_out() -> None:
    found = [{("", "a"): ([1, 2], [1.0, value])} for value in (1.0, 101.0)]
    assert [row["x"] for row in rows_of(found, 100.0)] == [1]
    assert [row["x"] for row in rows_of(found)] == [1, 2]
    assert rows_of([{("", "a"): ([1], [np.nan])}], 100.0) == []


def test_heat_maps_have_the_constructions_products_beside_the_trained_ones(lsa1_run: Path) -> None:
    rows = heat_maps([lsa1_run])
    width = DIM + 1
    assert len(rows) == 2 * 2 * width**2
    built = {(row["matrix"], row["i"], row["j"]): row["value"] for row in rows if row["row"] == "construction"}
    eta = float(trained.subject_of(lsa1_run).gd.step_size)
    assert built[0, 0, 0] == 1
    assert built[1, DIM, DIM] == pytest.approx(-eta)
    own = [
        row["value"] for row in rows if row["row"] == "trained" and row["matrix"] == 0 and row["i"] == row["j"] < DIM
    ]
    assert np.mean(own) == pytest.approx(1)
