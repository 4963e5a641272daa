"""Iterative solvers against NumPy, identities and theory; what ends at a solution or does not."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from scipy.optimize import minimize_scalar

from icl_lab.baselines.iterations import (
    Interval,
    Normal,
    Solution,
    chebyshev,
    conjugate_gradients,
    descent,
    descent_with_step_sizes,
    eigenvalue_interval,
    iterate,
    least_between,
    momentum,
    newton_schulz,
    newton_schulz_identity,
    normal_equations,
    power_iteration,
    steepest_descent,
    why_missing,
)
from icl_lab.baselines.linear_mmse import ridge, ridge_weights
from icl_lab.baselines.step_sizes import Spectrum, best_step_sizes
from icl_lab.src.checks import ConfigError
from icl_lab.src.data_config import QueriesData
from icl_lab.src.prng import key
from icl_lab.src.queries import sample_batch
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


# On an exact spectrum

STEPS = (1, 2, 3, 5, 8)
# log-spaced eigenvalues of condition 100, D = 10: mean residual squared after so many steps, of a NumPy check of theory
TABLE = {
    "gd": (0.605, 0.473, 0.394, 0.299, 0.218),
    "chebyshev": (0.629, 0.518, 0.391, 0.247, 0.073),
    "best polynomial": (0.605, 0.404, 0.267, 0.094, 0.0042),
    "conjugate gradients": (0.585, 0.395, 0.262, 0.088, 0.0021),
    "newton_schulz_identity": (0.513, 0.394, 0.273, 0.070, 7e-6),
    "newton_schulz": (0.779, 0.717, 0.652, 0.518, 0.312),
}
LOG_SPACED = np.logspace(-2, 0, 10)


def problem(values, size=1, seed=0):
    """S = U L U' with a rotation U of its own for each context and these eigenvalues, and the solutions [B, D]."""
    rng = np.random.default_rng(seed)
    rotations = np.linalg.qr(rng.normal(size=(size, len(values), len(values))))[0]
    scatter = np.einsum("bij,j,bkj->bik", rotations, values, rotations)
    solution = rng.normal(size=(size, len(values)))
    return Normal(jnp.asarray(scatter), jnp.asarray(np.einsum("bij,bj->bi", scatter, solution))), solution, rotations


def residuals(path, values):
    """What is left of the solution (1, ..., 1) of a diagonal problem: the residual polynomial at each eigenvalue."""
    normal = Normal(jnp.diag(jnp.asarray(values))[None], jnp.asarray(values)[None])
    return 1 - np.asarray(path(normal))[:, 0]


def interval_of(values, size=1):
    return Interval(jnp.full(size, values.min()), jnp.full(size, values.max()))


def solvers(values):
    """Name -> weights after 1 to T steps on these eigenvalues."""
    ends = interval_of(values)
    return {
        "momentum": lambda normal, steps=8: momentum(normal, steps, ends),
        "chebyshev": lambda normal, steps=8: chebyshev(normal, steps, ends),
        "newton_schulz_identity": lambda normal, steps=8: newton_schulz_identity(normal, steps, ends),
        "newton_schulz": lambda normal, steps=8: newton_schulz(normal, steps, 2 / (ends.low**2 + ends.high**2)),
    }


@pytest.mark.parametrize("name", ["chebyshev", "newton_schulz_identity", "newton_schulz"])
def test_residuals_on_a_spectrum_of_condition_100_are_those_of_the_table(name, x64):
    left = residuals(solvers(LOG_SPACED)[name], LOG_SPACED)
    np.testing.assert_allclose(np.mean(left**2, axis=1)[np.array(STEPS) - 1], TABLE[name], atol=6e-4, rtol=0.03)


