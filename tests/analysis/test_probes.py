"""Linear probes against ridge regression written out in NumPy, a constructed layer, and targets of known scores."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.probes import scores as probe_scores
from icl_lab.analysis.probes.features import features_at, layers_below
from icl_lab.analysis.probes.question import Question
from icl_lab.analysis.probes.scores import FOLDS, PENALTIES, SEED, fitted_on, out_of_fold, score
from icl_lab.analysis.probes.table import probe
from icl_lab.analysis.probes.targets import NO_PAIRS, NO_QUERY, Contexts, Row, Target, rows_of
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import gd_weights
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import evaluation_context, make_model
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig, ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.store import layout
from tests.runners.tiny import TASKS, Workshop, copied

DIM, PAIRS, LAYERS, CONTEXTS, STEP = 3, 5, 2, 60, 0.2
CONFIG = RegressionConfig(data=DataConfig(dim=DIM, num_pairs=PAIRS), model=ModelConfig(num_layers=LAYERS))
CONFIG = replace(CONFIG, eval_tasks=CONTEXTS, step_size_tasks=64)


def batch_of(contexts: int = CONTEXTS, seed: int = 0) -> Batch:
    """Noiseless contexts in float64."""
    draw = np.random.default_rng(seed)
    x, x_query, w = (draw.normal(size=size) for size in ((contexts, PAIRS, DIM), (contexts, DIM), (contexts, DIM)))
    parts = (x, np.einsum("bnd,bd->bn", x, w), x_query, np.einsum("bd,bd->b", x_query, w), w)
    return Batch(*parts)  # type: ignore[arg-type]  # NumPy's arrays, where the type says JAX's


# --- scores ---


def ridge(features: np.ndarray, target: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Ridge of centred features, with the penalty of least leave-one-out error: residuals over 1 - the hat's diagonal.

    The hat matrix is that of the slope and of the mean. Not centred, features would be fitted by both.
    """
    mean, x, y = features.mean(axis=0), features - features.mean(axis=0), target - target.mean()

    def solved(penalty: float, sides: np.ndarray) -> np.ndarray:
        return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ sides)

    def error(penalty: float) -> float:
        hat = x @ solved(penalty, np.eye(len(x))) + 1 / len(x)
        return float(np.mean(((y - hat @ y) / (1 - np.diagonal(hat))) ** 2))

    best = min(PENALTIES, key=error)
    return np.asarray(target.mean() + (left - mean) @ solved(best, y))


def test_predictions_are_those_of_ridge_regression_on_standardised_features() -> None:
    draw = np.random.default_rng(1)
    features = draw.normal(size=(30, 4)) * [1.0, 10.0, 0.1, 0.0] + 3
    target = features[:, :1] + 0.5 * draw.normal(size=(30, 1))
    expected = np.zeros((30, 1))
    for fitted, left in KFold(FOLDS, shuffle=True, random_state=SEED).split(features):
        mean, deviation = features[fitted].mean(axis=0), features[fitted].std(axis=0)
        scaled = (features - mean) / np.where(deviation > 0, deviation, 1)
        expected[left, 0] = ridge(scaled[fitted], target[fitted, 0], scaled[left])
    said = out_of_fold(features, target)
    np.testing.assert_allclose(said, expected, rtol=1e-8)
    share = 1 - np.sum((expected - target) ** 2) / np.sum((target - target.mean()) ** 2)
    found = score(said, target)
    assert found.score == pytest.approx(share, rel=1e-8)
    assert found.low < share < found.high


def test_r2_is_the_mean_over_the_coordinates_that_vary() -> None:
    target = np.stack([np.arange(10.0), np.full(10, 3.0), np.arange(10.0)], axis=1)
    said = np.stack([np.arange(10.0), np.zeros(10), np.full(10, 4.5)], axis=1)
    assert score(said, target).score == pytest.approx(0.5)  # 1 and, of the mean, 0


def test_the_area_is_scikit_learns_ties_and_resamples_too() -> None:
    draw = np.random.default_rng(2)
    flags, said = draw.random(200) < 0.3, draw.integers(0, 5, size=200) + 0.0
    times = draw.multinomial(200, np.full(200, 1 / 200), 3)
    found = probe_scores._area(said, flags, times)
    assert found == pytest.approx([roc_auc_score(flags, said, sample_weight=weight) for weight in times])


def test_flags_that_a_plane_parts_are_found_and_random_ones_are_not() -> None:
    draw = np.random.default_rng(3)
    features = draw.normal(size=(300, 4))
    parted = np.stack([features[:, 0] > 0.3, draw.random(300) < 0.5], axis=1)
    said = out_of_fold(features, parted)
    assert score(said[:, :1], parted[:, :1]).score > 0.99
    low, high = score(said[:, 1:], parted[:, 1:])[1:]
    assert low < 0.5 < high


