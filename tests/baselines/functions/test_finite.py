"""The posterior over a pool, against sums over functions one at a time and `bayes.dmmse`; it is calibrated."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.baselines import bayes
from icl_lab.baselines.functions import posterior
from icl_lab.baselines.functions.finite import bernoulli, gaussian, pool_posterior
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


def linear_pool(seed=0, size=4, pairs=6, dim=3, count=5):
    rng = np.random.default_rng(seed)
    x, pool = rng.normal(size=(size, pairs, dim)), rng.normal(size=(count, dim))
    labels = np.einsum("bnd,md->bmn", x, pool)
    y = labels[np.arange(size), rng.integers(count, size=size)] + 0.5 * rng.normal(size=(size, pairs))
    return x, pool, labels, y


def test_of_linear_functions_it_is_dmmse(x64):
    x, pool, labels, y = linear_pool()
    batch = Batch(*map(jnp.asarray, (x, y, x, y, x[:, 0])))
    close(pool_posterior(labels, y, gaussian(0.25)).mean, bayes.dmmse(batch, jnp.asarray(pool), 0.25))


def test_blocks_of_prompts_change_nothing(monkeypatch):
    _, _, labels, y = linear_pool()
    whole = pool_posterior(labels, y, gaussian(0.25))
    monkeypatch.setattr(posterior, "ELEMENTS", 1)
    close(pool_posterior(labels, y, gaussian(0.25)), whole)


def test_bernoulli_prior_and_inputs_are_those_of_the_definition():
    """Each prompt, position and function in a loop of its own, products of probabilities rather than logarithms."""
    rng = np.random.default_rng(1)
    logits, inputs = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4))
    y, prior = rng.choice([-1.0, 1.0], size=(2, 4)), np.array([0.5, 0.3, 0.2])
    found = pool_posterior(logits, y, bernoulli(), np.log(prior), inputs)
    for b in range(2):
        for k in range(4):
            weights = [
                prior[m]
                * np.prod([1 / (1 + np.exp(-y[b, j] * logits[b, m, j])) for j in range(k)])
                * np.prod([np.exp(inputs[b, m, j]) for j in range(k + 1)])
                for m in range(3)
            ]
            chances = 1 / (1 + np.exp(-logits[b, :, k]))
            close(found.mean[b, k], np.dot(weights, 2 * chances - 1) / np.sum(weights))
            close(found.log_evidence[b, k], np.log(np.sum(weights)))


def test_without_noise_the_functions_that_fit_count_alike():
    labels = np.array([[[1.0, 1, 1], [1, -1, 1], [1, 1, -1], [-1, 1, 1]]])
    found = pool_posterior(labels, np.array([[1.0, 1, 1]]), gaussian(posterior.NOISE_FREE))
    close(found.mean, [[0.5, 1 / 3, 0]])
    density = -0.5 * np.log(2 * np.pi * posterior.NOISE_FREE)  # of a label that fits
    close(found.log_evidence, np.log([[1, 3 / 4, 2 / 4]]) + density * np.arange(3))


def test_where_none_fits_the_nearest_counts():
    labels = np.array([[[1.0, 1, 5], [1, -1, 6], [-1, -1, 7]]])
    y = np.array([[1.0, 0.9, 0]])
    close(pool_posterior(labels, y, gaussian(1e-6)).mean[0, 2], 5)


def test_it_is_calibrated_and_knows_the_noise():
    """The slope of labels on predictions is 1, within 5 standard errors; other noise variances lose more."""
    rng = np.random.default_rng(2)
    x, pool = rng.normal(size=(4000, 5, 3)), rng.normal(size=(6, 3))
    labels = np.einsum("bnd,md->bmn", x, pool)
    y = labels[np.arange(4000), rng.integers(6, size=4000)] + rng.normal(size=(4000, 5))
    found = pool_posterior(labels, y, gaussian(1.0)).mean[:, 2]
    target = y[:, 2]
    slope = found @ target / (found @ found)
    error = np.std(target - found) / np.sqrt(found @ found)
    assert abs(slope - 1) < 5 * error
    for other in (0.1, 10.0):
        worse = pool_posterior(labels, y, gaussian(other)).mean[:, 2]
        assert np.mean((worse - target) ** 2) > np.mean((found - target) ** 2)


def test_bad_shapes_and_values_are_refused():
    with pytest.raises(ConfigError, match=r"\[B, M, N\]"):
        pool_posterior(np.zeros((2, 3, 4)), np.zeros((2, 5)), bernoulli())
    with pytest.raises(ConfigError, match="variance"):
        gaussian(0.0)
