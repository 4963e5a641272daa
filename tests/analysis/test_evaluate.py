"""A model beside baselines on contexts of a user's: against NumPy, a run's own results, and the likelihood itself."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import icl_lab
from icl_lab.analysis.evaluate import evaluate
from icl_lab.analysis.queries import queries_of
from icl_lab.analysis.run import Run
from icl_lab.baselines.estimated import estimate
from icl_lab.families.regression.baselines import fitted_gd
from icl_lab.families.regression.task import make_test_batch
from icl_lab.src.checks import ConfigError
from icl_lab.store import layout
from icl_lab.store.metrics import read_summary
from tests import processes
from tests.doors import Ran, Refused, ran, refused
from tests.runners.tiny import copied, lsa1_run, workshop
from tests.test_icl_lab import decoder_run

__all__ = ["decoder_run", "lsa1_run", "ran", "refused", "workshop"]

DRAWN = np.random.default_rng(0)
B, N, D = 40, 6, 4
X, X_QUERY = DRAWN.normal(size=(B, N, D)), DRAWN.normal(size=(B, D))
W = DRAWN.normal(size=(B, D))
Y = np.einsum("bnd,bd->bn", X, W) + 0.3 * DRAWN.normal(size=(B, N))
Y_QUERY = np.einsum("bd,bd->b", X_QUERY, W)


def ones(x: Any, y: Any, x_query: Any) -> np.ndarray:
    return np.ones(len(x_query))


def gd(step_size: float, x: np.ndarray, y: np.ndarray, x_query: np.ndarray) -> np.ndarray:
    found: np.ndarray = step_size * np.einsum("bn,bnd,bd->b", y, x, x_query)
    return found


def test_losses_errors_and_ratios_are_numpys() -> None:
    found = evaluate(ones, X, Y, X_QUERY, Y_QUERY, baselines={"small": lambda x, y, q: 0.1 * y.sum(axis=1)})
    losses = {"model": 0.5 * (1 - Y_QUERY) ** 2, "small": 0.5 * (0.1 * Y.sum(axis=1) - Y_QUERY) ** 2}
    losses["zero"] = 0.5 * Y_QUERY**2
    for name, values in losses.items():
        assert found.table.loc[name, "loss"] == pytest.approx(values.mean(), rel=1e-6)  # labels are float32
        assert found.table.loc[name, "loss_se"] == pytest.approx(values.std(ddof=1) / np.sqrt(B), rel=1e-6)
        np.testing.assert_allclose(found.contexts[f"{name}_loss"], values, rtol=1e-5, atol=1e-9)
    assert found.table.loc["small", "ratio"] == pytest.approx(losses["model"].mean() / losses["small"].mean(), rel=1e-6)
    assert list(found.contexts["context"]) == [*range(B)]
    assert set(found.contexts["position"]) == {N}
    assert "half the squared error" in repr(found)
    assert "<table" in found._repr_html_()


def test_without_facts_what_needs_them_is_null_and_what_does_not_is_defined() -> None:
    """Conjugate gradients of D steps solve the least squares."""
    found = evaluate(ones, X, Y, X_QUERY, Y_QUERY, steps=D)
    solved = np.einsum("bdn,bn,bd->b", np.linalg.pinv(X), Y, X_QUERY)
    np.testing.assert_allclose(found.contexts["conjugate_gradients"], solved, rtol=1e-3, atol=1e-3)  # float32
    reasons = found.table["reason"]
    for name in ("ridge", "gd", "mask_bayes", "gaussian_posterior", "gd_fitted"):
        assert np.isnan(found.table.loc[name, "loss"])
        assert name not in found.contexts
        assert f"{name} is not defined: {reasons[name]}" in repr(found)
    assert "the distribution of tasks, and of the noise" in reasons["ridge"]
    assert "no training contexts" in reasons["gd_fitted"]


def test_a_step_size_is_fitted_on_the_training_contexts() -> None:
    """c = sum f y / sum f^2, with f the step of size 1."""
    training = (X[:20], Y[:20], X_QUERY[:20], Y_QUERY[:20])
    found = evaluate(ones, X[20:], Y[20:], X_QUERY[20:], Y_QUERY[20:], training=training)
    feature = gd(1.0, X[:20], Y[:20], X_QUERY[:20])
    step_size = float(feature @ Y_QUERY[:20] / (feature @ feature))
    assert found.facts["fitted_step_size"] == pytest.approx(step_size, rel=1e-4)  # float32
    expected = gd(step_size, X[20:], Y[20:], X_QUERY[20:])
    np.testing.assert_allclose(found.contexts["gd_fitted"], expected, rtol=1e-3, atol=1e-4)


def test_at_every_position_a_query_sees_the_pairs_before_it() -> None:
    """For functions as for baselines: the same numbers as of contexts that are cut there."""
    found = evaluate(np.zeros((B, N)), X, Y, baselines={"cut": lambda x, y, q: gd(0.2, x, y, q)}, steps=2)
    for seen in (1, 3, N - 1):
        cut = evaluate(np.zeros(B), X[:, :seen], Y[:, :seen], X[:, seen], Y[:, seen], steps=2)
        rows = found.contexts[found.contexts["position"] == seen]
        np.testing.assert_allclose(rows["cut"], gd(0.2, X[:, :seen], Y[:, :seen], X[:, seen]), rtol=1e-5, atol=1e-6)
        for name in ("conjugate_gradients", "zero", "chebyshev"):
            np.testing.assert_allclose(rows[name], cut.contexts[name], rtol=1e-3, atol=1e-4, err_msg=name)
    means = 0.5 * (Y[:, 1:] ** 2).mean(axis=1)
    assert found.table.loc["zero", "loss_se"] == pytest.approx(means.std(ddof=1) / np.sqrt(B), rel=1e-6)
    assert list(found.by_position().index) == [*range(1, N)]


def test_without_a_query_the_last_pair_is_one() -> None:
    last = evaluate(ones, X, Y)
    given = evaluate(ones, X[:, :-1], Y[:, :-1], X[:, -1], Y[:, -1])
    np.testing.assert_array_equal(last.contexts["chebyshev"], given.contexts["chebyshev"])


# --- estimates ---


def drawn(contexts: int, noise: float, pairs: int = N) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    x = 0.5 * random.normal(size=(contexts, pairs, D))
    labels = np.einsum("bnd,bd->bn", x, 2.0 * random.normal(size=(contexts, D)))
    return x, labels + noise * random.normal(size=labels.shape)


def test_estimates_are_the_most_likely() -> None:
    """Against SciPy's Gaussian density of the labels, on a grid about them; and near the truth of 2000 contexts."""
    from scipy.stats import multivariate_normal

    x, y = drawn(30, 0.7)
    found = estimate(x, y)

    def likelihood(weight: float, noise: float) -> float:
        covariances = (weight**2 * each @ each.T + noise**2 * np.eye(N) for each in x)
        return float(sum(multivariate_normal.logpdf(of, cov=cov) for of, cov in zip(y, covariances, strict=True)))

    best = likelihood(found.weight_scale, found.noise_std)
    for weight, noise in ((1.02, 1), (0.98, 1), (1, 1.02), (1, 0.98), (1.02, 0.98)):
        assert likelihood(weight * found.weight_scale, noise * found.noise_std) < best
    many = estimate(*drawn(2000, 0.7))
    assert many == pytest.approx((0.5, 2.0, 0.7), rel=0.03)  # five standard errors, 1/sqrt(2 x 2000 x 4) each