# --- targets ---


def test_weights_are_those_of_least_squares_and_gradient_descent(x64: None) -> None:
    batch = batch_of(8)
    contexts, row = Contexts(batch, STEP), Row(2, None, None)  # two pairs of three dimensions: of minimum norm
    few = batch._replace(x=batch.x[:, :2], y=batch.y[:, :2])
    found = contexts.target(Target("least_squares"), row)
    by_hand = [np.linalg.lstsq(x, y, rcond=None)[0] for x, y in zip(few.x, few.y, strict=True)]
    np.testing.assert_allclose(np.asarray(found), by_hand, rtol=1e-9)
    for steps in (1, 3):
        expected = gd_weights(jax.tree.map(np.asarray, few), STEP, steps)
        np.testing.assert_allclose(np.asarray(contexts.target(Target("gd", steps), row)), expected, rtol=1e-12)
    gradient = contexts.target(Target("gradient"), row)
    np.testing.assert_allclose(np.asarray(contexts.target(Target("gd", 1), row)), STEP * np.asarray(gradient))


def test_rows_of_stacks_see_all_pairs_and_those_of_decoders_the_pairs_so_far() -> None:
    batch = batch_of(4)
    assert rows_of(batch, PAIRS + 1) == [*(Row(PAIRS, pair) for pair in range(PAIRS)), Row(PAIRS, None, 0)]
    assert rows_of(batch, 2 * PAIRS + 1)[2:5] == [Row(PAIRS, 1), Row(PAIRS, 1), Row(PAIRS, 2)]
    decoder = batch._replace(x_query=batch.x, y_query=batch.y)
    assert rows_of(decoder, 2 * PAIRS)[:3] == [Row(0, None, 0), Row(1, 0), Row(1, None, 1)]
    contexts = Contexts(decoder, STEP)
    assert contexts.target(Target("least_squares"), Row(0, None, 0)) == NO_PAIRS
    assert contexts.target(Target("y_query"), Row(1, 0)) == NO_QUERY
    np.testing.assert_allclose(contexts.target(Target("y_query"), Row(2, None, 2)), np.asarray(batch.y)[:, 2:3])
    seen = contexts.tokens(Row(1, None, 1))
    np.testing.assert_allclose(seen, np.c_[np.asarray(batch.x)[:, 0], np.asarray(batch.y)[:, 0], batch.x[:, 1]])


def test_layers_below_an_activation() -> None:
    names = ("embed", "blocks.0.resid_pre", "blocks.0.attn_out", "blocks.1.resid_post", "prediction")
    assert [layers_below(at, 2) for at in names] == [0, 0, 1, 2, 2]


# --- a constructed layer ---


def constructed() -> LoadedRun:
    """A run whose layers are steps of gradient descent."""
    params = gd_params(CONFIG.architecture, STEP)
    return LoadedRun(Path("run"), CONFIG, make_model(CONFIG), params, batch_of())


def test_a_constructed_layers_probe_of_gradient_descents_prediction_is_exact(x64: None) -> None:
    """The label channel of row j is y_j - w_k.x_j after k layers, and the query's, of label 0, is -w_k.x_query.

    So the residual of a row's own pair, and the prediction, are coordinates of a row: the score is 1 but for the
    penalty of 1e-10. The vector w_k is in no row, only its product with the row's input.
    """
    run, batch = constructed(), batch_of()
    contexts = Contexts(batch, STEP)
    names = tuple(f"blocks.{layer}.resid_post" for layer in range(LAYERS))
    found = features_at(run.model, run.params, batch, names, range(PAIRS + 1))
    rows = rows_of(batch, PAIRS + 1)
    for layer, at in enumerate(names):
        prediction = np.asarray(contexts.target(Target("gd_prediction", layer + 1), rows[-1]))
        np.testing.assert_allclose(found[at][-1][:, DIM], -prediction[:, 0], rtol=1e-10, atol=1e-12)
        assert score(out_of_fold(found[at][-1], prediction), prediction).score > 1 - 1e-12
        residual = np.asarray(contexts.target(Target("residual", layer + 1), rows[2]))
        np.testing.assert_allclose(found[at][2][:, DIM], residual[:, 0], rtol=1e-10, atol=1e-12)
        weights = np.asarray(contexts.target(Target("gd", layer + 1), rows[-1]))
        assert score(out_of_fold(found[at][-1], weights), weights).high < 0.3