def test_the_best_step_and_the_best_polynomial_are_those_of_the_table(x64):
    """The step size searched by SciPy for each K; the polynomial of `best_step_sizes`."""
    spectrum = Spectrum(LOG_SPACED, np.ones(10))
    for place, steps in enumerate(STEPS):

        def left(size, steps=steps):
            path = residuals(lambda normal: descent(normal, jnp.array([size]), steps, jnp.zeros((1, 10))), LOG_SPACED)
            return np.mean(path[-1] ** 2)

        best = minimize_scalar(left, bounds=(0.5, 2), method="bounded").fun
        assert best == pytest.approx(TABLE["gd"][place], abs=6e-4)
        sizes = best_step_sizes(spectrum, steps)
        many = residuals(lambda normal, sizes=sizes: descent_with_step_sizes(normal, sizes), LOG_SPACED)
        assert np.mean(many[-1] ** 2) == pytest.approx(TABLE["best polynomial"][place], abs=6e-4, rel=0.03)


def test_conjugate_gradients_have_the_residuals_of_the_table(x64):
    """|w_K - w|^2 / D over 4000 Gaussian solutions, within 4 standard errors and the table's last digit."""
    normal, solution, _ = problem(LOG_SPACED, 4000)
    left = np.mean((np.asarray(conjugate_gradients(normal, 8)) - solution) ** 2, axis=2)
    for place, steps in enumerate(STEPS):
        error = left[steps - 1].std() / np.sqrt(4000)
        assert abs(left[steps - 1].mean() - TABLE["conjugate gradients"][place]) < 4 * error + 6e-4


@pytest.mark.parametrize(
    "values", [LOG_SPACED, np.linspace(0.3, 7.0, 6), np.array([2.0, 2.0]), np.array([0.0, 1.0, 4])]
)
def test_chebyshev_leaves_the_scaled_chebyshev_polynomial(values, x64):
    """By numpy.polynomial. Also for one eigenvalue alone, where a step solves it, and for a least one of 0."""
    left = residuals(solvers(values)["chebyshev"], values)
    low, high = values.min(), values.max()
    for steps in range(1, 9):
        if low == high:
            expected = np.zeros(len(values))
        else:
            polynomial = Chebyshev.basis(steps)
            expected = polynomial((low + high - 2 * values) / (high - low)) / polynomial((low + high) / (high - low))
        close(left[steps - 1], expected)


@pytest.mark.parametrize("values", [LOG_SPACED, np.linspace(0.3, 7.0, 6), np.array([2.0, 2.0])])
def test_momentum_is_the_two_term_recurrence_of_each_eigenvalue(values, x64):
    """e_k+1 = (1 + beta - c l) e_k - beta e_k-1 with Polyak's c and beta, and e_0 = e_-1 = 1."""
    a, b = np.sqrt(values.min()), np.sqrt(values.max())
    size, beta = 4 / (a + b) ** 2, ((b - a) / (b + a)) ** 2
    before, now = np.ones(len(values)), np.ones(len(values))
    left = residuals(solvers(values)["momentum"], values)
    for steps in range(8):
        before, now = now, (1 + beta - size * values) * now - beta * before
        close(left[steps], now)


def test_momentum_falls_by_the_root_of_beta_in_the_end(x64):
    """(9/11)^k up to a factor linear in k, where descent with its best step has (99/101)^k."""
    path = momentum(
        Normal(jnp.diag(jnp.asarray(LOG_SPACED))[None], jnp.asarray(LOG_SPACED)[None]), 200, interval_of(LOG_SPACED)
    )
    left = np.abs(1 - np.asarray(path)[-1]).max()
    assert (9 / 11) ** 200 < left < 500 * (9 / 11) ** 200


