"""The posterior over masks, against SciPy's densities of every mask, and by what must not change it."""

from dataclasses import replace
from functools import partial
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from icl_lab.baselines.gradient_descent import gd
from icl_lab.baselines.linear_mmse import linear_mmse, ridge
from icl_lab.baselines.mask_bayes import CELLS, MAX_PAIRS, check_masks, mask_bayes, mask_posterior
from icl_lab.src import prng
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import draw_context
from icl_lab.src.data_config import DataConfig
from tests import reference

SIGMAS = 4.0
DATA = DataConfig(dim=3, num_pairs=4, noise_std=0.3, weight_scale=1.5)
LABEL_NOISE = ContextConfig(noise_mode="label_noise", noise_p=0.3, noise_sigma=0.7)
RANDOM_PAIRS = ContextConfig(noise_mode="random_pairs", noise_p=0.3)
MODES = pytest.mark.parametrize("context", [LABEL_NOISE, RANDOM_PAIRS], ids=lambda context: context.noise_mode)

close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
tasks = partial(reference.random_batch, pairs=4, dim=3)


def every_mask(x, y, x_query, data, context):
    """One task's posterior means of query and clean pairs: SciPy's density, the Gaussian's conditional mean."""
    p, s, pairs = context.noise_p, data.weight_scale, len(y)
    gram, towards_query = s**2 * x @ x.T, s**2 * x @ x_query
    weights, predictions, clean = [], [], []
    for mask in product((False, True), repeat=pairs):
        hit = np.array(mask)
        covariance, cross = gram + data.noise_std**2 * np.eye(pairs), towards_query
        if context.noise_mode == "label_noise":
            covariance = covariance + context.noise_sigma**2 * np.diag(hit)
        else:
            covariance = np.where((hit[:, None] | hit[None, :]) & ~np.eye(pairs, dtype=bool), 0, covariance)
            cross = np.where(hit, 0, cross)
        prior = p ** hit.sum() * (1 - p) ** (~hit).sum()
        weights.append(prior * np.exp(multivariate_normal.logpdf(y, np.zeros(pairs), covariance)))
        predictions.append(cross @ np.linalg.solve(covariance, y))
        clean.append(~hit)
    return np.dot(weights, predictions) / np.sum(weights), np.dot(weights, clean) / np.sum(weights)


@MODES
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("pairs", "dim", "noise"), [(4, 3, 0.3), (4, 6, 0.3), (4, 5, 0.0), (3, 2, 0.3), (3, 3, 0.0)])
def test_equals_a_sum_over_all_masks(context, p, pairs, dim, noise):
    batch = reference.random_batch(1, size=20, pairs=pairs, dim=dim)
    data, context = replace(DATA, noise_std=noise), replace(context, noise_p=p)
    every = [
        every_mask(x, y, query, data, context) for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True)
    ]
    predictions, clean = (np.array(part) for part in zip(*every, strict=True))
    found = mask_posterior(batch, data, context)
    close(found.prediction, predictions)
    close(found.clean, clean)
    assert found.prediction.dtype == found.clean.dtype == np.float64
    np.testing.assert_array_equal(mask_bayes(batch, data, context), found.prediction)


@MODES
def test_a_task_among_many_is_as_alone(context):
    """More tasks than a chunk holds, the last chunk in part."""
    size = 2 * (CELLS >> 10) + 3
    data, batch = replace(DATA, num_pairs=10), reference.random_batch(2, size=size, pairs=10)
    together = mask_bayes(batch, data, context)
    assert together.shape == (size,)
    for b in range(0, size, 13):
        close(mask_bayes(Batch(*(part[b : b + 1] for part in batch)), data, context), together[b : b + 1])


@MODES
def test_float32_is_read_as_float64(context):
    narrow = Batch(*(jnp.asarray(part, jnp.float32) for part in tasks(3)))
    wide = Batch(*(np.asarray(part, np.float64) for part in narrow))
    np.testing.assert_array_equal(mask_bayes(narrow, DATA, context), mask_bayes(wide, DATA, context))


# Limits.


@MODES
@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_where_one_mask_is_left_it_is_linear(context, p, noise, x64):
    """p = 0: ridge, least squares without noise. p = 1: ridge with sigma^2 for label noise, 0 for random pairs."""
    batch, data = tasks(4), replace(DATA, noise_std=noise)
    variance = noise**2 + p * 0.7**2
    expected = 0 * batch.y_query if p == 1 and context == RANDOM_PAIRS else ridge(batch, variance / 1.5**2)
    found = mask_posterior(batch, data, replace(context, noise_p=p))
    close(found.prediction, expected)
    np.testing.assert_array_equal(found.clean, np.full((len(batch.y), 4), 1 - p))


