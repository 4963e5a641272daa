from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.baselines.gradient_descent import (
    context_losses,
    fit_step_size,
    gd,
    gd_plus_plus,
    gd_weights,
)
from icl_lab.baselines.step_size_search import search_step_size
from icl_lab.src import prng
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_step import one_step_loss, one_step_size, scatter_moments
from tests import reference

SIGMAS = 4.0
PAPER = DataConfig()  # D = N = 10, U(-1/2, 1/2)
LAWS = {
    "paper": PAPER,
    "noisy": DataConfig(dim=4, num_pairs=6, noise_std=0.5, weight_scale=2.0, input_range=1.5),
    "gaussian": DataConfig(dim=4, num_pairs=6, input_distribution="gaussian"),
    "noisy gaussian": DataConfig(dim=4, num_pairs=6, input_distribution="gaussian", input_range=0.7, noise_std=0.3),
}

close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


def sigmas(values, mean):
    """How many standard errors the mean of independent values is from the expected one."""
    values = np.asarray(values, np.float64)
    return abs(values.mean() - mean) / (values.std() / np.sqrt(values.size))


def sampled(data, seed=0, size=20_000):
    return sample_batch(prng.key(seed), data, size)


# The algorithms.


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("from_zero", [True, False])
def test_gd_equals_a_loop_over_pairs(steps, from_zero, x64):
    batch = reference.random_batch(1)
    start = None if from_zero else np.random.default_rng(2).normal(size=(5, 4))
    close(gd(batch, 0.07, steps, start), reference.gd(batch, 0.07, steps, start))


def test_one_step_from_zero_is_a_sum_over_pairs(x64):
    """c sum_i y_i x_i.x_query."""
    batch = reference.random_batch(3)
    expected = [
        0.3 * sum(y * (x @ query) for x, y in zip(batch.x[b], batch.y[b], strict=True))
        for b, query in enumerate(batch.x_query)
    ]
    close(gd(batch, 0.3), expected)


def test_steps_compose(x64):
    """Five steps are two steps and three more."""
    batch = reference.random_batch(4)
    close(gd_weights(batch, 0.05, 5), gd_weights(batch, 0.05, 3, gd_weights(batch, 0.05, 2)))


def test_a_step_decreases_the_loss_as_a_quadratic(x64):
    """The directional derivative of the loss along a step is -c |gradient|^2; checked by a difference quotient."""
    batch, c = reference.random_batch(5), 1e-6
    start = np.random.default_rng(6).normal(size=(5, 4))

    def loss(w):
        return 0.5 * np.sum((np.einsum("bnd,bd->bn", batch.x, w) - batch.y) ** 2, axis=1)

    after = np.asarray(gd_weights(batch, c, 1, start))
    gradient = (start - after) / c
    np.testing.assert_allclose((loss(start) - loss(after)) / c, np.sum(gradient**2, axis=1), rtol=1e-4)


@given(st.integers(0, 1000), st.sampled_from((1, 20)))
def test_least_squares_is_a_fixed_point(seed, steps):
    """For many pairs and few dimensions, N > D."""
    batch = reference.random_batch(seed, pairs=7, dim=3)
    solution = np.stack([np.linalg.lstsq(x, y)[0] for x, y in zip(batch.x, batch.y, strict=True)])
    with jax.enable_x64(True):
        close(gd_weights(batch, 0.05, steps, solution), solution)


def test_many_steps_solve_overdetermined_least_squares(x64):
    batch = reference.random_batch(7, pairs=30, dim=3)
    solution = np.stack([np.linalg.lstsq(x, y)[0] for x, y in zip(batch.x, batch.y, strict=True)])
    close(gd_weights(batch, 0.02, 2000), solution)


@pytest.mark.parametrize("rates", [((0.1, 0.2, 0.05), (0.03, 0.0, 0.02)), ((0.1,) * 3, (0.02,) * 3)])
def test_gd_plus_plus_equals_its_token_updates(rates, x64):
    batch = reference.random_batch(8)
    close(gd_plus_plus(batch, *rates, 3), reference.gd_plus_plus(batch, *rates))


def test_shared_rates_are_equal_rates(x64):
    batch = reference.random_batch(9)
    close(gd_plus_plus(batch, 0.1, 0.02, 3), gd_plus_plus(batch, (0.1,) * 3, (0.02,) * 3, 3))


@pytest.mark.parametrize("steps", [1, 4])
def test_gd_plus_plus_without_curvature_is_gd(steps, x64):
    batch = reference.random_batch(10)
    close(gd_plus_plus(batch, 0.07, 0.0, steps), gd(batch, 0.07, steps))


