"""Covariances of inputs and tasks: the moments of what is drawn, and what is refused."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.src.checks import ConfigError
from icl_lab.src.covariance import FIXED_SPECTRA, fixed_eigenvalues, haar, orthonormal
from icl_lab.src.data import TASK_POWERS, labels, sample_batch
from icl_lab.src.data import TEACHERS as TEACHERS_BY_NAME
from icl_lab.src.data_config import SPECTRA, TASK_COVARIANCES, TEACHERS, DataConfig
from icl_lab.src.prng import Purpose, key, purpose_key

RECIPROCAL = DataConfig(4, 6, "gaussian", spectrum="power_law")
TASKS = 20_000


def drawn(data, tasks=TASKS):
    return jax.tree.map(lambda part: np.asarray(part, np.float64), sample_batch(key(5), data, tasks))


def second_moment(rows):
    """E[v v^T] over rows [M, D], and the standard error of each entry."""
    products = rows[:, :, None] * rows[:, None, :]
    return products.mean(axis=0), products.std(axis=0) / len(rows) ** 0.5


def holds(found, expected):
    mean, error = found
    return (np.abs(mean - expected) < 4.5 * error + 1e-12).all()  # 16 entries: one in 7000 draws fails


def test_orthonormal_columns_are_those_of_qr_with_a_positive_diagonal():
    with jax.enable_x64(True):
        z = jax.random.normal(jax.random.key(0), (8, 7, 4))
        found = np.asarray(orthonormal(z))
    for own, one in zip(found, np.asarray(z), strict=True):
        q, r = np.linalg.qr(one)
        np.testing.assert_allclose(own, q * np.sign(np.diag(r)), atol=1e-12)


def test_ill_conditioned_columns_are_orthonormal_in_float32():
    z = jnp.stack([jnp.ones((3, 5)), jnp.ones((3, 5)) + 1e-3 * jnp.arange(5.0)[None]], axis=2)
    q = orthonormal(z)
    gram = np.einsum("bni,bnj->bij", q, q)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(2), gram.shape), atol=1e-5)


def test_every_word_of_a_config_has_what_it_stands_for():
    assert {*FIXED_SPECTRA, "log_uniform"} == set(SPECTRA)
    assert set(TEACHERS_BY_NAME) == set(TEACHERS)
    assert set(TASK_POWERS) == set(TASK_COVARIANCES)


def test_haar_matrices_have_no_direction():
    entries = np.asarray(haar(key(1), TASKS, 3), np.float64)
    assert holds(second_moment(entries[:, :, 0]), np.eye(3) / 3)
    assert abs(entries.mean()) < 4 / (3 * TASKS) ** 0.5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [1, 1, 1, 1]),
        ({"spectrum": "power_law", "spectrum_exponent": 2.0}, [1, 1 / 4, 1 / 9, 1 / 16]),
        ({"spectrum": "log_spaced", "condition_number": 1000.0}, [1, 0.1, 0.01, 0.001]),
        ({"spectrum": "given", "eigenvalues": (3.0, 1.0, 2.0, 5.0)}, [3, 1, 2, 5]),
    ],
)
def test_spectra(changes, expected):
    np.testing.assert_allclose(fixed_eigenvalues(DataConfig(4, **changes)), expected)


def test_a_spectrum_that_contexts_draw_is_none_they_share():
    assert fixed_eigenvalues(DataConfig(4, spectrum="log_uniform")) is None


@pytest.mark.parametrize("inputs", ["gaussian", "uniform"])
def test_inputs_queries_and_tasks_have_their_covariances(inputs):
    data = replace(RECIPROCAL, input_distribution=inputs, task_covariance="inverse", weight_scale=0.5)
    batch, eigenvalues = drawn(data), 1 / np.arange(1, 5)
    variance = data.coordinate_variance
    assert holds(second_moment(batch.x[:, 0]), variance * np.diag(eigenvalues))
    assert holds(second_moment(batch.x_query), variance * np.diag(eigenvalues))
    assert holds(second_moment(batch.w), 0.25 * np.diag(1 / eigenvalues))


def test_isotropic_queries_on_anisotropic_contexts():
    batch = drawn(replace(RECIPROCAL, query_covariance="isotropic"))
    assert holds(second_moment(batch.x_query), np.eye(4))
    assert not holds(second_moment(batch.x[:, 0]), np.eye(4))


def test_tasks_with_the_inputs_covariance_turn_with_it():
    batch = drawn(replace(RECIPROCAL, axes="rotated", task_covariance="inputs"))
    assert holds(second_moment(batch.x[:, 0]), np.diag(np.full(4, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)))
    agreement = np.einsum("bnd,bd->bn", batch.x, batch.w)[:, 0] ** 2  # E (x.w)^2 = tr L^2 in one basis
    expected = sum(i**-2.0 for i in range(1, 5))
    assert abs(agreement.mean() - expected) < 4 * agreement.std() / TASKS**0.5


def test_an_exact_covariance_is_that_of_each_context():
    data = replace(RECIPROCAL, axes="rotated", exact_covariance=True)
    batch = drawn(data, 50)
    found = np.linalg.eigvalsh(np.einsum("bnd,bne->bde", batch.x, batch.x) / 6)[:, ::-1]
    np.testing.assert_allclose(found, np.broadcast_to(1 / np.arange(1, 5), found.shape), rtol=1e-4)


def test_drawn_eigenvalues_are_log_uniform():
    data = replace(RECIPROCAL, spectrum="log_uniform", condition_number=50.0, axes="rotated", exact_covariance=True)
    batch = drawn(data, 2000)
    found = np.linalg.eigvalsh(np.einsum("bnd,bne->bde", batch.x, batch.x) / 6)
    assert found.min() > 1 / 50 * 0.999
    assert found.max() < 1.001
    shares = -np.log(found).ravel() / np.log(50)
    assert abs(shares.mean() - 0.5) < 4 / (12 * shares.size) ** 0.5


def test_tasks_have_their_mean_and_distribution():
    batch = drawn(replace(RECIPROCAL, task_mean=1.5, task_distribution="sphere", spectrum="isotropic"))
    np.testing.assert_allclose(np.linalg.norm(batch.w - 1.5, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(("teacher", "function"), [("relu", lambda s: np.maximum(s, 0)), ("tanh", np.tanh)])
def test_labels_are_the_teachers_of_linear_scores(teacher, function):
    batch = drawn(replace(RECIPROCAL, teacher=teacher), 20)
    np.testing.assert_allclose(batch.y, function(np.einsum("bnd,bd->bn", batch.x, batch.w)), atol=1e-6)
    np.testing.assert_allclose(batch.y_query, function(np.einsum("bd,bd->b", batch.x_query, batch.w)), atol=1e-6)


def test_by_default_a_batch_is_what_it_was():
    """Isotropic Gaussian tasks draw the same numbers from the same keys as before there were covariances."""
    data, at = DataConfig(), key(3)
    batch = sample_batch(at, data, 16)
    w = jax.random.normal(purpose_key(at, Purpose.TASK), (16, 10))
    x = jax.random.uniform(purpose_key(at, Purpose.INPUT), (16, 10, 10), minval=-0.5, maxval=0.5)
    np.testing.assert_array_equal(batch.w, w)
    np.testing.assert_array_equal(batch.x, x)
    np.testing.assert_array_equal(batch.y, labels(x, w))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spectrum": "given", "eigenvalues": (1.0, 0.0, 1.0, 1.0)}, "a covariance is positive"),
        ({"spectrum": "given", "eigenvalues": (1.0, -2.0, 1.0, 1.0)}, "a covariance is positive"),
        ({"spectrum": "given", "eigenvalues": (1.0, float("nan"), 1.0, 1.0)}, "a covariance is positive"),
        ({"spectrum": "given", "eigenvalues": (1.0,)}, "eigenvalues has 1 values"),
        ({"eigenvalues": (1.0, 1.0, 1.0, 1.0)}, "takes 0"),
        ({"spectrum": "flat"}, "spectrum is 'flat'"),
        ({"condition_number": 0.5}, "condition_number is 0.5"),
        ({"spectrum_exponent": -1.0}, "spectrum_exponent is -1"),
        ({"exact_covariance": True, "num_pairs": 3}, "3 pairs cannot span 4 dimensions"),
        ({"task_mean": float("inf")}, "task_mean is inf"),
        ({"teacher": "cubic"}, "teacher is 'cubic'"),
        ({"task_distribution": "flat"}, "task_distribution is 'flat'"),
    ],
)
def test_what_is_no_distribution_is_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        DataConfig(**{"dim": 4, "num_pairs": 6, "input_distribution": "gaussian", **changes})


@pytest.mark.parametrize(
    ("changes", "moment"),
    [
        ({"spectrum": "power_law"}, "input_variance"),
        ({"axes": "rotated", "exact_covariance": True}, "input_fourth_moment"),
        ({"spectrum": "power_law"}, "query_variance"),
        ({"task_covariance": "inverse"}, "task_variance"),
        ({"task_mean": 1.0}, "task_variance"),
        ({"teacher": "relu"}, "task_variance"),
    ],
)
def test_moments_that_coordinates_do_not_share_are_none(changes, moment):
    """A closed form of isotropic data gives no number on other data."""
    with pytest.raises(ConfigError, match="closed form"):
        getattr(DataConfig(4, 6, **changes), moment)