@pytest.mark.parametrize("name", ["momentum", "chebyshev", "newton_schulz_identity", "newton_schulz"])
def test_solvers_do_not_depend_on_the_basis_and_tend_to_the_solution(name, x64):
    """The residual polynomials of the diagonal problem, in the eigenbasis of each context."""
    values = np.linspace(0.5, 3.0, 5)
    normal, solution, rotations = problem(values, 3, seed=4)
    ends = interval_of(values, 3)
    run = {
        "momentum": lambda steps: momentum(normal, steps, ends),
        "chebyshev": lambda steps: chebyshev(normal, steps, ends),
        "newton_schulz_identity": lambda steps: newton_schulz_identity(normal, steps, ends),
        "newton_schulz": lambda steps: newton_schulz(normal, steps, 2 / (ends.low**2 + ends.high**2)),
    }[name]
    left = residuals(solvers(values)[name], values)
    in_eigenbasis = np.einsum("bij,bi->bj", rotations, solution)
    for steps in range(8):
        expected = solution - np.einsum("bij,bj->bi", rotations, left[steps] * in_eigenbasis)
        close(np.asarray(run(8))[steps], expected)
    np.testing.assert_allclose(run(60)[-1], solution, rtol=1e-9)


def test_newton_schulz_from_the_identity_is_twice_as_many_steps_of_descent_each_time(batch):
    normal = normal_equations(batch)
    ends = eigenvalue_interval(normal)
    steps = descent(normal, 2 / (ends.low + ends.high), 2**4, jnp.zeros((4, 5)))
    close(newton_schulz_identity(normal, 4, ends), np.asarray(steps)[[1, 3, 7, 15]])


def test_the_interval_of_its_eigenvalues_is_numpys_eigenvalues(batch):
    normal = normal_equations(batch)
    expected = np.linalg.eigvalsh(np.asarray(normal.scatter))
    close(np.stack(eigenvalue_interval(normal), axis=1), expected[:, [0, -1]])
    few = normal_equations(arrays(reference.random_batch(2, size=4, pairs=3, dim=5)))
    assert (np.asarray(eigenvalue_interval(few).low) >= 0).all()
    np.testing.assert_allclose(eigenvalue_interval(few).low, 0, atol=1e-12)


@pytest.mark.parametrize("solver", [momentum, chebyshev, newton_schulz_identity])
def test_a_context_of_zeros_stays_at_zero(solver):
    normal = Normal(jnp.zeros((2, 3, 3)), jnp.zeros((2, 3)))
    assert np.asarray(solver(normal, 3, eigenvalue_interval(normal))).tolist() == np.zeros((3, 2, 3)).tolist()


RATES = jnp.array([0.5, 0.9, 1.0, jnp.nan])  # of v <- rate v from 1: 10 steps to below .001, 66, never, not a number


def contracted(most: int, rates: jax.Array = RATES) -> Solution:
    start = jnp.ones((len(rates), 1))
    return iterate(lambda v: rates[:, None] * v, lambda v: jnp.abs(v[:, 0]), start, 1e-3, most)


@pytest.mark.parametrize(
    ("most", "unsolved"), [(9, [True] * 4), (10, [False, True, True, True]), (66, [False, False, True, True])]
)
def test_each_context_takes_the_steps_that_it_needs(most: int, unsolved: list[bool]) -> None:
    found = jax.jit(contracted, static_argnums=0)(most)
    assert found.unsolved.tolist() == unsolved
    np.testing.assert_allclose(found.values[0], 0.5 ** min(most, 10), rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(found.or_nan[:, 0]), unsolved)


def test_a_solved_start_is_not_touched() -> None:
    start = jnp.full((2, 1), 1e-4)
    found = iterate(lambda v: v / 2, lambda v: jnp.abs(v[:, 0]), start, 1e-3, 5)
    np.testing.assert_array_equal(found.values, start)


def test_the_least_of_a_function_is_found_and_of_no_numbers_there_is_none() -> None:
    assert least_between(lambda v: (v - 0.3) ** 2, -1, 2) == pytest.approx(0.3, abs=1e-4)
    with pytest.raises(ConfigError, match="no minimum was found between -1 and 2"):
        least_between(lambda v: float("nan"), -1, 2)


def test_the_sentence_counts_what_is_missing() -> None:
    assert why_missing(np.zeros(3)) is None
    said = why_missing(np.array([0.0, np.nan, np.inf]))
    assert said is not None
    assert said.startswith("in 2 of 3 contexts it has not converged")
