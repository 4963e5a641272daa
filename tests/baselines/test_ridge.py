from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge

from icl_lab.baselines.gradient_descent import gd
from icl_lab.baselines.linear_mmse import bayes_penalty, ridge
from icl_lab.src import prng
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from tests import reference

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)  # conditioning takes a digit of float64


def sigmas(values, mean):
    """How many standard errors the mean of independent values is from the expected one."""
    values = np.asarray(values, np.float64)
    return abs(values.mean() - mean) / (values.std() / np.sqrt(values.size))


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("pairs", [3, 4, 9])
def test_equals_scikit_learn(penalty, pairs, x64):
    batch = reference.random_batch(1, pairs=pairs)
    expected = [
        Ridge(alpha=penalty, fit_intercept=False, solver="svd").fit(x, y).predict(query[None])[0]
        for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True)
    ]
    close(ridge(batch, penalty), expected)


@pytest.mark.parametrize("pairs", [2, 4, 9])
def test_without_penalty_it_is_least_squares_of_least_norm(pairs, x64):
    batch = reference.random_batch(2, pairs=pairs)
    expected = [query @ np.linalg.lstsq(x, y)[0] for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True)]
    close(ridge(batch, 0.0), expected)


def test_a_small_penalty_tends_to_none_and_a_large_one_to_a_small_step(x64):
    """ridge -> least squares as the penalty -> 0, and penalty * ridge -> one GD step of size 1 as it grows."""
    batch = reference.random_batch(3, pairs=3)
    np.testing.assert_allclose(ridge(batch, 1e-7), ridge(batch, 0.0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(1e8 * ridge(batch, 1e8), gd(batch, 1.0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("noise", "scale"), [(0.5, 1.0), (0.2, 3.0)])
def test_with_noise_it_is_the_posterior_mean(noise, scale, x64):
    """In the primal: (X'X / noise^2 + I / scale^2)^-1 X'y / noise^2, Bishop 2006, Eq. 3.50 to 3.52."""
    batch = reference.random_batch(4)
    penalty = bayes_penalty(DataConfig(noise_std=noise, weight_scale=scale))
    expected = [
        query @ np.linalg.solve(x.T @ x / noise**2 + np.eye(4) / scale**2, x.T @ y / noise**2)
        for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True)
    ]
    close(ridge(batch, penalty), expected)


@pytest.mark.parametrize("pairs", [1, 5, 9])
def test_the_loss_of_few_noiseless_pairs(pairs):
    """(D - k)/24 with k < D pairs, U(-1/2, 1/2): what is unknown of w is its part outside the span of the inputs."""
    data = DataConfig(num_pairs=pairs)
    batch = sample_batch(prng.key(pairs), data, 10_000)
    errors = 0.5 * (np.asarray(ridge(batch, bayes_penalty(data)), np.float64) - batch.y_query) ** 2
    assert sigmas(errors, (10 - pairs) / 24) < 4


def test_the_bayes_penalty_is_the_best_one():
    """On tasks with observation noise, half and twice the penalty lose, by more than 4 paired standard errors."""
    data = DataConfig(dim=4, num_pairs=6, noise_std=0.5)
    batch = sample_batch(prng.key(9), data, 20_000)
    penalty = bayes_penalty(data)
    assert penalty == bayes_penalty(replace(data, weight_scale=2.0, noise_std=1.0)) == 0.25
    best, low, high = ((np.asarray(ridge(batch, f * penalty)) - batch.y_query) ** 2 for f in (1, 0.4, 2.5))
    for other in (low, high):
        assert stats.ttest_rel(other, best).statistic > 4


def test_without_penalty_it_is_exact_in_float32_too():
    """As many noiseless pairs as dimensions tell w exactly; what float32 loses stays far below any other loss here."""
    batch = sample_batch(prng.key(3), DataConfig(), 4000)
    assert float(0.5 * np.mean((np.asarray(ridge(batch, 0.0)) - np.asarray(batch.y_query)) ** 2)) < 1e-4
