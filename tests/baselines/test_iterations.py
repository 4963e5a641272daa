"""Iterative solvers against NumPy's direct ones, in float64."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from baselines.iterations import (
    conjugate_gradients,
    descent,
    newton_schulz,
    normal_equations,
    power_iteration,
    steepest_descent,
)
from baselines.linear_mmse import ridge, ridge_weights
from src.config import QueriesData
from src.prng import key
from src.queries import sample_batch
from tests import reference

close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


def arrays(batch):
    return type(batch)(*map(jnp.asarray, batch))


@pytest.fixture
def batch(x64):
    return arrays(reference.random_batch(0, size=4, pairs=9, dim=5))


def test_descent_is_the_loop_over_pairs_with_each_tasks_own_step(batch):
    sizes = np.array([0.01, 0.02, 0.03, 0.04])
    start = np.random.default_rng(1).normal(size=(4, 5))
    path = descent(normal_equations(batch), jnp.asarray(sizes), 3, jnp.asarray(start))
    for steps in (1, 2, 3):
        for task in range(4):
            expected = reference.gd_weights(batch.x[task], batch.y[task], sizes[task], steps, start[task])
            close(path[steps - 1, task], expected)


def test_line_search_makes_each_gradient_orthogonal_to_the_one_before(batch):
    normal = normal_equations(batch)
    start = jnp.zeros((4, 5))
    path = np.asarray(steepest_descent(normal, 6, start))
    whole = np.concatenate([start[None], path])
    gradients = np.einsum("bde,tbe->tbd", normal.scatter, whole) - np.asarray(normal.moment)
    close(np.sum(gradients[1:] * gradients[:-1], axis=2), 0)


def test_conjugate_gradients_solve_in_as_many_steps_as_dimensions(batch):
    normal = normal_equations(batch)
    path = np.asarray(conjugate_gradients(normal, 7))
    expected = np.linalg.solve(normal.scatter, np.asarray(normal.moment)[:, :, None])[:, :, 0]
    np.testing.assert_allclose(path[4], expected, rtol=1e-8)
    np.testing.assert_allclose(path[6], expected, rtol=1e-8)  # what is solved stays solved
    assert np.abs(path[3] - expected).max() > 1e-3


def test_their_first_step_is_that_of_line_search(batch):
    normal = normal_equations(batch)
    close(conjugate_gradients(normal, 1), steepest_descent(normal, 1, jnp.zeros((4, 5))))


@pytest.mark.parametrize("pairs", [3, 9])
def test_newton_schulz_tends_to_the_pseudo_inverse(pairs, x64):
    """Also where the scatter matrix is singular, with fewer pairs than dimensions."""
    batch = arrays(reference.random_batch(2, size=4, pairs=pairs, dim=5))
    path = newton_schulz(normal_equations(batch), 40)
    expected = np.einsum("bdn,bn->bd", np.linalg.pinv(batch.x), batch.y)
    np.testing.assert_allclose(path[-1], expected, rtol=1e-7)


def test_newton_schulz_squares_its_error(batch):
    """I - M S is squared every step, by its definition; read off the weights for S of one eigenvalue apart from 1."""
    scatter = jnp.broadcast_to(jnp.diag(jnp.array([4.0, 1.0])), (1, 2, 2))
    path = newton_schulz(normal_equations(batch)._replace(scatter=scatter, moment=jnp.array([[4.0, 1.0]])), 3)
    first = 1 - 1 / 16  # I - M S at the smaller eigenvalue of S / 16
    close(1 - path[:, 0, 1], [first**2, first**4, first**8])


def test_power_iteration_finds_the_largest_eigenvalue(batch):
    scatter = normal_equations(batch).scatter
    expected = np.linalg.eigvalsh(scatter)[:, -1]
    found = power_iteration(scatter, 2000)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert (np.asarray(power_iteration(scatter, 3)) <= expected * (1 + 1e-12)).all()  # from below


def test_power_iteration_of_nothing_is_zero():
    assert power_iteration(jnp.zeros((2, 3, 3))).tolist() == [0, 0]


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_the_weights_of_ridge_make_its_predictions(penalty, batch):
    close(np.einsum("bd,bd->b", ridge_weights(batch, penalty), batch.x_query), ridge(batch, penalty))


def test_ridge_on_ten_times_as_many_pairs_as_dimensions_leaves_the_noise(x64):
    """The excess of least squares is sigma^2 d / (n - d - 1) for Gaussian inputs, 11.6 % here, in closed form."""
    data = QueriesData(dim=5, num_pairs=50, num_queries=10, input_distribution="gaussian", noise_std=0.5)
    batch = sample_batch(key(0), data, 4000)
    predictions = np.einsum("bqd,bd->bq", batch.x_query, ridge_weights(batch, 1e-9))
    errors = ((predictions - np.asarray(batch.y_query)) ** 2).mean(axis=1)
    expected = 0.25 * (1 + 5 / (50 - 5 - 1))
    assert abs(errors.mean() - expected) < 4 * errors.std() / np.sqrt(len(errors))
