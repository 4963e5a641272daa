"""A run on functions, from its command line to its directory: complete, true, resumable to the byte, and refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.function_shifts import other_classes
from icl_lab.families.functions import outputs
from icl_lab.families.functions.classes.boolean import Majority
from icl_lab.families.functions.classes.linear import Linear
from icl_lab.families.functions.classes.mixtures import RegressionOrClassification
from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_metrics
from tests.doors import Ran, Refused, ran, refused
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, Workshop, copied, results

__all__ = ["ran", "refused"]

RUNNER, DIM, PAIRS, PROMPTS = "runners.run_functions", 3, 7, 300
SETTINGS = {
    **{"batch_size": 16, "d_model": 8, "mlp_width": 16, "num_layers": 1, "eval_tasks": 32, "test_tasks": PROMPTS},
    **{"eval_every": 15, "snapshots": "true", "fitted_prompts": 4},
}
SIZES = [*f"--steps 30 --dim {DIM}".split(), *(f"--config.{name}={value}" for name, value in SETTINGS.items())]
POOL = ["--function", "noisy_linear", "--num_functions", "4", "--start_points", "0"]
GROWING = "--start_dims 1 --dims_every 10 --start_points 2 --points_every 8".split()
QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
FILES = {
    *("config.json", "meta.json", "metrics.jsonl", "metrics_summary.json", "params.safetensors", "params.pkl", ".lock"),
    *("manifest.jsonl", "snapshots.safetensors", "figs/loss.png", "checkpoints/step_00000030.safetensors"),
    *("analysis/analysis_batch.npz", "analysis/predictions.npz", "analysis/functions.csv"),
}


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


@pytest.fixture(scope="module")
def run(workshop: Workshop) -> Path:
    """A finished run on a pool of four noisy linear functions. Read only."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XLA_FLAGS", QUICK["XLA_FLAGS"])
        return workshop.finished("functions", RUNNER, sizes=[*SIZES, *POOL])


def test_every_file_is_there_and_no_other(run: Path) -> None:
    assert {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} == FILES
    config = rundir.read_config(run)
    assert (config.function.kind, config.data.num_functions, config.data.num_pairs) == ("noisy_linear", 4, PAIRS)


def test_the_last_record_is_what_numpy_makes_of_the_stored_files(run: Path) -> None:
    """Squared errors of observed labels over D, and half their mean, which training minimises; float32, hence 1e-4."""
    with np.load(run / layout.ANALYSIS_BATCH) as batch, np.load(run / layout.PREDICTIONS) as said:
        squared = (said["id_tf"].astype(float) - batch["y_query"]) ** 2
        np.testing.assert_array_equal(batch["y_query"], batch["y"])
        np.testing.assert_array_equal(batch["x_query"], batch["x"])
    record = read_metrics(run)[-1]
    assert record["eval_loss"] == pytest.approx(squared.mean() / 2, rel=1e-4)
    assert record["eval_id_loss"] == pytest.approx(squared.mean() / DIM, rel=1e-4)
    np.testing.assert_allclose(record["eval_id_errors"], squared.mean(axis=0) / DIM, rtol=1e-4)
    assert len(record["eval_ood_errors"]) == PAIRS


def test_the_summary_has_the_losses_that_theory_gives(run: Path) -> None:
    """Before any pair Bayes loses 1 + noise variance / D on fresh functions; within 5 standard errors.

    The pool's posterior is the best on functions of the pool, Bayes on fresh ones.
    """
    headline = read(run / layout.SUMMARY)["headline"]
    first, error = headline["ood_bayes_losses"][0], headline["ood_bayes_losses_se"][0]
    assert first == pytest.approx(1 + 0.25 / DIM, abs=5 * error)
    assert headline["id_reference"] == "pool"
    assert headline["ood_reference"] == "bayes"
    for prefix, best in (("id", "pool"), ("ood", "bayes")):
        others = {"tf", "prior", "bayes", "pool", "least_squares", "averaging", "nearest_neighbours"} - {best}
        assert all(headline[f"{prefix}_{best}_loss"] < headline[f"{prefix}_{name}_loss"] for name in others)
        prior, model, reference = (headline[f"{prefix}_{name}_loss"] for name in ("prior", "tf", best))
        assert headline[f"{prefix}_scale"] == pytest.approx((prior - model) / (prior - reference), rel=1e-9)
    rows = pd.read_csv(run / layout.FUNCTIONS)
    of_model = rows[(rows["set"] == "id") & (rows["predictor"] == "tf")]
    np.testing.assert_allclose(of_model["loss"], headline["id_tf_losses"], rtol=1e-9)
    np.testing.assert_allclose(of_model["scale"], headline["id_scales"], rtol=1e-9)
    assert set(of_model["prompts"]) == {PROMPTS}
    above = np.subtract(headline["ood_tf_losses"], headline["ood_bayes_losses"])
    np.testing.assert_allclose(headline["ood_bayes_excesses"], above, rtol=1e-9)  # both have all prompts
    errors = np.array([headline[f"ood_{name}_se"] for name in ("bayes_excesses", "tf_losses", "bayes_losses")])
    assert (errors[0] <= errors[1] + errors[2]).all()  # of a difference, at most the sum of both
    assert "id_tf_excesses" not in headline
    assert of_model["excess"].isna().all()