def test_the_last_gamma_of_gd_plus_plus_moves_nothing(x64):
    """Inputs moved after the last prediction are not read: one step of GD++ is one step of GD."""
    batch = reference.random_batch(11)
    close(gd_plus_plus(batch, 0.07, 0.5, 1), gd(batch, 0.07))


# The closed forms.


@pytest.mark.parametrize("law", LAWS)
def test_scatter_moments(law):
    """E tr S and E tr S^2 against sampled contexts."""
    batch = sampled(LAWS[law])
    scatter = np.einsum("bnd,bne->bde", batch.x, batch.x, dtype=np.float64)
    trace, square = scatter_moments(LAWS[law])
    assert sigmas(np.trace(scatter, axis1=1, axis2=2), trace) < SIGMAS
    assert sigmas(np.sum(scatter**2, axis=(1, 2)), square) < SIGMAS


def test_the_step_of_the_paper():
    """c* = 8.3333/13.75 and the loss there, derived by hand at D = N = 10."""
    assert one_step_size(PAPER) == pytest.approx((100 / 12) / 13.75, rel=1e-12)
    assert one_step_size(PAPER) == pytest.approx(0.60606, abs=5e-6)
    assert one_step_loss(PAPER, one_step_size(PAPER)) == pytest.approx(0.20623, abs=5e-6)
    assert one_step_loss(PAPER, 0.0) == pytest.approx(10 / 24, rel=1e-12)  # the zero predictor


@pytest.mark.parametrize(("size", "loss"), [(5, 0.102), (10, 0.206), (20, 0.415), (35, 0.727), (50, 1.040)])
def test_loss_of_one_step_at_equal_sizes(size, loss):
    """(N/24)(1 - N/(2N - .2)) at N = D, U(-1/2, 1/2)."""
    data = DataConfig(dim=size, num_pairs=size)
    best = one_step_loss(data, one_step_size(data))
    assert best == pytest.approx(loss, abs=5e-4)
    assert best == pytest.approx(size / 24 * (1 - size / (2 * size - 0.2)), rel=1e-12)


@pytest.mark.parametrize(("input_range", "loss"), [(0.5, 0.081), (1.0, 0.206), (1.5, 1.20), (2.0, 8.40), (3.0, 123)])
def test_loss_of_the_papers_step_at_other_ranges(input_range, loss):
    """(r^2/24)(5.0505 r^4 - 10.101 r^2 + 10), the step staying at .606."""
    wide = replace(PAPER, input_range=input_range)
    assert one_step_loss(wide, one_step_size(PAPER)) == pytest.approx(loss, rel=6e-3)  # three printed digits


