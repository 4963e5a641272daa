"""Predictors for sparse tasks against sums over supports in NumPy, scikit-learn's lasso, special cases and theory."""

from functools import partial
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import Lasso

from icl_lab.baselines import bayes, linear_mmse, sparse
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.data_config import PoolData
from icl_lab.src.prng import key
from icl_lab.src.sequences import sequences_with, tasks_of
from icl_lab.src.tasks import NONZERO
from tests import reference

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
NOISE, SCALE = 0.25, 1.5


def arrays(batch):
    return Batch(*map(jnp.asarray, batch))


def by_supports(batch, noise, scale, probability):
    """From the definition, one support at a time: its density of the labels, and the Gaussian posterior mean in it."""
    found = []
    for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True):
        logs, means = [], []
        for on in product((0.0, 1.0), repeat=x.shape[1]):
            prior = scale**2 / probability * np.diag(on)
            covariance = x @ prior @ x.T + noise * np.eye(len(y))
            size = sum(on)
            chance = size * np.log(probability) + (len(on) - size) * np.log(1 - probability)
            logs.append(chance + multivariate_normal.logpdf(y, np.zeros(len(y)), covariance))
            means.append(query @ prior @ x.T @ np.linalg.solve(covariance, y))
        found.append(reference.softmax(np.array(logs)) @ np.array(means))
    return np.array(found)


@pytest.mark.parametrize("pairs", [1, 3, 8])
@pytest.mark.parametrize("probability", [NONZERO, 0.9])
def test_it_is_the_sum_over_all_supports(pairs, probability, x64):
    batch = reference.random_batch(0, size=4, pairs=pairs, dim=4)
    found = sparse.predict(arrays(batch), NOISE, SCALE, probability)
    close(found, by_supports(batch, NOISE, SCALE, probability))


def test_probability_1_is_ridge(x64):
    batch = arrays(reference.random_batch(1, size=6, pairs=7, dim=4))
    close(sparse.predict(batch, NOISE, SCALE, 1.0), linear_mmse.ridge(batch, NOISE / SCALE**2))


def test_every_prefix_of_a_sequence_is_a_context(x64):
    batch = arrays(reference.random_batch(2, size=3, pairs=6, dim=3))
    sequence = Batch(batch.x, batch.y, batch.x, batch.y, batch.w)
    whole = sparse.predict_sequence(sequence, NOISE, SCALE)
    close(whole[:, 0], 0)
    for pairs in (1, 5):
        one = Batch(batch.x[:, :pairs], batch.y[:, :pairs], batch.x[:, pairs], batch.y[:, pairs], batch.w)
        close(sparse.predict(one, NOISE, SCALE), whole[:, pairs])


def test_components_in_chunks_are_the_sum_over_all_of_them():
    """256 supports are four chunks; float32 against NumPy."""
    assert bayes.SAMPLES <= 2**8 / 4
    batch = reference.random_batch(3, size=3, pairs=6, dim=8)
    in_float32 = Batch(*(jnp.asarray(part, jnp.float32) for part in batch))
    found = sparse.predict(in_float32, NOISE, SCALE)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, by_supports(batch, NOISE, SCALE, NONZERO), atol=1e-4)


def test_on_sparse_tasks_nothing_loses_less_and_the_lasso_is_between():
    """Paired differences of losses over 2048 tasks, by more than 4 standard errors: Bayes < lasso < ridge."""
    data = PoolData(dim=6, num_pairs=7, input_distribution="gaussian", noise_std=0.5, task_distribution="sparse")

    def contexts(seed):
        w = tasks_of(key(seed), data, jnp.arange(2048, dtype=jnp.uint32))
        batch = sequences_with(key(seed + 1), data, w)
        query = jnp.einsum("bd,bd->b", batch.x[:, 6], w)
        return Batch(batch.x[:, :6], batch.y[:, :6], batch.x[:, 6], query, w)

    batch = contexts(10)
    best = jax.jit(sparse.predict, static_argnums=(1, 2))(batch, 0.25, 1.0)
    lasso = sparse.fitted_lasso(contexts(20))(batch)
    losses = [np.asarray((f - batch.y_query) ** 2, float) for f in (best, lasso, linear_mmse.ridge(batch, 0.25))]
    for less, more in pairwise(losses):
        gap = more - less
        assert gap.mean() > 4 * gap.std() / np.sqrt(len(gap))


@pytest.mark.parametrize("penalty", [0.0, 0.01, 0.3, 100.0])
def test_the_lasso_is_scikit_learns(penalty, x64):
    """In its objective; penalty 0 is least squares by NumPy, and a large one leaves nothing."""
    batch = reference.random_batch(4, size=5, pairs=12, dim=4)
    found = np.asarray(sparse.lasso_weights(arrays(batch), penalty))
    for x, y, weights in zip(batch.x, batch.y, found, strict=True):
        if penalty == 0:
            expected = np.linalg.lstsq(x, y)[0]
        else:
            expected = Lasso(alpha=penalty, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(x, y).coef_
        close(weights, expected, atol=1e-7)
    close(sparse.lasso(arrays(batch), penalty), np.einsum("bd,bd->b", found, batch.x_query))


def correlated(seed, size, pairs, dim, correlation=0.95):
    """Contexts of sparse tasks without noise, whose inputs have this correlation in pairs."""
    rng = np.random.default_rng(seed)
    shared = np.sqrt(correlation) * rng.normal(size=(size, pairs + 1, 1))
    x = np.sqrt(1 - correlation) * rng.normal(size=(size, pairs + 1, dim)) + shared
    w = rng.normal(size=(size, dim)) * (rng.uniform(size=(size, dim)) < NONZERO) / np.sqrt(NONZERO)
    w[:, 0] = 1
    y = np.einsum("bnd,bd->bn", x, w)
    return Batch(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1], w)