@pytest.mark.parametrize("pairs", [3, 6])
def test_labels_without_noise_have_none(pairs: int) -> None:
    found = estimate(*(np.float32(part) for part in drawn(500, 0.0, pairs)))
    assert found.noise_std < 1e-3 * found.weight_scale
    assert found.weight_scale == pytest.approx(2.0, rel=0.1)  # four standard errors, 1/sqrt(2 x 500 x 3)


@pytest.mark.slow
def test_what_nobody_says_is_estimated_if_asked() -> None:
    """Ridge with the estimated penalty; of the training contexts where there are some."""
    found = evaluate(ones, X, Y, X_QUERY, Y_QUERY, estimate=True, training=(X[:30], Y[:30], X_QUERY[:30], Y_QUERY[:30]))
    of = estimate(np.float32(X[:30]), np.float32(Y[:30]))
    assert found.facts["estimated"]["noise_std"] == pytest.approx(of.noise_std, rel=1e-3)
    assert found.facts["estimated"]["from"] == "the training contexts"
    gram = X @ X.transpose(0, 2, 1) + (of.noise_std / of.weight_scale) ** 2 * np.eye(N)
    ridge = np.einsum("bn,bnd,bd->b", np.linalg.solve(gram, Y[:, :, None])[:, :, 0], X, X_QUERY)
    np.testing.assert_allclose(found.contexts["ridge"], ridge, rtol=1e-3, atol=1e-3)  # float32
    with pytest.raises(ConfigError, match="all zero"):
        estimate(X, np.zeros((B, N)))


