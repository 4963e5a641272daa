"""Two predictors side by side: identities and closed forms of the alignment, ratios of losses and their errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import distance
from scipy.stats import sem

from icl_lab.baselines.comparison import compare, cosine, sensitivity
from icl_lab.baselines.gradient_descent import gd
from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.regression.task import GradientDescent, find_gd, step_size_batch
from icl_lab.src.batch import Batch
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.statistics import mean_and_error, ratio_and_error
from tests import reference


def batch_of(seed: int) -> Batch:
    return Batch(*(jnp.asarray(leaf, jnp.float32) for leaf in reference.random_batch(seed, size=50)))


def linear(batch: Batch) -> jax.Array:
    """x_q . w, whose sensitivity is w."""
    return jnp.einsum("bd,bd->b", batch.x_query, batch.w)


def test_a_predictor_is_itself() -> None:
    batch = batch_of(0)
    values = compare(linear, linear, batch)
    assert {name: float(values[name]) for name in ("preds_diff", "l2_pred_diff", "model_diff")} == {
        "preds_diff": 0.0,
        "l2_pred_diff": 0.0,
        "model_diff": 0.0,
    }
    np.testing.assert_allclose([values["model_cos"], values["align_cos"]], 1, atol=1e-6)
    loss = 0.5 * np.mean((np.asarray(linear(batch)) - np.asarray(batch.y_query)) ** 2)
    np.testing.assert_allclose([values["tf_loss"], values["gd_loss"]], loss, rtol=1e-6)


@given(st.floats(-3, 3).filter(lambda s: abs(s) > 0.01 and abs(s - 1) > 0.01))
def test_a_scaled_predictor_in_closed_form(s: float) -> None:
    """f and s f: |1 - s| times the mean |f|, its root mean square and its sensitivity's mean norm; cosine sign s."""
    batch = batch_of(1)
    values = compare(linear, lambda batch: s * linear(batch), batch)
    f, w = np.asarray(linear(batch), np.float64), np.asarray(batch.w, np.float64)
    expected = {
        "preds_diff": abs(1 - s) * np.abs(f).mean(),
        "l2_pred_diff": abs(1 - s) * np.sqrt((f**2).mean()),
        "model_diff": abs(1 - s) * np.linalg.norm(w, axis=1).mean(),
        "model_cos": np.sign(s),
        "align_cos": np.sign(s),
        "gd_loss": 0.5 * np.mean((s * f - np.asarray(batch.y_query)) ** 2),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-4, err_msg=name)


def test_the_zero_predictor_has_no_direction() -> None:
    values = compare(linear, lambda batch: jnp.zeros_like(batch.y_query), batch_of(2))
    assert float(values["model_cos"]) == 0
    assert float(values["model_diff"]) > 1