def relative_gaps(batch, weights, penalty):
    """(P(w) - D(u)) / P(w) [B], u the residual shrunk until |X'u|/N <= penalty: a certificate, whatever solved it.

    P(w) = |y - X w|^2 / (2 N) + penalty |w|_1 and D(u) = (|y|^2 - |y - u|^2) / (2 N) <= min P.
    """
    pairs = batch.x.shape[1]
    left = batch.y - np.einsum("bnd,bd->bn", batch.x, weights)
    slope = np.abs(np.einsum("bnd,bn->bd", batch.x, left)).max(axis=1) / pairs
    dual = left * (penalty / np.maximum(slope, penalty))[:, None]
    primal = (left**2).sum(axis=1) / (2 * pairs) + penalty * np.abs(weights).sum(axis=1)
    bound = ((batch.y**2).sum(axis=1) - ((batch.y - dual) ** 2).sum(axis=1)) / (2 * pairs)
    return (primal - bound) / primal


SMALLEST = sparse.PENALTIES[0]


@pytest.mark.parametrize(("pairs", "dim"), [(10, 20), (4, 9), (20, 10)])
def test_correlated_inputs_and_the_smallest_penalty_are_solved(pairs, dim, x64):
    """By the dual certificate; 200 sweeps of coordinate descent had gaps of 70 % of the objective."""
    batch = correlated(pairs, 50, pairs, dim)
    for penalty in (0.01, SMALLEST * float(np.sqrt(np.mean(batch.y**2)))):
        weights = np.asarray(jax.jit(sparse.lasso_weights)(arrays(batch), penalty))
        assert relative_gaps(batch, weights, penalty).max() < 1e-5


def test_with_fewer_pairs_than_inputs_it_is_scikit_learns(x64):
    batch = correlated(8, 3, 5, 8, correlation=0.5)
    found = np.asarray(sparse.lasso_weights(arrays(batch), 0.01))
    for x, y, weights in zip(batch.x, batch.y, found, strict=True):
        expected = Lasso(alpha=0.01, fit_intercept=False, tol=1e-13, max_iter=1_000_000).fit(x, y).coef_
        close(weights, expected, atol=1e-6)


def test_float32_contexts_are_solved_in_float64():
    batch = Batch(*(np.asarray(part, np.float32) for part in correlated(9, 50, 10, 20)))
    found = jax.jit(sparse.lasso_weights)(arrays(batch), 0.01)
    assert found.dtype == np.float32
    wide = Batch(*(part.astype(float) for part in batch))
    assert relative_gaps(wide, np.asarray(found, float), 0.01).max() < 1e-3  # of rounding the weights


def test_a_lasso_that_is_not_solved_is_nan(monkeypatch, x64):
    """A context that one round solves keeps its weights beside others that it does not."""
    monkeypatch.setattr(sparse, "ROUNDS", 1)
    batch = correlated(10, 20, 10, 20)
    batch.y[0] = 0
    found = np.asarray(sparse.lasso_weights(arrays(batch), 1e-4))
    assert (found[0] == 0).all()
    assert np.isnan(found[1:]).all()


def test_an_input_that_is_always_0_has_weight_0(x64):
    batch = reference.random_batch(5, size=3, pairs=6, dim=3)
    batch.x[:, :, 1] = 0
    assert (np.asarray(sparse.lasso_weights(arrays(batch), 0.01))[:, 1] == 0).all()


def test_the_fitted_penalty_is_the_best_of_a_grid(x64):
    rng = np.random.default_rng(6)
    x, w = rng.normal(size=(300, 10, 6)), rng.normal(size=(300, 6)) * (rng.uniform(size=(300, 6)) < 0.3)
    y = np.einsum("bnd,bd->bn", x, w) + 0.5 * rng.normal(size=(300, 10))
    query = rng.normal(size=(300, 6))
    batch = arrays(Batch(x, y, query, np.einsum("bd,bd->b", query, w), w))
    predict = sparse.fitted_lasso(batch)
    grid = np.geomspace(1e-3, 3, 40)
    losses = [float(jnp.mean((jax.jit(sparse.lasso)(batch, penalty) - batch.y_query) ** 2)) for penalty in grid]
    own = float(jnp.mean((predict(batch) - batch.y_query) ** 2))
    assert own <= min(losses) * (1 + 1e-6)
    assert min(losses) < 0.95 * losses[0]


@pytest.mark.parametrize(
    ("dim", "values", "message"),
    [
        (13, (NOISE, SCALE), "dim is 13; the posterior mean of sparse tasks is a sum over 2\\^dim supports"),
        (3, (0.0, SCALE), "noise_variance is 0.0; it must be above 0"),
        (3, (NOISE, 0.0), "weight_scale is 0.0; it must be above 0"),
        (3, (NOISE, SCALE, 0.0), "probability is 0.0; it must be"),
        (3, (NOISE, SCALE, 1.5), "probability is 1.5; it must be"),
    ],
)
def test_what_has_no_posterior_is_refused(dim, values, message):
    with pytest.raises(ConfigError, match=message):
        sparse.predict(arrays(reference.random_batch(7, size=2, pairs=3, dim=dim)), *values)