@MODES
@pytest.mark.parametrize(("p", "limit"), [(1e-13, 0.0), (1 - 1e-13, 1.0)])
def test_masks_tend_to_that_limit(context, p, limit, x64):
    """Here all masks are tried: labels that a teacher gave, so that neither limit is far-fetched."""
    batch = tasks(5)
    batch = batch._replace(y=np.einsum("bnd,bd->bn", batch.x, batch.w))
    found, expected = (mask_bayes(batch, DATA, replace(context, noise_p=q)) for q in (p, limit))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_noise_of_no_strength_is_none(x64):
    batch = tasks(6)
    close(mask_bayes(batch, DATA, replace(LABEL_NOISE, noise_sigma=0.0)), ridge(batch, (0.3 / 1.5) ** 2))
    faint = mask_bayes(batch, DATA, replace(LABEL_NOISE, noise_sigma=1e-6))
    np.testing.assert_allclose(faint, ridge(batch, (0.3 / 1.5) ** 2), rtol=1e-8, atol=1e-8)


def test_strong_noise_gives_its_pairs_away():
    """Labels off by 10^4 are left out: the prediction is that of the other pairs."""
    batch, context = tasks(7, size=20), replace(LABEL_NOISE, noise_sigma=1e4)
    loud = batch._replace(y=batch.y + np.array([0, 1e4, 0, 0]))
    rest = Batch(np.delete(batch.x, 1, axis=1), np.delete(batch.y, 1, axis=1), *batch[2:])
    np.testing.assert_allclose(mask_bayes(loud, DATA, context), mask_bayes(rest, DATA, context), atol=1e-2)
    found, others = mask_posterior(loud, DATA, context).clean, mask_posterior(rest, DATA, context).clean
    np.testing.assert_allclose(found[:, 1], 0, atol=1e-6)
    np.testing.assert_allclose(np.delete(found, 1, axis=1), others, atol=1e-2)


@MODES
def test_a_pair_told_twice_is_clean(context):
    """Without observation noise two equal pairs cannot both be corrupted: the limit of little noise, and no NaN."""
    batch = reference.random_batch(8, size=20, pairs=4, dim=5)
    twice = batch._replace(x=batch.x[:, [0, 0, 1, 2]], y=batch.y[:, [0, 0, 1, 2]])
    found, expected = (mask_bayes(twice, replace(DATA, noise_std=noise), context) for noise in (0.0, 1e-5))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@MODES
def test_an_input_of_zero_tells_nothing(context):
    batch = reference.random_batch(9, pairs=4, dim=5)
    more = batch._replace(
        x=np.insert(batch.x, 2, 0, axis=1), y=np.insert(batch.y, 2, 0 if context == RANDOM_PAIRS else 0.4, axis=1)
    )
    for noise in (0.3, 0.0) if context == RANDOM_PAIRS else (0.3,):
        data = replace(DATA, noise_std=noise)
        close(mask_bayes(more, data, context), mask_bayes(batch, data, context))


# What must not change it, and what must change with it.

seeds, modes = st.integers(0, 10_000), st.sampled_from([LABEL_NOISE, RANDOM_PAIRS])


@given(seeds, modes, st.permutations(range(4)))
def test_order_does_not_matter(seed, context, order):
    batch = tasks(seed)
    found = mask_posterior(batch._replace(x=batch.x[:, order], y=batch.y[:, order]), DATA, context)
    expected = mask_posterior(batch, DATA, context)
    close(found.prediction, expected.prediction)
    close(found.clean, expected.clean[:, order])