@pytest.mark.parametrize(("pairs", "dim", "noise"), [(6, 4, 0.0), (20, 20, 0.05), (3, 9, 1.5)])
def test_gaussian_inputs_have_a_short_form(pairs, dim, noise):
    """c* = 1 / (n + d + 1 + noise^2) for x ~ N(0, I), w ~ N(0, I): the fourth moments of a Wishart matrix."""
    data = DataConfig(dim=dim, num_pairs=pairs, input_distribution="gaussian", noise_std=noise)
    assert one_step_size(data) == pytest.approx(1 / (pairs + dim + 1 + noise**2), rel=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_the_step_size_minimises_the_loss(law):
    """On a grid: the closed forms agree with each other, and the loss is a parabola."""
    data, best = LAWS[law], one_step_size(LAWS[law])
    grid = best * np.linspace(0.5, 1.5, 101)
    losses = [one_step_loss(data, c) for c in grid]
    assert grid[np.argmin(losses)] == pytest.approx(best, rel=1e-6)
    assert losses[0] == pytest.approx(losses[-1], rel=1e-10)


@pytest.mark.parametrize("law", LAWS)
def test_the_loss_of_one_step_is_that_of_sampled_tasks(law):
    data = LAWS[law]
    batch = sampled(data, 1)
    for factor in (0.5, 1.0):
        c = factor * one_step_size(data)
        errors = 0.5 * (np.asarray(gd(batch, c), np.float64) - batch.y_query) ** 2
        assert sigmas(errors, one_step_loss(data, c)) < SIGMAS


@pytest.mark.parametrize("law", LAWS)
def test_context_losses_average_to_the_closed_form(law):
    data, c = LAWS[law], one_step_size(LAWS[law])
    assert sigmas(context_losses(sampled(data, 2), data, c), one_step_loss(data, c)) < SIGMAS


@pytest.mark.parametrize("law", LAWS)
def test_context_losses_are_the_expected_errors_of_each_context(law):
    """Errors of sampled teachers and queries less their context's loss average to 0, also weighted by tr S."""
    data, c = LAWS[law], one_step_size(LAWS[law])
    batch = sampled(data, 3)
    errors = 0.5 * (np.asarray(gd(batch, c), np.float64) - batch.y_query) ** 2
    surprise = errors - np.asarray(context_losses(batch, data, c))
    trace = np.sum(np.asarray(batch.x, np.float64) ** 2, axis=(1, 2))
    assert sigmas(surprise, 0) < SIGMAS
    assert sigmas(surprise * (trace - trace.mean()), 0) < SIGMAS


def test_context_losses_are_precise():
    """The standard error on 10 000 contexts is .0002, where sampled tasks have .0033."""
    batch, c = sampled(PAPER, 4, 10_000), one_step_size(PAPER)
    assert np.std(context_losses(batch, PAPER, c)) / 100 < 3e-4
    assert np.std(0.5 * (gd(batch, c) - batch.y_query) ** 2) / 100 > 2e-3


# The searches.


def numpy_losses(batch, rates, steps):
    """Half mean squared errors of `steps` steps at many rates, through the eigenvalues of each context's scatter."""
    batch = Batch(*(np.asarray(part, np.float64) for part in batch))
    values, vectors = np.linalg.eigh(np.einsum("bnd,bne->bde", batch.x, batch.x))
    slope = np.einsum("bnd,bn,bde->be", batch.x, batch.y, vectors)
    query = np.einsum("bd,bde->be", batch.x_query, vectors)
    losses = []
    for rate in rates:  # w_K = sum_k c (1 - c s)^k slope, along each eigenvector
        gain = rate * sum((1 - rate * values) ** k for k in range(steps))
        losses.append(0.5 * np.mean((np.sum(gain * slope * query, axis=1) - batch.y_query) ** 2))
    return np.array(losses)


@pytest.mark.parametrize("law", LAWS)
def test_the_fitted_step_is_the_best_on_its_tasks_and_near_the_closed_form(law):
    data = LAWS[law]
    batch = sampled(data, 5)
    fitted = search_step_size(batch, 1)
    assert fitted == fit_step_size(batch)
    grid = np.linspace(0.5, 1.5, 1001) * one_step_size(data)
    losses = numpy_losses(batch, grid, 1)
    assert abs(fitted - grid[np.argmin(losses)]) <= 0.51 * (grid[1] - grid[0])
    feature = np.asarray(gd(batch, 1.0), np.float64)
    slack = np.sqrt(np.sum((feature * (batch.y_query - fitted * feature)) ** 2)) / np.sum(feature**2)  # of a ratio
    assert abs(fitted - one_step_size(data)) < SIGMAS * slack


@pytest.mark.parametrize(("steps", "loss", "best"), [(2, 0.157, 0.60), (5, 0.109, 0.56)])
def test_tuned_steps(steps, loss, best):
    """Loss .1566/.1086 at c = .60/.56 for K = 2/5; the search is as good as a fine grid in NumPy."""
    batch = sampled(PAPER, 6, 8192)
    found = search_step_size(batch, steps)
    assert found == pytest.approx(best, abs=0.03)  # the valley is flat: +- .03 costs under 1 % of the loss
    errors = 0.5 * (np.asarray(gd(batch, found, steps), np.float64) - batch.y_query) ** 2
    assert sigmas(errors, loss) < SIGMAS
    on_grid = numpy_losses(batch, np.linspace(0.4, 0.8, 201), steps)
    assert errors.mean() <= on_grid.min() * (1 + 1e-5)
    assert errors.mean() == pytest.approx(numpy_losses(batch, [found], steps)[0], rel=1e-4)  # float32 sums


def test_a_search_survives_rates_that_overflow():
    """At large inputs most of the grid diverges to infinity or NaN; the best finite rate is still found."""
    data = DataConfig(dim=3, num_pairs=30, input_range=12.0)
    batch = sampled(data, 8, 256)
    found = search_step_size(batch, 24, zooms=8)
    assert not np.isfinite(gd(batch, 4.0, 24)).all()
    grid = numpy_losses(batch, np.linspace(1e-3, 5e-3, 401), 24)
    assert 0.5 * jnp.mean((gd(batch, found, 24) - batch.y_query) ** 2) <= grid.min() * 1.01


def test_a_search_without_a_finite_loss_is_refused():
    batch = sampled(PAPER, 8, 8)._replace(y_query=jnp.full(8, jnp.inf))
    with pytest.raises(ConfigError, match="no step size of gradient descent has a finite loss"):
        search_step_size(batch, 2)
