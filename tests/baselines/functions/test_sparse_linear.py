"""The posterior of sparse functions against a sum over supports in SciPy, ridge, and least squares."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from icl_lab.baselines.functions.gaussian import linear_posterior
from icl_lab.baselines.functions.linear import least_squares
from icl_lab.baselines.functions.sparse_linear import sparse_posterior
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-8)


def prompts(seed, size, pairs, dim, sparsity):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(size, pairs, dim)), np.zeros((size, dim))
    for each in w:
        each[rng.permutation(dim)[:sparsity]] = rng.normal(size=sparsity)
    return x, np.einsum("bnd,bd->bn", x, w)


def test_it_is_the_sum_over_supports():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 6, 4)), rng.normal(size=(3, 6))
    found = sparse_posterior(x, y, 2, noise_variance=0.3)
    for b, k in ((0, 1), (1, 3), (2, 5)):
        densities, means = [], []
        for support in map(list, combinations(range(4), 2)):
            inputs = x[b, :k, support].T
            covariance = inputs @ inputs.T + 0.3 * np.eye(k)
            densities.append(multivariate_normal.pdf(y[b, :k], np.zeros(k), covariance))
            means.append(x[b, k, support] @ inputs.T @ np.linalg.solve(covariance, y[b, :k]))
        close(found.mean[b, k], np.average(means, weights=densities))
        close(found.log_evidence[b, k], np.log(np.mean(densities)))


def test_a_sparsity_of_all_dimensions_is_ridge():
    x, y = prompts(1, 4, 7, 3, 3)
    for mine, other in zip(sparse_posterior(x, y, 3, 0.2), linear_posterior(x, y, 0.2), strict=True):
        close(mine, other)


def test_without_noise_the_function_is_known_after_one_pair_more_than_its_weights():
    """Labels and inputs in float32, as runs have them."""
    x, y = (part.astype(np.float32) for part in prompts(2, 300, 8, 10, 2))
    found = sparse_posterior(x, y, 2).mean
    errors = np.sort(np.abs(found - y), axis=0)
    assert np.all(errors[-4, 3:] < 1e-2)
    assert np.all(np.mean(errors[:, 1:3] ** 2, axis=0) > 0.1)


def test_on_sparse_functions_it_loses_less_than_others_and_is_calibrated():
    x, y = prompts(3, 2000, 3, 6, 2)
    found, target = sparse_posterior(x, y, 2).mean[:, 2], y[:, 2]
    for other in (least_squares(x, y), sparse_posterior(x, y, 3).mean, sparse_posterior(x, y, 5).mean):
        excess = (other[:, 2] - target) ** 2 - (found - target) ** 2
        assert excess.mean() > 3 * excess.std() / np.sqrt(len(excess))
    assert abs(found @ target / (found @ found) - 1) < 5 * np.std(target - found) / np.sqrt(found @ found)


def test_bad_sparsity_is_refused():
    with pytest.raises(ConfigError, match="at most the 3"):
        sparse_posterior(np.zeros((1, 2, 3)), np.zeros((1, 2)), 4)
    with pytest.raises(ConfigError, match="supports"):
        sparse_posterior(np.zeros((1, 2, 40)), np.zeros((1, 2)), 10)
