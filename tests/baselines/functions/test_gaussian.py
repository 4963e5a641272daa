"""Gaussian posteriors at all positions at once, against scikit-learn, SciPy and the Kalman filter of `bayes`."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct

from icl_lab.baselines import bayes
from icl_lab.baselines.functions.fourier import fourier_features, fourier_posterior
from icl_lab.baselines.functions.gaussian import arc_cosine_kernel, arc_cosine_regression, linear_posterior
from icl_lab.baselines.functions.linear import least_squares
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-8)


def prompts(seed=0, size=4, pairs=8, dim=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(size, pairs, dim)), rng.normal(size=(size, pairs))


def test_the_mean_is_scikit_learns_gaussian_process():
    x, y = prompts()
    found = linear_posterior(x, y, 0.3).mean
    for k in (1, 3, 7):
        process = GaussianProcessRegressor(DotProduct(0, "fixed"), alpha=0.3, optimizer=None)
        close(found[0, k], process.fit(x[0, :k], y[0, :k]).predict(x[0, k : k + 1])[0])


def test_the_evidence_is_the_density_of_the_labels():
    x, y = prompts()
    found = linear_posterior(x, y, 0.3, weight_variance=2.0).log_evidence
    close(found[:, 0], 0)
    for k in (1, 4, 7):
        covariance = 2 * x[1, :k] @ x[1, :k].T + 0.3 * np.eye(k)
        close(found[1, k], multivariate_normal.logpdf(y[1, :k], np.zeros(k), covariance))


def test_ridge_is_the_kalman_filter(x64):
    x, y = map(jnp.asarray, prompts())
    close(linear_posterior(x, y, 0.7).mean, bayes.ridge(Batch(x, y, x, y, x[:, 0]), 0.7))


def test_without_noise_linear_bayes_is_least_squares():
    """On labels that are linear, which both find from k = D on; 1e-9 is the noise that stands for none."""
    x, _ = prompts()
    y = x @ np.array([1.0, 2, 3])
    close(linear_posterior(x, y).mean, least_squares(x, y), atol=1e-5)


def test_the_arc_cosine_kernel_is_the_covariance_of_networks():
    """2 E[relu(u.x) relu(u.x')] over 400 000 draws of u, within 5 standard errors; its diagonal is |x|^2."""
    x, _ = prompts(size=1, pairs=4)
    u = np.random.default_rng(1).normal(size=(400_000, 3))
    hidden = np.maximum(u @ x[0].T, 0)
    products = 2 * hidden[:, :, None] * hidden[:, None, :]
    errors = products.std(axis=0) / np.sqrt(len(u))
    assert np.all(np.abs(products.mean(axis=0) - arc_cosine_kernel(x)[0]) < 5 * errors)
    close(np.diag(arc_cosine_kernel(x)[0]), (x[0] ** 2).sum(axis=1))


def test_inputs_that_are_0_have_no_covariance():
    assert not arc_cosine_kernel(np.zeros((1, 2, 3))).any()


def test_arc_cosine_regression_reproduces_a_repeated_pair_and_beats_least_squares_on_networks():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(100, 25, 4))
    x[:, 24] = x[:, 3]
    a, u = rng.normal(size=(100, 50)), rng.normal(size=(100, 50, 4))
    y = np.sqrt(2 / 50) * np.einsum("br,bnr->bn", a, np.maximum(np.einsum("bnd,brd->bnr", x, u), 0))
    found, plain = arc_cosine_regression(x, y), least_squares(x, y)
    close(found[:, 24], y[:, 24], atol=1e-5)
    assert np.mean((found - y)[:, 15:24] ** 2) < 0.5 * np.mean((plain - y)[:, 15:24] ** 2)


def test_fourier_regression_finds_a_series_of_its_order():
    """After 2 K + 1 pairs, as there are so many coefficients; the mean is a regression on sines and cosines."""
    x = np.random.default_rng(3).uniform(-5, 5, size=(6, 9, 1))
    series = 0.5 + np.cos(np.pi * x[..., 0] / 5) - 2 * np.sin(2 * np.pi * x[..., 0] / 5)
    found = fourier_posterior(x, series, order=2).mean
    close(found[:, 7:], series[:, 7:], atol=1e-3)
    assert fourier_features(x, 2).shape == (6, 9, 5)
    noisy = fourier_posterior(x, series, 2, noise_variance=0.5, weight_variance=2.0).mean
    close(noisy, linear_posterior(fourier_features(x, 2), series, 0.25).mean)


def test_noise_that_rounding_would_lose_counts_as_none():
    x = np.random.default_rng(5).normal(size=(20, 11, 5))
    y = x @ np.arange(1.0, 6.0)
    np.testing.assert_array_equal(linear_posterior(x, y, 1e-16).mean, linear_posterior(x, y).mean)


def test_a_variance_is_above_0():
    x, y = prompts()
    with pytest.raises(ConfigError, match="noise_variance"):
        linear_posterior(x, y, 0.0)


def test_the_mean_is_calibrated_and_the_evidence_prefers_the_model_that_drew_the_labels():
    """Slope of labels on predictions 1 within 5 standard errors; Gibbs: no other model has more evidence on average."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2000, 6, 3))
    y = np.einsum("bnd,bd->bn", x, rng.normal(size=(2000, 3))) + rng.normal(size=(2000, 6)) / 2
    found = linear_posterior(x, y, 0.25)
    mean, target = found.mean[:, 4], y[:, 4]
    assert abs(mean @ target / (mean @ mean) - 1) < 5 * np.std(target - mean) / np.sqrt(mean @ mean)
    for other in ((0.1, 1.0), (0.6, 1.0), (0.25, 0.4), (0.25, 2.5)):
        assert linear_posterior(x, y, *other).log_evidence[:, 5].mean() < found.log_evidence[:, 5].mean()