def test_at_every_position_whole_contexts_are_estimated_from() -> None:
    """And not those of which a query sees the first pairs alone."""
    found = evaluate(np.zeros((B, N)), X, Y, training=(X[:30], Y[:30]), estimate=True)
    of = estimate(np.float32(X[:30]), np.float32(Y[:30]))
    assert found.facts["estimated"]["noise_std"] == pytest.approx(of.noise_std, rel=1e-6)
    assert found.facts["estimated"]["input_scale"] == pytest.approx(of.input_scale, rel=1e-6)


A_PLUGIN = """
import sys
import numpy as np
import icl_lab
from icl_lab.lab import plugins
plugins.load(sys.argv[1])
x, y = np.random.default_rng(0).normal(size=(5, 4, 2)), np.random.default_rng(1).normal(size=(5, 4))
found = icl_lab.evaluate(np.zeros((5, 4)), x, y, baselines={"own": lambda x, y, x_query: y.mean(axis=1)})
np.testing.assert_allclose(found.contexts["mean_label"], found.contexts["own"], rtol=1e-5, atol=1e-6)
"""


@pytest.mark.robust
def test_a_plugins_baseline_sees_the_pairs_before_a_query_alone(tmp_path: Path) -> None:
    """A mean over pairs is not one over the pairs that it does not see."""
    plugin = tmp_path / "mean_label.py"
    lines = ["from icl_lab.lab import plugins", '@plugins.baseline("mean_label")', "def mean_label(batch, config):"]
    plugin.write_text("\n".join([*lines, '    """The mean."""', "    return batch.y.mean(axis=1)"]))
    done = processes.python("-c", A_PLUGIN, plugin)
    assert done.returncode == 0, done.stderr


# --- runs ---


def test_of_a_run_the_losses_are_those_of_its_summary(lsa1_run: Path) -> None:
    """On its own test set, whose distribution its config says."""
    run = Run(lsa1_run)
    batch = make_test_batch(run.config)
    found = icl_lab.evaluate(str(lsa1_run), *(np.asarray(part) for part in batch[:4]))
    headline = read_summary(lsa1_run)["headline"]
    for name, column in {"model": "tf_loss", "gd": "gd_loss", "zero": "zero_loss"}.items():
        assert found.table.loc[name, "loss"] == pytest.approx(headline[column], rel=1e-5)  # float32
        assert found.table.loc[name, "loss_se"] == pytest.approx(headline[f"{column}_se"], rel=1e-4)
    assert found.table.loc["gd", "ratio"] == pytest.approx(headline["loss_ratio"], rel=1e-5)
    assert found.table.loc["gd_own_steps", "reason"] == "with one step this baseline is the same as gd"


