"""Posteriors by sampling against quadrature, orthant probabilities and calibration; their errors are what they say."""

from functools import partial

import numpy as np
import pytest

from icl_lab.baselines.functions.logistic_sampling import logistic_posterior
from icl_lab.baselines.functions.sign_sampling import sign_posterior
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


def prompts(seed, size, pairs, dim, logistic=False):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(size, pairs, dim)), rng.normal(size=(size, dim))
    logits = np.einsum("bnd,bd->bn", x, w)
    noise = rng.logistic(size=logits.shape) if logistic else 0
    return x, np.where(logits + noise > 0, 1.0, -1.0)


def within(found, expected, most=4.0):
    """Standardised errors are of size 1, and none is above 4; 1e-6 stands for an error of 0."""
    z = (found.mean - expected) / (found.standard_error + 1e-6)
    assert np.abs(z).max() < most
    return np.sqrt(np.mean(z**2))


def by_quadrature(x, y, std):
    """Mean label and log evidence on a grid of weights in two dimensions, 8 standard deviations wide."""
    line = np.linspace(-8, 8, 321)
    w = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = np.exp(-0.5 * (w**2).sum(axis=1)) * (line[1] - line[0]) ** 2 / (2 * np.pi)
    means, evidences = [], []
    for each, label in zip(x, y, strict=True):
        chance = 1 / (1 + np.exp(-std * w @ each))
        means.append(weights @ (2 * chance - 1) / weights.sum())
        evidences.append(np.log(weights.sum()))
        weights = weights * np.where(label > 0, chance, 1 - chance)
    return np.array(means), np.array(evidences)


@pytest.mark.parametrize("std", [1.0, 3.0])
def test_logistic_sampling_is_quadrature_within_its_error(std):
    x, y = prompts(0, 4, 15, 2, logistic=True)
    found = logistic_posterior(x, y, std, samples=2000)
    expected = [by_quadrature(*each, std) for each in zip(x, y, strict=True)]
    assert 0.6 < within(found, np.array([mean for mean, _ in expected])) < 1.5
    np.testing.assert_allclose(found.log_evidence, [evidence for _, evidence in expected], atol=0.15)
    assert found.standard_error.max() < 0.05


def test_logistic_sampling_survives_inputs_that_are_far_and_labels_that_are_separable():
    x, y = prompts(1, 5, 20, 3)
    found = logistic_posterior(10 * x, y, weight_std=5.0)
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.log_evidence).all()
    assert np.mean(np.sign(found.mean[:, 10:]) == y[:, 10:]) > 0.8


def test_in_two_dimensions_the_sign_is_a_share_of_an_arc():
    """w's angle is uniform where the labels hold: 20 000 angles."""
    x, y = prompts(2, 6, 6, 2)
    found = sign_posterior(x, y)
    angles = np.linspace(0, 2 * np.pi, 20_000, endpoint=False)
    sides = np.sign(np.einsum("bnd,dw->bnw", x, np.stack([np.cos(angles), np.sin(angles)])))
    for b in range(6):
        alive = np.ones(len(angles), bool)
        for k in range(6):
            assert abs(found.mean[b, k] - sides[b, k, alive].mean()) < 0.08
            np.testing.assert_allclose(found.log_evidence[b, k], np.log(alive.mean()), atol=0.15)
            alive &= sides[b, k] == y[b, k]


def test_three_labels_have_the_orthant_probability():
    """P = 1/8 + sum of asin of the three correlations / (4 pi), whatever D is; the prediction is a ratio of these."""
    x, y = prompts(3, 40, 4, 6)
    unit = x[:, :3] * y[:, :3, None] / np.linalg.norm(x[:, :3], axis=2, keepdims=True)
    angle = np.arcsin(np.einsum("bid,bjd->bij", unit, unit)[:, [0, 0, 1], [1, 2, 2]])
    two, three = 0.25 + angle[:, 0] / (2 * np.pi), 0.125 + angle.sum(axis=1) / (4 * np.pi)
    found = sign_posterior(x, y)
    off = found.mean[:, 2] * y[:, 2] - (2 * three / two - 1)
    assert np.sqrt(np.mean(off**2)) < 0.03
    assert 0.4 < np.sqrt(np.mean(off**2) / np.mean(found.standard_error[:, 2] ** 2)) < 2
    np.testing.assert_allclose(found.log_evidence[:, 3], np.log(three), atol=0.15)


@pytest.mark.parametrize("method", [sign_posterior, logistic_posterior])
def test_it_is_calibrated_and_knows_the_pairs_before_it_alone(method):
    """E[y mean] = E[mean^2] within 4 standard errors, at a late position."""
    x, y = prompts(4, 300, 8, 4, logistic=method is logistic_posterior)
    found = method(x, y)
    mean, target = found.mean[:, 7], y[:, 7]
    excess = mean * (target - mean)
    assert abs(excess.mean()) < 4 * excess.std() / np.sqrt(len(excess))
    assert np.mean(mean**2) > 0.1
    later = y.copy()
    later[:, 6:] *= -1
    close(method(x[:16], later[:16]).mean[:, :7], method(x[:16], y[:16]).mean[:, :7])


def test_a_label_that_no_function_explains_is_left_out():
    """The same input with both labels: the second changes nothing, and the third is predicted as after the first."""
    x = np.array([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]])
    found = sign_posterior(x, np.array([[1.0, -1.0, 1.0]]))
    close(found.mean[0], [0, 1, 1], atol=1e-3)  # half of one of 1280 draws stays on the other side


def test_bad_settings_are_refused():
    x, y = prompts(5, 2, 3, 2)
    with pytest.raises(ConfigError, match="multiple of 4"):
        sign_posterior(x, y, particles=10)
    with pytest.raises(ConfigError, match="weight_std"):
        logistic_posterior(x, y, weight_std=0.0)
