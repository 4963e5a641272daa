"""The posterior of a mixture of Gaussians against SciPy's densities, numbers of theory and special cases."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from icl_lab.baselines import bayes, linear_mmse, mixture
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.data_config import PoolData
from icl_lab.src.prng import key
from icl_lab.src.sequences import sequences_with, tasks_of
from tests import reference

close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)
NOISE, SCALE = 0.25, 2.0
DATA = PoolData(dim=4, num_pairs=17, input_distribution="gaussian", noise_std=0.5, weight_scale=SCALE)


def arrays(batch):
    return Batch(*map(jnp.asarray, batch))


def by_scipy(batch, means, variance, noise):
    """p_k from N(y; X mu_k, tau^2 X X' + s^2 I), and mu_k + tau^2 X' (tau^2 X X' + s^2 I)^-1 (y - X mu_k)."""
    found = []
    for x, y in zip(np.asarray(batch.x), np.asarray(batch.y), strict=True):
        covariance = variance * x @ x.T + noise * np.eye(len(y))
        logs = np.array([multivariate_normal.logpdf(y, x @ mean, covariance) for mean in means])
        of_each = [mean + variance * x.T @ np.linalg.solve(covariance, y - x @ mean) for mean in means]
        found.append((reference.softmax(logs), np.stack(of_each)))
    return (np.stack(part) for part in zip(*found, strict=True))


@pytest.mark.parametrize("pairs", [1, 3, 9])
@pytest.mark.parametrize("noise", [0.01, NOISE, 4.0])
def test_the_posterior_is_that_of_scipys_densities(pairs, noise, x64):
    """With fewer and with more pairs than dimensions, and components of any centres."""
    batch = arrays(reference.random_batch(0, size=6, pairs=pairs, dim=4))
    means = np.random.default_rng(1).normal(size=(3, 4))
    probabilities, of_each = by_scipy(batch, means, 0.3, noise)
    found = mixture.posterior(batch, jnp.asarray(means), 0.3, noise)
    close(found.probabilities, probabilities, atol=1e-9)
    close(found.means, of_each, atol=1e-9)


def test_the_predictions_are_those_of_the_sequence_filter(x64):
    """Two computations: one solve for each number of pairs, and one Kalman filter for all of them."""
    batch = arrays(reference.random_batch(2, size=5, pairs=8, dim=4))
    sequence = Batch(batch.x, batch.y, batch.x, batch.y, batch.w)
    all_at_once = mixture.predict_sequence(sequence, NOISE, SCALE)
    for pairs in (1, 3, 7):
        one = Batch(batch.x[:, :pairs], batch.y[:, :pairs], batch.x[:, pairs], batch.y[:, pairs], batch.w)
        close(mixture.predict(one, NOISE, SCALE), all_at_once[:, pairs], atol=1e-9)


def test_one_component_at_zero_is_ridge(x64):
    batch = arrays(reference.random_batch(3, size=6, pairs=7, dim=4))
    found = mixture.posterior(batch, jnp.zeros((1, 4)), 0.5, NOISE)
    close(found.probabilities, 1)
    close(np.einsum("bd,bd->b", found.means[:, 0], batch.x_query), linear_mmse.ridge(batch, NOISE / 0.5))


def test_float32_stays_near_float64_where_noise_is_small():
    """Noise of standard deviation .01 and 40 pairs: exponents of tens of thousands, whose differences decide."""
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(50, 40, 4)), np.array([2.1, 0.1, -0.2, 0.05])
    y = x @ w + 0.01 * rng.normal(size=(50, 40))
    batch = Batch(x, y, x[:, 0], y[:, 0], np.zeros((50, 4)))
    in_float32 = Batch(*(jnp.asarray(part, jnp.float32) for part in batch))
    found = mixture.predict(in_float32, 1e-4, SCALE)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x[:, 0] @ w, atol=0.05)
    few = Batch(in_float32.x[:, :2], in_float32.y[:, :2], *in_float32[2:])
    probabilities, of_each = by_scipy(few, np.asarray(mixture.prior(4, SCALE)[0]), 0.0625, 1e-4)
    expected = np.einsum("bk,bkd,bd->b", probabilities, of_each, x[:, 0])
    np.testing.assert_allclose(mixture.predict(few, 1e-4, SCALE), expected, atol=2e-3)