def test_the_command_prints_meaning_first_and_a_table_by_position(run: Path, workshop: Workshop) -> None:
    lines, headline = workshop.said(run.name).splitlines(), read(run / layout.SUMMARY)["headline"]
    meaning = next(line for line in lines if line.startswith("a decoder"))
    gains = f"gains {headline['id_scale']:.1%} of what the pool's posterior (exact) gains on prompts as in training"
    assert meaning.startswith(
        f"a decoder of one layer on functions of the class noisy_linear, pool of four functions, seed 0: {gains}"
    )
    row = next(line for line in lines if line.strip().startswith("Bayes (exact)"))
    cell = f"{headline['id_bayes_losses'][0]:.3f} ±{headline['id_bayes_losses_se'][0]:.3f}"
    assert row.split("(exact)")[1].strip().startswith(f"{cell} ")
    assert any(line.strip().startswith("gain / gain of the pool's posterior") for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("grows", [False, True])
def test_a_killed_run_ends_with_the_bytes_of_one_that_was_not(
    grows: bool, run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    """On a pool, and with prompts that grow while it is killed."""
    line = [RUNNER, *SIZES, *(GROWING if grows else POOL), *EVERY_CHUNK]
    whole = run
    if grows:
        whole = tmp_path / "whole"
        done = workshop.run(*line, "--out", whole, **QUICK)
        assert done.returncode == 0, done.stderr
    line += ["--out", tmp_path / "run"]
    for place in ("step_00000015.safetensors", "predictions.npz"):
        killed = workshop.run(*line, INTERRUPT=f"before:{place}:SIGKILL", PYTHONPATH=INTERRUPTED, **QUICK)
        assert killed.returncode == -9, f"{place}: {killed.stderr}"
    done = workshop.run(*line, **QUICK)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "run") == results(whole)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--function lineal", "argument --function: invalid choice: 'lineal'"),
        ("--depth 3", "depth is a field of decision_tree, but function is linear"),
        ("--function sparse_linear --sparsity 9", "sparsity is 9; it must be at most dim, 3"),
        (
            "--function parities --num_functions 4",
            "num_functions is 4, but there are 3 functions of the class parities",
        ),
        ("--function parities --config.loss=half_squared_error", "loss is 'half_squared_error', which does not fit"),
        ("--start_dims 1 --dims_every 100", "the curriculum reaches dim 3 after 200 steps, and training ends after 30"),
        ("--function decision_tree --depth 0", "depth is 0; it must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_sentence(words: str, sentence: str, refused: Refused) -> None:
    assert refused(RUNNER, *SIZES, *words.split(), "--out", "run").startswith(f"error: {sentence}")


# Shifts


def test_all_shifts_are_one_command_with_a_row_for_each_position_and_predictor(
    run: Path, tmp_path: Path, ran: Ran
) -> None:
    """The model that has hardly trained predicts next to 0, so that nothing can be lost by permuting labels."""
    copy = copied(run, tmp_path / "run")
    words = "--none --x_twice --y_twice --permuted_labels --random_quadrants --noisy_labels".split()
    done = ran("analysis.function_shifts", "--run", copy, *words, "--prompts", 200)
    assert done.status == 0, done.err
    rows = pd.read_csv(copy / layout.FUNCTION_SHIFTS)
    of_model = rows[rows["predictor"] == "tf"]
    own = of_model
    assert {*own["function"]} == {"noisy_linear"}
    assert {*own["shift"]} == {word.removeprefix("--") for word in words}
    assert {*own[own["shift"] == "none"]["position"]} == {*range(PAIRS)}
    by_shift = rows[(rows["predictor"] == "bayes") & (rows["position"] == PAIRS - 1)].set_index("shift")
    loss = by_shift["loss"]
    assert loss["permuted_labels"] > 2 * loss["none"]
    assert own["best_baseline"].notna().all()
    excess = own["loss"] - own.apply(lambda row: _loss(rows, row), axis=1)
    np.testing.assert_allclose(own["excess"], excess, atol=1e-9)
    broken = own[own["breaks"].astype(str) == "True"]
    assert (broken["excess"] - 1.96 * broken["excess_se"] > 0).all()


def test_other_classes_are_those_with_labels_of_the_same_kind(run: Path) -> None:
    found = {function.kind for function in other_classes(rundir.read_config(run))}
    assert found >= {"linear", "decision_tree", "relu_network", "two_noise_levels"}
    assert not found & {"noisy_linear", "parities", "logistic_regression", "prototypes", "regression_or_classification"}


def _loss(rows: pd.DataFrame, of: pd.Series) -> float:
    """The loss of the baseline that a row of the model is compared with."""
    same = (rows["shift"] == of["shift"]) & (rows["position"] == of["position"])
    return float(rows[same & (rows["predictor"] == of["best_baseline"])]["loss"].iloc[0])


def test_longer_prompts_than_learned_positions_are_refused(run: Path, ran: Ran) -> None:
    done = ran("analysis.function_shifts", "--run", run, "--longer_prompts")
    assert done.status == 2
    assert done.err.startswith("error: positions is 'learned', so prompts are at most 7 pairs long, as in training")


# The nearest algorithm


@pytest.fixture(scope="module")
def other(workshop: Workshop) -> Path:
    """The run with another initialisation. Read only."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XLA_FLAGS", QUICK["XLA_FLAGS"])
        return workshop.finished("functions_again", RUNNER, "--init_seed", 1, sizes=[*SIZES, *POOL])


def nearest_of(run: Path, other: Path, ran: Ran) -> pd.DataFrame:
    done = ran("analysis.nearest_algorithm", "--run", run, "--other", other, "--prompts", 200)
    assert done.status == 0, done.err
    assert done.out.startswith("squared difference / variance between predictions on 200 test prompts at step 30")
    return pd.read_csv(run / layout.NEAREST_ALGORITHM, keep_default_na=False)


def test_a_model_that_has_learnt_nothing_is_nearest_to_the_best_constant(
    run: Path, other: Path, tmp_path: Path, ran: Ran
) -> None:
    """At each record there is a row for each position. Without snapshots there is the end alone, with the same rows."""
    copy, theirs = copied(run, tmp_path / "run"), copied(other, tmp_path / "other")
    rows = nearest_of(copy, theirs, ran)
    assert [*zip(rows["step"], rows["position"], strict=True)] == [(s, k) for s in (0, 15, 30) for k in range(PAIRS)]
    assert {*rows[(rows["step"] == 0) & (rows["position"] > 0)]["named"]} == {"prior"}
    assert (copy / layout.NEAREST_ALGORITHM_FIGURE).exists()
    last = rows[rows["step"] == 30].reset_index(drop=True)
    (theirs / layout.SNAPSHOTS).unlink()  # it is as at its end at each step
    again = nearest_of(copy, theirs, ran)
    pd.testing.assert_frame_equal(again[again["step"] == 30].reset_index(drop=True), last)
    assert (again["between_seeds"][:PAIRS] != rows["between_seeds"][:PAIRS]).all()
    (copy / layout.SNAPSHOTS).unlink()
    pd.testing.assert_frame_equal(nearest_of(copy, theirs, ran), last)


def test_another_run_to_compare_with_is_of_the_same_settings_and_another_initialisation(
    run: Path, other: Path, root: Path, tmp_path: Path, refused: Refused
) -> None:
    copy, changed = copied(run, tmp_path / "run"), copied(other, tmp_path / "changed")
    config = read(changed / "config.json")
    (changed / "config.json").write_text(json.dumps(config | {"training": config["training"] | {"lr": 0.5}}))
    regression = root / "demos_ref/lsa1"
    for theirs, sentence in (
        (copy, f"{copy} begins with the parameters that {copy} begins with; it must have another initialisation"),
        (changed, f"{changed} differs from {copy} in training.lr; it must be a run of the same settings with another"),
        (regression, f"{regression} is a run of the family regression, not of functions"),
        (tmp_path / "none", f"{tmp_path / 'none'}"),
    ):
        assert refused("analysis.nearest_algorithm", "--run", copy, "--other", theirs).startswith(f"error: {sentence}")
    (copy / layout.SNAPSHOTS).write_bytes(b"")
    said = refused("analysis.nearest_algorithm", "--run", copy, "--other", other)
    assert str(copy / layout.SNAPSHOTS) in said
    said = refused("analysis.nearest_algorithm", "--run", copied(regression, tmp_path / "lsa1"), "--other", copy)
    assert "is a run of the family regression, which has no nearest_algorithm; it has" in said


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (Linear(), "squared error / variance"),
        (Majority(), "log loss in nats"),
        (RegressionOrClassification(), "squared error / variance or log loss in nats"),
    ],
)
def test_losses_are_said_to_be_what_they_are(function: Any, said: str) -> None:
    assert outputs.unit(FunctionsConfig(function=function)) == said