@given(seeds, modes)
def test_directions_do_not_matter(seed, context):
    """Inputs and query turned alike."""
    batch = tasks(seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    turned = batch._replace(x=batch.x @ turn, x_query=batch.x_query @ turn)
    np.testing.assert_allclose(
        mask_bayes(turned, DATA, context), mask_bayes(batch, DATA, context), rtol=1e-8, atol=1e-8
    )


@given(seeds, modes)
def test_the_prediction_is_linear_in_the_query(seed, context):
    """It is a posterior mean of weights times the query; in the labels it is odd but not linear."""
    first, second = tasks(seed), tasks(seed + 1)
    both = first._replace(x_query=2 * first.x_query - second.x_query)
    other = first._replace(x_query=second.x_query)
    parts = [mask_bayes(batch, DATA, context) for batch in (first, other, both)]
    np.testing.assert_allclose(2 * parts[0] - parts[1], parts[2], rtol=1e-8, atol=1e-8)
    close(mask_bayes(first._replace(y=-first.y), DATA, context), -parts[0])
    assert np.abs(mask_bayes(first._replace(y=3 * first.y), DATA, context) - 3 * parts[0]).max() > 1e-3


@given(seeds, modes, st.floats(0.01, 100))
def test_units_do_not_matter(seed, context, unit):
    """Labels, weights and noise in another unit; then inputs in another unit, and weights in its inverse."""
    batch = tasks(seed)
    expected = mask_bayes(batch, DATA, context)
    data = replace(DATA, weight_scale=unit * 1.5, noise_std=unit * 0.3)
    scaled = mask_bayes(batch._replace(y=unit * batch.y), data, replace(context, noise_sigma=unit * 0.7))
    np.testing.assert_allclose(scaled, unit * expected, rtol=1e-8, atol=1e-8 * unit)
    stretched = batch._replace(x=unit * batch.x, x_query=unit * batch.x_query)
    found = mask_bayes(stretched, replace(DATA, weight_scale=1.5 / unit), context)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@MODES
def test_its_error_has_nothing_to_do_with_what_was_seen(context):
    """E[(y - E[y | seen]) f(seen)] = 0 for every f: here other predictors, and its own prediction."""
    data = DataConfig(dim=5, num_pairs=5)
    batch = draw_context(prng.key(1), data, context, 20_000).batch
    prediction = mask_bayes(batch, data, context)
    surprise = np.asarray(batch.y_query, np.float64) - prediction
    for other in (prediction, np.asarray(linear_mmse(batch, data, context)), np.asarray(gd(batch, 1.0))):
        products = surprise * other
        assert abs(products.mean()) < SIGMAS * products.std() / np.sqrt(products.size)


@MODES
def test_of_pairs_that_are_clean_with_a_probability_that_share_is_clean(context):
    """E[(clean - P(clean | seen)) f(seen)] = 0: the posterior is calibrated, over all pairs and in each tenth."""
    data = DataConfig(dim=5, num_pairs=5)
    drawn = draw_context(prng.key(2), data, context, 20_000)
    found = mask_posterior(drawn.batch, data, context).clean
    surprise = ~np.asarray(drawn.hit) - found
    for chosen in (np.full(found.shape, True), *(np.floor(10 * found) == tenth for tenth in range(10))):
        if chosen.sum() > 1000:
            by_task = np.where(chosen, surprise, 0).sum(axis=1)
            assert abs(by_task.mean()) < SIGMAS * by_task.std() / np.sqrt(len(by_task))
    assert found.std() > 0.05


# Where it has no answer.


@MODES
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_pairs": MAX_PAIRS + 1}, r"num_pairs is 17; .* tries all 2\^17 of them, so it must be at most 16$"),
        ({"noise_std": 0.0}, "num_pairs is 4 with dim 3 and no observation noise; .* needs noise_std above 0"),
        ({"num_distractors": 1}, "not defined for distractor labels"),
    ],
)
def test_refuses_in_one_sentence(context, change, words):
    data = replace(DATA, **change)
    batch = reference.random_batch(1, pairs=data.num_pairs, dim=3)
    with pytest.raises(ConfigError, match=words) as caught:
        mask_bayes(batch, data, context)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(ConfigError, match=words):
        check_masks(data, context)


def test_the_sizes_are_those_of_the_batch():
    """Not those of the law it was asked for: longer contexts than trained on are refused, not tried."""
    with pytest.raises(ConfigError, match="num_pairs is 17"):
        mask_bayes(reference.random_batch(1, pairs=17, dim=3), DATA, LABEL_NOISE)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_one_mask_is_never_too_many(p, x64):
    batch, data = reference.random_batch(1, pairs=20, dim=3), DataConfig(dim=3, num_pairs=20)
    check_masks(data, replace(LABEL_NOISE, noise_p=p))
    close(mask_bayes(batch, data, replace(LABEL_NOISE, noise_p=p)), ridge(batch, p * 0.7**2))