def test_the_table_has_each_score_beside_its_controls() -> None:
    """The constructed run in float32: its read-out is gradient descent's prediction, as is its probe's."""
    own = {"first": np.asarray(evaluation_context(CONFIG).batch.x)[:, 0]}
    question = Question(targets=("gd_prediction", "gradient", "w"), own=own, eta=STEP)
    rows, facts = probe(constructed(), question)
    table = pd.DataFrame(rows).set_index(["target", "activation", "probe"]).sort_index()
    assert facts["positions"] == [PAIRS]
    last = f"blocks.{LAYERS - 1}.resid_post"
    exact = table.loc[("gd_prediction", last)].query("steps == @LAYERS")
    assert exact.loc["trained", "score"] == pytest.approx(1, abs=1e-5)  # float32
    assert exact.loc["other_context", "low"] < 0.05
    assert exact.loc["untrained", "score"] < 0.9
    read_out = table.loc[("gd_prediction", f"blocks.{LAYERS - 1}.prediction")].query("steps == @LAYERS")
    assert read_out.loc["read_out", "score"] == pytest.approx(1, abs=1e-5)
    assert float(table.loc[("first", "tokens"), "score"].iloc[0]) == pytest.approx(1, abs=1e-6)
    for target in ("first", "gradient", "w"):
        others = table.loc[(target, slice(None), "other_context")]
        assert (others["low"] < 0.0).all(), others
    of_zero_steps = table.loc[("gd_prediction", "embed"), "reason"].iloc[0]
    assert of_zero_steps == "the target is the same in every context"


def test_the_mask_of_corrupted_pairs_is_of_all_pairs_at_the_query_and_of_its_own_at_a_pairs_row() -> None:
    noisy = ContextConfig(noise_mode="label_noise", noise_p=0.5, noise_sigma=2.0)
    run = replace(constructed(), config=replace(CONFIG, eval=noisy))
    rows, _ = probe(run, Question(targets=("noise_mask",), positions=(0, -1), activations=("blocks.0.resid_post",)))
    kept = [row for row in rows if row["probe"] == "trained"]
    assert [(row["position"], row["measure"], row["coordinates"]) for row in kept] == [
        (0, "AUROC", 1),
        (PAIRS, "AUROC", PAIRS),
    ]
    with pytest.raises(ConfigError, match="these are clean"):
        probe(constructed(), Question(targets=("noise_mask",)))


def test_fewer_contexts_than_features_are_refused_and_of_the_tokens_the_reason_is_kept() -> None:
    run = constructed()
    with pytest.raises(ConfigError, match="embed has 4 features, and of 5 contexts a probe is fitted on 4; give --tas"):
        probe(run, Question(tasks=5))
    rows, _ = probe(run, Question(targets=("w",), tasks=24, eta=STEP))
    assert fitted_on(24) == 19
    few = [row for row in rows if row["probe"] == "tokens"]
    assert [row["reason"] for row in few] == ["23 features, and 19 contexts to fit a probe of them on"]


# --- the command ---


def test_the_command_writes_a_table_a_summary_and_a_figure(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    np.savez(tmp_path / "mine.npz", mine=np.random.default_rng(0).normal(size=(TASKS, 2)))
    done = workshop.run(
        "analysis.probes", "--run", run, "--target", tmp_path / "mine.npz", "--targets", "gd_prediction"
    )
    assert done.returncode == 0, done.stderr
    assert "target gd_prediction (1 steps)  activation blocks.0.resid_post  row 6  R2 " in done.stdout
    table = pd.read_csv(run / layout.PROBES)
    assert {*table["target"]} == {"gd_prediction", "mine"}
    assert {*table["probe"]} == {"trained", "untrained", "other_context", "tokens", "read_out"}
    assert json.loads((run / layout.PROBES_FACTS).read_text())["best"]["mine"]["position"] == 6
    assert (run / layout.PROBES_FIGURE).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--targets", "gradiant"), "no target is called 'gradiant', did you mean gradient?"),
        (
            ("--target", "short.npz"),
            f"the target short has the shape (5, 2); it must be [{TASKS}, ...], one entry per context",
        ),
        (("--tasks", "6"), "embed has 5 features, and of 6 contexts a probe is fitted on 4"),
        (("--positions", "9"), "there are 7 rows of tokens, so there is no row 9"),
    ],
)
def test_bad_input_is_one_sentence_before_any_work(
    words: tuple[str, str], sentence: str, lsa1_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    np.savez(tmp_path / "short.npz", short=np.zeros((5, 2)))
    flag, value = words
    value = str(tmp_path / value) if value.endswith(".npz") else value
    done = workshop.run("analysis.probes", "--run", lsa1_run, flag, value)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {sentence}")
    assert done.stderr.count("\n") == 1
    assert not (lsa1_run / layout.PROBES).exists()