@pytest.mark.slow
def test_a_decoder_is_measured_at_every_position_beside_its_pools_predictors(decoder_run: Path) -> None:
    run, stored = icl_lab.load_run(decoder_run), np.load(decoder_run / layout.PREDICTIONS)
    found = evaluate(run, run.batch.x, run.batch.y)
    for name, column in {"model": "id_tf", "ridge": "id_ridge", "dmmse": "id_dmmse"}.items():
        np.testing.assert_allclose(found.contexts[name], stored[column][:, 1:].ravel(), rtol=1e-4, atol=1e-5)
    last = evaluate(run, run.batch.x[:, :4], run.batch.y[:, :4], run.batch.x[:, 4], run.batch.y[:, 4])
    rows = found.contexts[found.contexts["position"] == 4]
    np.testing.assert_allclose(last.contexts["model"], rows["model"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "arrays", "sentence"),
    [
        (ones, (X[:1], Y[:1]), "there is only one context"),
        (ones, (X, Y, X_QUERY), "x_query is given without y_query"),
        (ones, (X, Y[:, :-1]), "y of shape"),
        (lambda x, y, q: np.ones(3), (X, Y), r"model gives predictions of shape \(3,\)"),
        (lambda x, y, q: np.full(len(x), np.nan), (X, Y), "model gives 40 predictions that are not finite"),
        (np.ones(7), (X, Y), r"model gives predictions of shape \(7,\)"),
    ],
)
def test_what_cannot_be_compared_is_refused(model: Any, arrays: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        evaluate(model, *arrays)


def test_a_baselines_name_is_not_taken_twice_and_training_has_two_arrays_or_four() -> None:
    with pytest.raises(ConfigError, match="ridge is the name of a baseline already"):
        evaluate(ones, X, Y, baselines={"ridge": ones})
    with pytest.raises(ConfigError, match="training has 3 dimensions, but the contexts that are evaluated have 4"):
        evaluate(ones, X, Y, training=(X[:, :, :3], Y))
    with pytest.raises(ConfigError, match="steps is 0; it must be a whole number of at least 1"):
        evaluate(ones, X, Y, steps=0)
    with pytest.raises(ConfigError, match="training has 3 arrays"):
        evaluate(ones, X, Y, training=(X, Y, X_QUERY))
    with pytest.raises(ConfigError, match="every pair is already a query"):
        queries_of(X, Y, X_QUERY, Y_QUERY, True)


# --- the command ---


def test_the_command_writes_both_tables(lsa1_run: Path, tmp_path: Path, ran: Ran) -> None:
    """On the contexts that the file keeps for the test, with a step size of those of its training."""
    run = copied(lsa1_run, tmp_path / "run")
    split = np.repeat(["train", "test"], B // 2)
    np.savez(tmp_path / "mine.npz", x=X, y=Y, x_query=X_QUERY, y_query=Y_QUERY, split=split)
    done = ran("analysis.evaluate", "--run", run, "--data", tmp_path / "mine.npz", "--estimate")
    assert done.status == 0, done.err
    half = slice(B // 2, B)
    trained = tuple(part[: B // 2] for part in (X, Y, X_QUERY, Y_QUERY))
    expected = evaluate(Run(run), X[half], Y[half], X_QUERY[half], Y_QUERY[half], training=trained, estimate=True)
    values = json.loads((run / layout.EVALUATION).read_text())
    assert {*values["predictors"]} == {*expected.table.index}
    for name, row in values["predictors"].items():
        assert (row["loss"] is None) == bool(row["reason"]), name
        if row["loss"] is not None:
            assert row["loss"] == pytest.approx(expected.table.loc[name, "loss"], rel=1e-5)
        assert name in done.out
    rows = list(csv.DictReader((run / layout.EVALUATED_CONTEXTS).read_text().splitlines()))
    assert len(rows) == B // 2
    np.testing.assert_allclose([float(row["gd_fitted"]) for row in rows], expected.contexts["gd_fitted"], rtol=1e-5)
    assert values["loss_convention"].startswith("loss: half the squared error")


@pytest.mark.slow
def test_a_run_on_contexts_of_its_own_is_evaluated_on_those_that_it_kept(tmp_path: Path, ran: Ran) -> None:
    """The step size of `gd` is fitted on its training contexts, as is that of `gd_fitted`; ridge has to know more."""
    np.savez(tmp_path / "mine.npz", x=X, y=Y, x_query=X_QUERY, y_query=Y_QUERY)
    run = icl_lab.train("lsa1", data=tmp_path / "mine.npz", steps=10, batch_size=16, out=tmp_path / "run", quiet=True)
    done = ran("analysis.evaluate", "--run", run.path, "--data", tmp_path / "mine.npz")
    assert done.status == 0, done.err
    values = json.loads((run.path / layout.EVALUATION).read_text())
    headline = read_summary(run.path)["headline"]
    for name, column in {"model": "tf_loss", "gd": "gd_loss", "gd_fitted": "gd_loss"}.items():
        assert values["predictors"][name]["loss"] == pytest.approx(headline[column], rel=1e-4), name
    assert "which a file lacks" in values["predictors"]["ridge"]["reason"]
    (tmp_path / "mine.npz").rename(tmp_path / "moved.npz")
    ran("analysis.evaluate", "--run", run.path, "--data", tmp_path / "moved.npz")
    assert json.loads((run.path / layout.EVALUATION).read_text())["predictors"] == values["predictors"]
    fitted_gd.cache_clear()  # as in another process
    np.savez(tmp_path / "other.npz", x=X[: B // 2], y=Y[: B // 2], x_query=X_QUERY[: B // 2], y_query=Y_QUERY[: B // 2])
    ran("analysis.evaluate", "--run", run.path, "--data", tmp_path / "other.npz")
    predictors = json.loads((run.path / layout.EVALUATION).read_text())["predictors"]
    assert predictors["gd"]["reason"].endswith("mine.npz, which does not exist")
    assert predictors["zero"]["loss"] == pytest.approx(0.5 * np.mean(Y_QUERY[: B // 2] ** 2))


def test_the_command_refuses_contexts_of_other_shapes(lsa1_run: Path, tmp_path: Path, refused: Refused) -> None:
    np.savez(tmp_path / "wide.npz", x=np.ones((3, N + 1, D + 1)), y=np.ones((3, N + 1)))
    assert f"has {D + 1} dimensions" in refused("analysis.evaluate", "--run", lsa1_run, "--data", tmp_path / "wide.npz")
    (tmp_path / "mine.txt").touch()
    assert "mine.txt is neither" in refused("analysis.evaluate", "--run", lsa1_run, "--data", tmp_path / "mine.txt")
