"""What claims measure, on runs whose answers are known: from their own files, or made by hand."""

import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from icl_lab.families.task import shared_of, task_key, task_of
from icl_lab.lab.configs.identity import required_of
from icl_lab.src.data import sample_batch
from icl_lab.src.prng import Purpose, key
from icl_lab.store import layout
from icl_lab.store.atomic import json_text
from icl_lab.studies.curve_rows import curve_rows
from icl_lab.studies.reproduction.curves import heat_maps
from icl_lab.studies.reproduction.measures import algorithms, depth, over_training, rolled, sines, trained
from icl_lab.studies.study import all_studies, load
from tests.runners.tiny import DIM

RUNS = {name: runs for study in all_studies() for name, runs in study.runs.items()}
OF_CLAIMS = [study.name for study in all_studies() if study.claims]


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_training_of_the_ledger_is_of_a_model_that_can_be_made(name: str) -> None:
    """Its parameters have shapes, and its batches; no seed of it is left out. Those on text need a folder."""
    if not RUNS[name].is_possible:
        pytest.skip(f"{name} needs {RUNS[name].needs}")
    found = RUNS[name].cells
    assert tuple(dict.fromkeys(cell.config.init_seed for cell in found)) == RUNS[name].seeds
    config = found[0].config
    experiment, shared = task_of(config), shared_of(config)
    required = [task_of(one).make_model(one, shared_of(one)).init(key(0)) for one in required_of(config)]
    shared |= experiment.frozen(config, required) if required else {}  # of networks that are not trained
    assert jax.tree.leaves(jax.eval_shape(experiment.make_model(config, shared).init, key(0)))
    batched = experiment.batched(config)
    batch = jax.eval_shape(lambda: experiment.batches(config)(key(0), np.int32(0), batched, shared))
    assert jax.tree.leaves(batch)[0].shape[0] == config.training.batch_size


@pytest.mark.parametrize("name", OF_CLAIMS)
def test_figures_are_of_runs_of_the_study(name: str) -> None:
    study = load(name)
    shown = {name for figure in study.figures for name in figure.run_names}
    assert shown <= set(study.runs)
    assert len({figure.name for figure in study.figures}) == len(study.figures)
    quick = {name for figure in study.figures if figure.profile == "quick" for name in figure.run_names}
    assert bool(quick) == any(c.profile == "quick" and c.runs for c in study.claims)
    assert not quick or quick & {c.runs for c in study.claims if c.profile == "quick"}
    main = {
        "reproduction": {
            "one_layer",
            "two_layers",
            "five_layers",
            "ten_layers",
            "interleaved",
            "sine",
            "depth_lsa",
        },
        "order_noise": {"twolayer_easy2hard", "twolayer_random"},
        "task_diversity": {"pools", "pools_short", "pools_constant", "twin", "laplace", "decay", "wide"},
        "stages": {
            "narrow_two_tasks",
            "two_unit_tasks",
            "short_schedule",
            "schedules",
            "pools_of_tasks",
            "linear_layers",
        },
        "languages": {"sound", "hash", "published", "autoencoder", "softmax", "random_linear", "random_softmax"},
        "language_model": {"markov", "markov_one_layer", "no_start", "pools_of_chains", "triggers", "text"},
        "functions": {"linear", "noisy_linear", "conjunctions", "quick"},
        "solutions": set(),  # closed forms, and trainings on the population loss
        "theory": {"reciprocal", "noisy", "condition_100", "exact_100_2", "drawn_100_2"},
    }
    assert main[name] <= shown


def test_losses_and_ratios_are_those_of_the_runs_summary(lsa1_run: Path) -> None:
    headline = read(lsa1_run / layout.SUMMARY)["headline"]
    assert trained.loss(lsa1_run) == pytest.approx(headline["tf_loss"], rel=1e-5)
    assert trained.loss_of("gd")(lsa1_run) == pytest.approx(headline["gd_loss"], rel=1e-5)
    assert trained.over("gd")(lsa1_run) == pytest.approx(headline["tf_loss"] / headline["gd_loss"], rel=1e-5)
    assert trained.loss_over_that_of(lsa1_run, lsa1_run) == 1