def test_the_sensitivity_of_one_step_of_gradient_descent(x64: None) -> None:
    """d/dx_q of c sum_i y_i x_i.x_q is c sum_i y_i x_i."""
    batch = reference.random_batch(3)
    expected = 0.3 * np.einsum("bn,bnd->bd", batch.y, batch.x)
    found = sensitivity(lambda batch: gd(batch, 0.3), Batch(*map(jnp.asarray, batch)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_sensitivity_is_a_derivative(x64: None) -> None:
    """Central differences of a predictor that is not linear."""

    def predict(batch: Batch) -> jax.Array:
        return jnp.sin(jnp.einsum("bnd,bd->b", batch.x, batch.x_query)) * batch.y[:, 0]

    batch = Batch(*map(jnp.asarray, reference.random_batch(4)))
    found, step = np.asarray(sensitivity(predict, batch)), 1e-6
    for axis in range(4):
        shift = np.zeros(batch.x_query.shape)
        shift[:, axis] = step
        up, down = (predict(batch._replace(x_query=batch.x_query + sign * shift)) for sign in (1, -1))
        np.testing.assert_allclose(found[:, axis], (up - down) / (2 * step), atol=1e-6)


def test_cosines_are_scipys(x64: None) -> None:
    a, b = reference.random_batch(5).w, reference.random_batch(6).w
    expected = [1 - distance.cosine(row, other) for row, other in zip(a, b, strict=True)]
    np.testing.assert_allclose(cosine(jnp.asarray(a), jnp.asarray(b)), expected, atol=1e-12)
    turned = jnp.asarray(np.stack([-a[:, 1], a[:, 0], -a[:, 3], a[:, 2]], axis=1))
    np.testing.assert_allclose(cosine(jnp.asarray(a), turned), 0, atol=1e-12)


# Errors of means and of ratios


def correlated(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors of two similar predictors: heavy-tailed and strongly correlated."""
    rng = np.random.default_rng(0)
    common, own, other = rng.normal(size=(3, size))
    return (common + 0.2 * own) ** 2, (0.9 * common + 0.2 * other) ** 2


def test_the_error_of_a_mean_is_scipys() -> None:
    values, _ = correlated(300)
    assert mean_and_error(values) == (pytest.approx(values.mean()), pytest.approx(sem(values)))


def test_the_error_of_a_ratio_is_that_of_a_bootstrap() -> None:
    """5000 resamplings of tasks, pairs kept together; their standard deviation is known to 1/sqrt(10000) = 1 %."""
    numerator, denominator = correlated(2000)
    ratio, error = ratio_and_error(numerator, denominator)
    picks = np.random.default_rng(1).integers(0, 2000, size=(5000, 2000))
    drawn = numerator[picks].mean(axis=1) / denominator[picks].mean(axis=1)
    assert ratio == pytest.approx(numerator.mean() / denominator.mean())
    assert error == pytest.approx(drawn.std(), rel=0.05)
    unpaired = ratio * np.hypot(sem(numerator) / numerator.mean(), sem(denominator) / denominator.mean())
    assert error < unpaired / 2


@given(st.floats(0.1, 10))
def test_a_ratio_that_is_the_same_for_every_task_has_no_error(scale: float) -> None:
    _, denominator = correlated(100)
    ratio, error = ratio_and_error(scale * denominator, denominator)
    assert (ratio, error) == (pytest.approx(scale), pytest.approx(0, abs=1e-12))


# The gradient descent that a run is compared with


@pytest.mark.parametrize(
    ("attention", "layers", "steps"),
    [
        (("linear",), 1, 1),
        (("linear",), 5, 5),
        (("softmax", "linear"), 2, 1),
        (("softmax", "linear"), 4, 3),
        (("softmax",), 1, 1),
        (("softmax",), 3, 3),
    ],
)
def test_one_step_for_each_layer_that_does_not_copy(attention: tuple[str, ...], layers: int, steps: int) -> None:
    assert gd_steps(ModelConfig(attention=attention, num_layers=layers)) == steps


CONFIG = RegressionConfig(data=DataConfig(dim=4, num_pairs=6), step_size_tasks=256)


def test_the_step_size_is_the_best_on_its_own_tasks() -> None:
    """One step is linear in c, so the best c is a regression of the labels on the predictions at c = 1."""
    found = find_gd(CONFIG)
    batch = Batch(*(np.asarray(leaf, np.float64) for leaf in step_size_batch(CONFIG)))
    feature = np.einsum("bn,bnd,bd->b", batch.y, batch.x, batch.x_query)
    assert found.steps == 1
    assert float(found.step_size) == pytest.approx(feature @ batch.y_query / (feature @ feature), rel=1e-5)
    assert "256 separate clean tasks" in found.source


def test_a_step_size_can_be_given() -> None:
    assert find_gd(CONFIG, 0.25) == GradientDescent(1, 0.25, "given")


def test_its_predictions_are_gradient_descents(x64: None) -> None:
    batch = reference.random_batch(7)
    found = GradientDescent(3, 0.05, "given").predict(Batch(*map(jnp.asarray, batch)))
    np.testing.assert_allclose(found, reference.gd(batch, 0.05, 3), atol=1e-10)
