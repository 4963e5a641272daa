"""Mixtures of classes: two noise levels from densities in SciPy, special cases, and the loss."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from icl_lab.baselines.functions.decision_trees import tree_posterior
from icl_lab.baselines.functions.gaussian import linear_posterior
from icl_lab.baselines.functions.mixture import class_probabilities, mixture
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


def two_noises(seed, size, pairs=6, dim=3):
    rng = np.random.default_rng(seed)
    x, is_noisy = rng.normal(size=(size, pairs, dim)), rng.random(size) < 0.25
    noise = rng.normal(size=(size, pairs)) * np.where(is_noisy, 1.0, 0.1)[:, None]
    clean = np.einsum("bnd,bd->bn", x, rng.normal(size=(size, dim)))
    return x, clean + noise, is_noisy, clean


def test_weights_are_the_densities_of_the_labels():
    x, y, _, _ = two_noises(0, 3)
    parts = [linear_posterior(x, y, 0.01), linear_posterior(x, y, 1.0)]
    found = mixture(parts, [0.75, 0.25])
    for b, k in ((0, 2), (1, 5)):
        gram = x[b, :k] @ x[b, :k].T
        densities = [
            prior * multivariate_normal.pdf(y[b, :k], np.zeros(k), gram + noise * np.eye(k))
            for prior, noise in ((0.75, 0.01), (0.25, 1.0))
        ]
        close(class_probabilities(parts, [0.75, 0.25])[b, :, k], densities / np.sum(densities))
        close(found.mean[b, k], np.average([part.mean[b, k] for part in parts], weights=densities))
        close(found.log_evidence[b, k], np.log(np.sum(densities)))


def test_a_mixture_of_one_class_is_the_class():
    x, y, _, _ = two_noises(1, 3)
    part = linear_posterior(x, y, 0.5)
    for mixed in (mixture([part]), mixture([part, part], [0.3, 0.7]), mixture([mixture([part]), part])):
        close(mixed.mean, part.mean)
        close(mixed.log_evidence, part.log_evidence)


def test_probabilities_of_classes_are_calibrated_and_nothing_loses_less():
    x, y, is_noisy, clean = two_noises(2, 16_000)
    parts = [linear_posterior(x, y, 0.01), linear_posterior(x, y, 1.0)]
    noisy = class_probabilities(parts, [0.75, 0.25])[:, 1, 4]
    for low, high in ((0, 0.2), (0.2, 0.8), (0.8, 1.01)):
        inside = (noisy >= low) & (noisy < high)
        error = np.sqrt(np.mean(noisy[inside] * (1 - noisy[inside])) / inside.sum())
        assert abs(is_noisy[inside].mean() - noisy[inside].mean()) < 4 * error
    mixed = mixture(parts, [0.75, 0.25]).mean
    between = (noisy > 0.2) & (noisy < 0.8)
    likelier = np.where(noisy > 0.5, parts[1].mean[:, 4], parts[0].mean[:, 4])
    for other in (parts[0].mean[:, 4], parts[1].mean[:, 4], likelier):
        excess = (other - clean[:, 4])[between] ** 2 - (mixed[:, 4] - clean[:, 4])[between] ** 2
        assert excess.mean() > 3 * excess.std() / np.sqrt(between.sum())


def test_trees_and_linear_functions_are_told_apart():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 20, 4))
    labels = np.where(np.arange(40)[:, None] < 20, x @ np.ones(4), np.where(x[..., 1] > 0, 0.3, -1.0))
    parts = [linear_posterior(x, labels), tree_posterior(x, labels, 2)]
    found = class_probabilities(parts)[:, :, 19]
    close(found[:20, 0], 1, atol=1e-6)
    close(found[20:, 1], 1, atol=1e-6)


def test_bad_priors_are_refused():
    x, y, _, _ = two_noises(4, 2)
    part = linear_posterior(x, y, 0.5)
    for priors in ([1.0], [0.5, 0.4], [1.0, 0.0]):
        with pytest.raises(ConfigError, match="sum to 1"):
            mixture([part, part], priors)
