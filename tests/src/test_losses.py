"""Losses of single predictions against scikit-learn and SciPy, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import log_loss, mean_absolute_error, mean_squared_error

from icl_lab.src.losses import (
    LOSSES,
    absolute_errors,
    binary_cross_entropies,
    cross_entropies,
    half_mse,
    half_squared_errors,
)

pytestmark = pytest.mark.usefixtures("x64")
RNG = np.random.default_rng(0)
PREDICTIONS, TARGETS = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
LOGITS, CLASSES = 3 * RNG.normal(size=(5, 3, 4)), RNG.integers(4, size=(5, 3))
LABELS = RNG.integers(2, size=(5, 3))
LARGE = 1e3  # a logit whose exponential overflows


def test_half_the_squared_error():
    each = half_squared_errors(jnp.asarray(PREDICTIONS), TARGETS)
    np.testing.assert_allclose(each, (PREDICTIONS - TARGETS) ** 2 / 2, rtol=1e-14)
    assert float(half_mse(PREDICTIONS, TARGETS)) == pytest.approx(
        mean_squared_error(TARGETS, PREDICTIONS) / 2, rel=1e-12
    )
    assert float(each.mean()) == pytest.approx(mean_squared_error(TARGETS, PREDICTIONS) / 2, rel=1e-12)


def test_the_absolute_error_is_scikit_learns():
    each = absolute_errors(jnp.asarray(PREDICTIONS), TARGETS)
    assert float(each.mean()) == pytest.approx(mean_absolute_error(TARGETS, PREDICTIONS), rel=1e-12)
    np.testing.assert_allclose(each**2, 2 * half_squared_errors(jnp.asarray(PREDICTIONS), TARGETS), rtol=1e-12)


def test_predictions_of_several_layers_have_the_same_targets():
    layers = np.stack([PREDICTIONS, TARGETS])
    each = half_squared_errors(jnp.asarray(layers), TARGETS)
    np.testing.assert_array_equal(each[0], half_squared_errors(jnp.asarray(PREDICTIONS), TARGETS))
    np.testing.assert_array_equal(each[1], 0.0)
    assert float(half_mse(layers, TARGETS)) == pytest.approx(mean_squared_error(TARGETS, PREDICTIONS) / 4, rel=1e-12)


def test_binary_cross_entropy_is_scikit_learns_log_loss():
    logits = LOGITS[..., 0]
    each = binary_cross_entropies(jnp.asarray(logits), jnp.asarray(LABELS))
    assert float(each.mean()) == pytest.approx(log_loss(LABELS.ravel(), 1 / (1 + np.exp(-logits.ravel()))), rel=1e-12)
    for index in np.ndindex(each.shape):
        probability = 1 / (1 + np.exp(-logits[index]))
        alone = log_loss([LABELS[index]], [probability], labels=[0, 1])
        assert float(each[index]) == pytest.approx(alone, rel=1e-12)


def test_binary_cross_entropy_is_that_of_two_classes():
    logits = LOGITS[..., 0]
    two = np.stack([np.zeros_like(logits), logits], axis=-1)
    found = cross_entropies(jnp.asarray(two), jnp.asarray(LABELS))
    np.testing.assert_allclose(found, binary_cross_entropies(jnp.asarray(logits), jnp.asarray(LABELS)), rtol=1e-12)


def test_cross_entropy_is_scikit_learns_log_loss_and_scipys_log_softmax():
    each = cross_entropies(jnp.asarray(LOGITS), jnp.asarray(CLASSES))
    probabilities = np.exp(log_softmax(LOGITS, axis=-1))
    expected = log_loss(CLASSES.ravel(), probabilities.reshape(-1, 4), labels=range(4))
    assert float(each.mean()) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(each, -np.take_along_axis(log_softmax(LOGITS, axis=-1), CLASSES[..., None], -1)[..., 0])
    np.testing.assert_allclose(cross_entropies(jnp.zeros((2, 7)), jnp.array([0, 6])), np.log(7), rtol=1e-14)


def test_the_logistic_loss_is_the_binary_cross_entropy_of_labels_that_are_signs():
    """log(1 + exp(-y z)), y = 2 label - 1."""
    logits, labels = jnp.array([-3.0, -0.5, 0.0, 2.0]), jnp.array([0, 1, 1, 0])
    expected = binary_cross_entropies(logits, labels)
    np.testing.assert_allclose(LOSSES["logistic_loss"](logits, 2 * labels - 1), expected, rtol=1e-6)


def test_large_logits_neither_overflow_nor_lose_their_gradient():
    logits, labels = jnp.array([LARGE, -LARGE, LARGE, -LARGE]), jnp.array([0, 1, 1, 0])
    np.testing.assert_allclose(binary_cross_entropies(logits, labels), [LARGE, LARGE, 0, 0], atol=1e-12)
    slope = jax.grad(lambda z: binary_cross_entropies(z, labels).sum())(logits)
    np.testing.assert_allclose(slope, [1, -1, 0, 0], atol=1e-12)  # sigmoid(z) - label
    rows = jnp.array([[LARGE, 0.0], [LARGE, 0.0]])
    np.testing.assert_allclose(cross_entropies(rows, jnp.array([0, 1])), [0, LARGE], atol=1e-12)
    slopes = jax.grad(lambda z: cross_entropies(z, jnp.array([0, 1])).sum())(rows)
    np.testing.assert_allclose(slopes, [[0, 0], [1, -1]], atol=1e-12)  # softmax - one-hot


@pytest.mark.parametrize(
    ("name", "best", "targets"),
    [
        ("half_squared_error", TARGETS, TARGETS),
        ("absolute_error", TARGETS, TARGETS),
        ("binary_cross_entropy", np.where(LABELS, LARGE, -LARGE), LABELS),
        ("logistic_loss", np.where(LABELS, LARGE, -LARGE), np.where(LABELS, 1.0, -1.0)),
        ("cross_entropy", LARGE * np.eye(4)[CLASSES], CLASSES),
    ],
)
def test_a_loss_has_a_value_for_each_target_and_is_zero_for_the_right_answer(name, best, targets):
    loss = LOSSES[name]
    assert len(LOSSES) == 5
    np.testing.assert_allclose(loss(jnp.asarray(best), jnp.asarray(targets)), np.zeros((5, 3)), atol=1e-12)
    worse = loss(jnp.asarray(best).at[0, 0].add(1.0 if best.ndim == 2 else jnp.arange(4) * LARGE), jnp.asarray(targets))
    assert np.asarray(worse)[1:].max() < 1e-12
