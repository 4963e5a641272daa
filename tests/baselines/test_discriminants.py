from functools import partial

import jax
import numpy as np
import pytest

from icl_lab.baselines.discriminants import Prior, discriminant, posterior_mean, prior_of
from icl_lab.baselines.linear_mmse import ridge
from tests import reference

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)  # conditioning takes a digit of float64
predicted = jax.jit(posterior_mean)  # one program for all noises


def prior(seed: int, dim: int = 4) -> Prior:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim))
    return Prior(rng.normal(size=dim), root @ root.T + 0.1 * np.eye(dim))


@pytest.mark.parametrize("noise", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("pairs", [2, 4, 9])
def test_it_is_the_gaussian_posterior_of_the_weights(noise: float, pairs: int, x64: None) -> None:
    """(C^-1 + X'X / noise)^-1 (C^-1 m + X'y / noise), Bishop 2006, Eq. 3.50 and 3.51."""
    batch, own = reference.random_batch(pairs, pairs=pairs), prior(1)
    precision = np.linalg.inv(own.covariance)
    expected = [
        query @ np.linalg.solve(precision + x.T @ x / noise, precision @ own.mean + x.T @ y / noise)
        for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True)
    ]
    close(predicted(batch, own, noise), expected)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
def test_of_mean_0_and_covariance_1_it_is_ridge(penalty: float, x64: None) -> None:
    batch = reference.random_batch(2)
    close(predicted(batch, Prior(np.zeros(4), np.eye(4)), penalty), ridge(batch, penalty))


def test_one_task_alone_is_known_without_context() -> None:
    """The covariance of one is 0, and labels then say nothing."""
    batch, weights = reference.random_batch(3), np.array([[1.0, -2.0, 0.5, 3.0]])
    found = prior_of(weights)
    np.testing.assert_array_equal(found.covariance, np.zeros((4, 4)))
    # float32
    np.testing.assert_allclose(predicted(batch, found, 1.0), batch.x_query @ weights[0], rtol=1e-5, atol=1e-5)


def test_between_two_tasks_labels_choose_a_place_on_their_line(x64: None) -> None:
    """Of weights m - d and m + d the prior has covariance d d^T: w = m + t d, with t by ridge on the residual."""
    batch, m, d = reference.random_batch(4), np.array([1.0, 0, 2, -1]), np.array([0.5, 1, -1, 0])
    found = prior_of(np.stack([m - d, m + d]))
    np.testing.assert_allclose(found.covariance, np.outer(d, d), atol=1e-6)
    expected = []
    for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True):
        along = x @ d
        expected.append(query @ (m + d * (along @ (y - x @ m)) / (along @ along + 0.3)))
    np.testing.assert_allclose(predicted(batch, found, 0.3), expected, rtol=1e-6)  # the prior is float32


def test_the_prior_has_the_moments_of_the_weights() -> None:
    weights = np.random.default_rng(5).normal(size=(7, 3)) * [1, 5, 0.1] + [2, 0, 1]
    found = prior_of(weights)
    np.testing.assert_allclose(found.mean, weights.mean(axis=0), rtol=1e-5)  # float32
    np.testing.assert_allclose(found.covariance, np.cov(weights.T, bias=True), rtol=1e-4, atol=1e-5)


def test_a_discriminant_is_least_squares() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5)), np.sign(rng.normal(size=200))
    # it adds 1e-6 of the mean variance to each direction's, which here are down to 1e-2 of the mean
    np.testing.assert_allclose(discriminant(x, y), np.linalg.lstsq(x, y)[0], rtol=1e-3, atol=1e-5)


def test_a_discriminant_of_inputs_without_full_rank_is_the_smallest() -> None:
    rng = np.random.default_rng(7)
    x, y = np.repeat(rng.normal(size=(50, 2)), 2, axis=1), np.sign(rng.normal(size=50))
    np.testing.assert_allclose(discriminant(x, y), np.linalg.lstsq(x, y)[0], rtol=1e-4, atol=1e-6)