def test_comparisons_are_those_of_the_runs_alignment(lsa1_run: Path, twolayer_run: Path) -> None:
    aligned = read(lsa1_run / layout.ALIGNMENT)
    for name in ("model_cos", "preds_diff", "model_diff"):
        assert trained.against("gd", name)(lsa1_run) == pytest.approx(aligned[name], rel=1e-4)
    copied = read(twolayer_run / layout.COPYING)["averaged_before_norm"]
    assert trained.sensitivity_to("own")(twolayer_run) == pytest.approx(copied["own"], rel=1e-4)


def test_a_shift_of_nothing_changes_nothing(lsa1_run: Path) -> None:
    ratio = trained.ratio_under("input_range", 1.0)(lsa1_run)
    assert ratio == pytest.approx(trained.over("gd")(lsa1_run), rel=1e-5)
    furthest = trained.furthest_under("input_range", (1.0,))(lsa1_run)
    assert furthest == pytest.approx(abs(ratio - 1), rel=1e-4)


def test_a_median_under_a_shift_is_not_carried_by_a_few_tasks(lsa1_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {"tf": np.array([[1.0, 2.0, 3.0, 4.0, 1e6]]), "other": np.array([[0.5, 0.5, 1.5, 2.0, 9.0]])}
    monkeypatch.setattr(trained.shifts, "shifted_losses", lambda *given: losses)
    assert trained.median_ratio_under("distractors", 2, "gd")(lsa1_run) == 2.0
    assert trained.ratio_under("distractors", 2, "gd")(lsa1_run) > 1e4


def test_losses_of_contexts_are_means_over_teachers_and_queries(lsa1_run: Path) -> None:
    """Of gradient descent they have a closed form, v/2 |cS - I|^2; the mean of all is the headline's."""
    loaded = trained.compared_run(lsa1_run)
    data = loaded.config.data
    losses = trained.context_losses({"gd": loaded.gd.predict}, loaded.config)["gd"]
    assert losses.shape == (trained.CONTEXTS,)
    key = jax.random.split(task_key(loaded.config, Purpose.TEST_SET))[0]
    x = np.asarray(jax.jit(sample_batch, static_argnums=(1, 2))(key, data, trained.CONTEXTS).x, np.float64)
    step = float(loaded.gd.step_size) * np.einsum("bnd,bne->bde", x, x) - np.eye(DIM)
    exact = 0.5 * data.input_variance * (step**2).sum(axis=(1, 2))
    assert losses.mean() == pytest.approx(exact.mean(), rel=0.03)  # 64 draws each
    assert np.median(losses) == pytest.approx(np.median(exact), rel=0.05)
    assert np.corrcoef(losses, exact)[0, 1] > 0.6


def test_of_what_did_not_learn_nothing_is_said(lsa1_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny run has hardly trained; one that has keeps its value."""
    monkeypatch.setattr(trained, "loss", lambda run: 0.95 * trained.zero_loss(run))
    assert trained.below_zero(lsa1_run) == 0
    monkeypatch.setattr(trained, "loss", lambda run: 0.5 * trained.zero_loss(run))
    assert trained.below_zero(lsa1_run) == 1


@pytest.mark.parametrize(("signs", "expected"), [((1, -1), 0.0), ((1, 1), math.inf)])
def test_heads_that_cancel_have_opposite_signs(
    signs: tuple[int, int], expected: float, lsa1_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two heads of one offset beside the identity: only with opposite signs does it go."""
    offset, width = np.ones((DIM, DIM)), DIM + 1
    kq, pv = np.zeros((1, 2, width, width)), np.zeros((1, 2, width, width))
    kq[0, :, :DIM, :DIM] = [offset + np.eye(DIM), offset]
    pv[0, :, DIM, DIM] = signs
    monkeypatch.setattr(trained, "products", lambda config, params: (kq, pv))
    assert trained.cancelling_heads(lsa1_run) == expected
    assert trained.diagonal_of_heads(lsa1_run) == (0 if signs == (1, -1) else pytest.approx(2 / 3))


def test_one_application_undamped_is_the_model_itself(lsa1_run: Path) -> None:
    """So its mean is the headline loss; the lowest mean of any number of them is no higher."""
    losses, _ = rolled.rolled_out(lsa1_run, 1.0)["tf"]
    assert losses.shape[0] == rolled.ROLLED
    assert losses[0].mean() == pytest.approx(trained.loss(lsa1_run), rel=1e-4)
    assert rolled.trimmed_means(lsa1_run, 1.0)[0] == pytest.approx(losses[0].mean())  # of 200 tasks no thousandth goes
    assert rolled.lowest_mean(1.0)(lsa1_run) <= losses[0].mean()


def metrics(run: Path, losses: list[float]) -> Path:
    run.mkdir()
    records = [{"step": 10 * i, "train_loss": 1.0, "eval_loss": loss} for i, loss in enumerate(losses)]
    lines = [json_text(record, indent=None) for record in records]
    (run / layout.METRICS).write_text("\n".join(lines) + "\n")
    return run


def test_the_end_of_a_plateau_and_what_a_pool_does(tmp_path: Path) -> None:
    run = metrics(tmp_path / "falls", [0.42, 0.41, 0.25, 0.4, 0.21])
    assert over_training.steps_until_learnt(run) == 20
    assert over_training.peak(run) == 0.4  # not the first ones: they are of no training
    assert over_training.fallen_by(40)(run) == 0.21
    assert over_training.fallen_by(20)(run) == math.inf  # nothing has fallen yet
    assert over_training.overfits(run) == 0.21
    stays = metrics(tmp_path / "stays", [0.42, 0.41])
    rises = metrics(tmp_path / "rises", [0.42, 0.2, 0.24, 0.24])
    assert over_training.steps_until_learnt(stays) == over_training.peak(stays) == math.inf
    assert over_training.fallen_by(30)(rises) == math.inf
    diverges = metrics(tmp_path / "diverges", [0.42, 0.2, math.inf])
    assert over_training.peak(diverges) == math.inf


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """A training that starts above its plateau, copies at step 20 and learns at step 30."""
    columns = {
        "step": np.array([0, 10, 20, 30, 40]),
        "next": np.array([0.0, 0.1, 0.6, 0.8, 0.8]),
        "other": np.full(5, 0.05),
        "tf_loss": np.array([0.7, 0.4, 0.4, 0.25, 0.2]),
    }
    monkeypatch.setattr(over_training, "at_snapshots", lambda run: columns)
    monkeypatch.setattr(over_training, "zero_loss", lambda run: 0.4)
    return columns


def test_copying_before_learning_is_a_ratio_below_one(snapshots: dict[str, np.ndarray]) -> None:
    """A tenth of .8 is passed at step 10; a tenth of the way from .4 to .2 at step 30, whatever lay above .4."""
    assert over_training.onset_of_copying(Path("run")) == pytest.approx(10 / 30)
    snapshots["next"] = np.array([0.0, 0.0, 0.0, 0.0, 0.8])
    assert over_training.onset_of_copying(Path("run")) == pytest.approx(40 / 30)


def test_what_never_copies_or_never_learns_has_no_order(snapshots: dict[str, np.ndarray]) -> None:
    snapshots["next"] = np.full(5, 0.06)
    assert over_training.onset_of_copying(Path("run")) == math.inf
    snapshots["tf_loss"] = np.full(5, 0.4)
    assert math.isnan(over_training.onset_of_copying(Path("run")))


def summarised(run: Path, losses: list[float | None], **more: Any) -> Path:
    run.mkdir()
    layerwise = {
        "layers": len(losses),
        "trimmed_mean": losses,
        "ratio_to_gd": [1.01, 0.9, 1.05],
        "unstable_share": [0.0, 0.0, 0.002],
        "gd_steps_to_reach": [1, 2, 12],
        "references": {
            "ridge": {"mse": [3.5, 3.5, 3.5], "trimmed_mean": [3.0, 3.0, 3.0]},
            "zero": {"mse": [10.0], "trimmed_mean": [10.0]},
        },
    }
    (run / layout.SUMMARY).write_text(json.dumps({"layerwise": layerwise | more}))
    return run


def test_the_depth_curves_measures_read_its_summary(tmp_path: Path) -> None:
    run = summarised(tmp_path / "run", [12.0, 4.0, 6.0])
    assert depth.furthest_from_gd(run) == pytest.approx(0.1)
    assert (depth.after(1)(run), depth.after(2)(run), depth.after(-1)(run)) == (12, 4, 6)
    assert depth.last_over("ridge")(run) == 2
    assert depth.first_over_zero(run) == 1.2
    assert depth.largest_step_up(run) == 1.5
    assert depth.steps_a_layer(run) == 4
    assert depth.unstable(run) == 0.002


def test_a_stack_that_diverged_has_no_loss_and_one_that_did_not_train_is_measured_alike(tmp_path: Path) -> None:
    diverged = summarised(tmp_path / "diverged", [12.0, 4.0, None], ratio_to_gd=[1.0, 1.01, None])
    assert depth.furthest_from_gd(diverged) == depth.after(-1)(diverged) == math.inf
    untrained = summarised(tmp_path / "untrained", [10.0, 10.0, 10.0], gd_steps_to_reach=[1, 1, 1])
    assert (depth.first_over_zero(untrained), depth.largest_step_up(untrained)) == (1, 1)
    assert depth.has_learnt(untrained) == 0
    assert depth.steps_a_layer(untrained) == pytest.approx(1 / 3)


def test_a_model_of_sines_is_no_distance_from_itself(sine_run: Path) -> None:
    assert sines.loss(sine_run) == pytest.approx(read(sine_run / layout.SUMMARY)["headline"]["loss"], rel=1e-5)
    assert sines.functions_apart("before")(sine_run, sine_run) == 0
    assert sines.beside_control("loss_ratio")(sine_run, sine_run) == 1


def test_the_best_step_is_the_closed_form() -> None:
    assert algorithms.best_step(0) == pytest.approx(8.3333 / 13.75, rel=0.02)  # sampled: 65 536 tasks


def test_a_point_beyond_the_limit_has_no_mean_and_is_counted() -> None:
    found = [(seed, {("", "a"): ([1, 2], [1.0, value])}) for seed, value in enumerate((1.0, 101.0))]
    assert [(row["x"], row["mean"], row["diverged"]) for row in curve_rows(found, 100.0)] == [(1, 1, 0), (2, None, 1)]
    assert [(row["x"], row["mean"]) for row in curve_rows(found)] == [(1, 1), (2, 51)]
    (row,) = curve_rows([(0, {("", "a"): ([1], [np.nan])})], 100.0)
    assert (row["mean"], row["seeds"], row["diverged"]) == (None, 1, 1)


def test_heat_maps_have_the_constructions_products_beside_the_trained_ones(lsa1_run: Path) -> None:
    rows = heat_maps([lsa1_run])
    width = DIM + 1
    assert len(rows) == 2 * 2 * width**2
    built = {(row["matrix"], row["i"], row["j"]): row["value"] for row in rows if row["row"] == "construction"}
    eta = float(trained.compared_run(lsa1_run).gd.step_size)
    assert built[0, 0, 0] == 1
    assert built[1, DIM, DIM] == pytest.approx(-eta)
    own = [
        row["value"] for row in rows if row["row"] == "trained" and row["matrix"] == 0 and row["i"] == row["j"] < DIM
    ]
    assert np.mean(own) == pytest.approx(1)