# n -> half mean squared error of the posterior mean, of dMMSE on the centres, and of the Gaussian prior of the same
# covariance: a NumPy check of theory, D = 4, x ~ N(0, I), centres +-2 e_1 and +-2 e_2, variances 1/16 and 1/4
NUMBERS = {1: (1.055, 1.103, 1.290), 4: (0.118, 0.181, 0.238), 16: (0.031, 0.124, 0.037)}
# the posterior mean's at w = 2 e_3
ASCENT = {0: 1.93, 1: 3.00, 2: 3.37, 4: 2.62, 8: 1.38, 16: 0.44}
SEQUENCES = 16_384


def half_squares(predictions, batch):
    targets = np.einsum("bkd,bd->bk", np.asarray(batch.x, float), np.asarray(batch.w, float))
    return 0.5 * (np.asarray(predictions, float) - targets) ** 2


def test_losses_are_those_of_theory():
    """Within 4 standard errors here, and as many of the table, which takes as many tasks or fewer."""
    data = replace(DATA, task_distribution="mixture")
    batch = sequences_with(key(1), data, tasks_of(key(2), data, jnp.arange(SEQUENCES, dtype=jnp.uint32)))
    deviations = jnp.sqrt(jnp.array([[2.0625, 2.0625, 0.0625, 0.0625]]))
    predictions = (
        jax.jit(mixture.predict_sequence, static_argnums=(1, 2))(batch, NOISE, SCALE),
        jax.jit(bayes.dmmse, static_argnums=2)(batch, mixture.prior(4, SCALE)[0], NOISE),
        jax.jit(bayes.scale_mixture, static_argnums=3)(batch, deviations, jnp.ones(1), NOISE),
    )
    for place, each in enumerate(predictions):
        losses = half_squares(each, batch)
        for pairs, expected in NUMBERS.items():
            error = losses[:, pairs].std() / np.sqrt(SEQUENCES)
            assert abs(losses[:, pairs].mean() - expected[place]) < 5 * error + 6e-4


def test_more_pairs_first_do_harm_on_a_task_outside_the_prior():
    """The early ascent at w = 2 e_3, within 10 % of numbers from a few thousand tasks."""
    w = jnp.zeros((SEQUENCES, 4)).at[:, 2].set(SCALE)
    batch = sequences_with(key(3), DATA, w)
    losses = half_squares(jax.jit(mixture.predict_sequence, static_argnums=(1, 2))(batch, NOISE, SCALE), batch).mean(0)
    for pairs, expected in ASCENT.items():
        assert losses[pairs] == pytest.approx(expected, rel=0.1)
    assert losses.argmax() == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda batch: mixture.predict(batch, 0.0, 1.0), "noise_variance is 0.0; it must be above 0"),
        (lambda batch: mixture.predict(batch, 1.0, 0.0), "weight_scale is 0.0; it must be above 0"),
        (lambda batch: mixture.posterior(batch, jnp.zeros((2, 3)), 1.0, 1.0), r"it must be \[M, 4\]"),
        (lambda batch: mixture.posterior(batch, jnp.zeros((2, 4)), 0.0, 1.0), "variance is 0.0; it must be above 0"),
    ],
)
def test_what_has_no_posterior_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call(arrays(reference.random_batch(5, size=2, pairs=3, dim=4)))


def test_a_mixture_needs_two_dimensions():
    with pytest.raises(ConfigError, match="dim is 1; 'mixture' tasks have at least 2 dimensions"):
        PoolData(dim=1, task_distribution="mixture")
