"""Gaussian prototypes against joint densities in SciPy, and their calibration."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from icl_lab.baselines.functions.prototypes import prototype_posterior
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


def prompts(seed, size, pairs, dim, classes, spread, variance):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=(size, pairs))
    centres = np.sqrt(spread) * rng.normal(size=(size, classes, dim))
    centred = np.take_along_axis(centres, y[:, :, None], axis=1)
    return centred + np.sqrt(variance) * rng.normal(size=(size, pairs, dim)), y


def joint(x, y, classes, spread, variance):
    """log p(x, y): inputs of one class share their prototype, coordinate by coordinate."""
    total = -len(y) * np.log(classes)
    for name in range(classes):
        of_class = x[y == name]
        covariance = spread * np.ones((len(of_class), len(of_class))) + variance * np.eye(len(of_class))
        for column in of_class.T if len(of_class) else ():
            total += multivariate_normal.logpdf(column, np.zeros(len(of_class)), covariance)
    return total


def test_it_is_bayes_rule_on_the_joint_density():
    x, y = prompts(0, 2, 6, 2, 3, 2.0, 0.5)
    found = prototype_posterior(x, y, 3, 2.0, 0.5)
    for b, k in ((0, 0), (0, 3), (1, 5)):
        logs = np.array([joint(x[b, : k + 1], np.append(y[b, :k], c), 3, 2.0, 0.5) for c in range(3)])
        standard = multivariate_normal.logpdf(x[b, : k + 1].ravel(), np.zeros(2 * k + 2))
        close(np.exp(found.log_probabilities[b, k]), np.exp(logs) / np.exp(logs).sum())
        close(found.log_evidence[b, k], np.log(np.exp(logs).sum()) - standard)


def test_probabilities_are_calibrated_and_other_variances_lose_more():
    x, y = prompts(1, 4000, 5, 3, 2, 1.0, 1.0)
    logs = prototype_posterior(x, y, 2).log_probabilities
    chance = np.exp(logs[:, 4, 1])
    for low in np.arange(0, 1, 0.2):
        inside = (chance >= low) & (chance < low + 0.2)
        error = np.sqrt(np.mean(chance[inside] * (1 - chance[inside])) / inside.sum())
        assert abs(np.mean(y[inside, 4]) - chance[inside].mean()) < 4 * error
    own = np.take_along_axis(logs, y[:, :, None], axis=2)[:, 4].mean()
    for spread, variance in ((0.3, 1.0), (4.0, 1.0), (1.0, 0.4), (1.0, 3.0)):
        other = prototype_posterior(x, y, 2, spread, variance).log_probabilities
        assert np.take_along_axis(other, y[:, :, None], axis=2)[:, 4].mean() < own


def test_labels_are_classes():
    with pytest.raises(ConfigError, match="from 0 to 1"):
        prototype_posterior(np.zeros((1, 2, 3)), np.array([[0, 2]]), 2)
