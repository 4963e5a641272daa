"""The best linear predictor on corrupted contexts, against scikit-learn and against a regression on simulated tasks."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from icl_lab.baselines.linear_mmse import bayes_penalty, linear_mmse, ridge
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig
from icl_lab.src.data_config import DataConfig
from tests import reference

SIGMAS = 4.0
DATA = DataConfig(dim=4, num_pairs=6, noise_std=0.3, weight_scale=2.0)
LABEL_NOISE = ContextConfig(noise_mode="label_noise", noise_p=0.3, noise_sigma=0.7)
RANDOM_PAIRS = ContextConfig(noise_mode="random_pairs", noise_p=0.3)

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


def scikit_learn(batch, penalty, shrink=1.0, variances=None):
    """Ridge on inputs times `shrink`, each pair weighed by 1 / variance; predictions on the query times `shrink`."""
    predictions = []
    for b, (x, y, query) in enumerate(zip(batch.x, batch.y, batch.x_query, strict=True)):
        model = Ridge(alpha=penalty, fit_intercept=False, solver="svd")
        model.fit(shrink * x, y, None if variances is None else 1 / variances[b])
        predictions.append(model.predict(query[None])[0])
    return np.array(predictions)


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("p", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("pairs", [3, 6])
def test_label_noise_is_a_ridge(pairs, p, noise, x64):
    """Penalty (noise^2 + p sigma^2) / scale^2, also with more pairs than dimensions."""
    batch = reference.random_batch(1, pairs=pairs)
    found = linear_mmse(batch, replace(DATA, noise_std=noise), replace(LABEL_NOISE, noise_p=p))
    close(found, scikit_learn(batch, (noise**2 + p * 0.7**2) / 2.0**2))


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("p", [0.1, 0.6, 0.99])
@pytest.mark.parametrize("pairs", [3, 6])
def test_random_pairs_are_a_weighted_ridge(pairs, p, noise, x64):
    """Of y_i on (1 - p) x_i with penalty 1, each pair's noise having variance (1 - (1 - p)^2) |x_i|^2 + nu."""
    batch = reference.random_batch(2, pairs=pairs)
    data = replace(DATA, noise_std=noise)
    variances = (1 - (1 - p) ** 2) * np.sum(batch.x**2, axis=2) + bayes_penalty(data)
    found = linear_mmse(batch, data, replace(RANDOM_PAIRS, noise_p=p))
    close(found, scikit_learn(batch, 1.0, 1 - p, variances))


def simulated_labels(rng, tasks, x, x_query, data, context):
    """Labels [T, N] and query labels [T] of many tasks on one context's inputs, straight from the definition."""
    (pairs, dim), s = x.shape, data.weight_scale
    w = s * rng.normal(size=(tasks, dim))
    hit = rng.uniform(size=(tasks, pairs)) < context.noise_p
    y = w @ x.T
    if context.noise_mode == "label_noise":
        y = y + hit * context.noise_sigma * rng.normal(size=y.shape)
    else:
        others = s * rng.normal(size=(tasks, pairs, dim))
        y = np.where(hit, np.einsum("tnd,nd->tn", others, x), y)
    return y + data.noise_std * rng.normal(size=y.shape), w @ x_query


@pytest.mark.parametrize("context", [LABEL_NOISE, RANDOM_PAIRS, replace(RANDOM_PAIRS, noise_p=1.0)])
def test_its_coefficients_are_those_of_a_regression_on_many_tasks(context, x64):
    """Least squares of the query's label on the context's labels, 200 000 tasks on the same inputs.

    The errors are those of a regression with unequal variances: (Y'Y)^-1 Y' diag r^2 Y (Y'Y)^-1, White 1980.
    """
    batch = reference.random_batch(3, size=1, pairs=3, dim=2)
    y, y_query = simulated_labels(np.random.default_rng(4), 200_000, batch.x[0], batch.x_query[0], DATA, context)
    inverse = np.linalg.inv(y.T @ y)
    regression = inverse @ (y.T @ y_query)
    scores = y * (y_query - y @ regression)[:, None]
    errors = np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))
    repeated = batch._replace(x=np.repeat(batch.x, 3, 0), y=np.eye(3), x_query=np.repeat(batch.x_query, 3, 0))
    found = np.asarray(linear_mmse(repeated, DATA, context))  # unit labels read the coefficients off
    assert (np.abs(found - regression) < SIGMAS * errors).all()
    naive = np.asarray(ridge(repeated, bayes_penalty(DATA)))
    assert (np.abs(naive - regression) > 5 * SIGMAS * errors).any()  # the simulation can tell


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("pairs", [3, 6])
@pytest.mark.parametrize("context", [LABEL_NOISE, RANDOM_PAIRS, ContextConfig(noise_p=0.5, noise_sigma=1.0)])
def test_without_hits_it_is_the_bayes_ridge(context, pairs, noise, x64):
    """Least squares of least norm without any noise; clean contexts have no hits whatever p is."""
    batch, data = reference.random_batch(5, pairs=pairs), replace(DATA, noise_std=noise)
    p = 0.5 if context.noise_mode == "clean" else 0.0
    found = linear_mmse(batch, data, replace(context, noise_p=p))
    np.testing.assert_array_equal(found, ridge(batch, noise**2 / 4))
    if noise == 0:
        solution = [np.linalg.lstsq(x, y)[0] for x, y in zip(batch.x, batch.y, strict=True)]
        close(found, np.einsum("bd,bd->b", solution, batch.x_query))


def test_few_hits_tend_to_none(x64):
    batch = reference.random_batch(6, pairs=3)
    for context in (LABEL_NOISE, RANDOM_PAIRS):
        few = linear_mmse(batch, DATA, replace(context, noise_p=1e-8))
        np.testing.assert_allclose(few, ridge(batch, bayes_penalty(DATA)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_where_all_pairs_are_random_nothing_is_known(noise, x64):
    data, context = replace(DATA, noise_std=noise), replace(RANDOM_PAIRS, noise_p=1.0)
    np.testing.assert_array_equal(linear_mmse(reference.random_batch(7), data, context), 0)


@pytest.mark.parametrize(
    ("context", "rate"),
    [
        (LABEL_NOISE, 0.3),
        (RANDOM_PAIRS, 0.3),
        (replace(LABEL_NOISE, noise_sigma=0.0), 0.0),
        (replace(LABEL_NOISE, noise_mode="clean"), 0.0),
    ],
)
def test_the_rate_counts_hits_that_change_something(context, rate):
    assert context.hit_rate == rate


def test_refuses_distractors():
    with pytest.raises(ConfigError, match="not defined for distractor labels"):
        linear_mmse(reference.random_batch(8), replace(DATA, num_distractors=1), LABEL_NOISE)
