"""A step size for each step: identities in float64, and the losses of contexts of ten uniform pairs."""

from itertools import permutations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from icl_lab.baselines.iterations import Normal, conjugate_gradients, descent_with_step_sizes, normal_equations
from icl_lab.baselines.step_sizes import Spectrum, best_step_sizes, guarded, residual_polynomial, spectrum_of
from tests import reference


def uniform(seed: int, contexts: int, dim: int = 10, pairs: int = 10) -> Spectrum:
    return spectrum_of(np.random.default_rng(seed).uniform(-0.5, 0.5, (contexts, pairs, dim)))


def loss(step_sizes: np.ndarray, spectrum: Spectrum, rho: float = 0.0) -> float:
    """The mean of p^2 + rho (1 - p)^2 / l over eigenvalues."""
    p = residual_polynomial(step_sizes, spectrum.values)
    return float(np.average(p**2 + rho * (1 - p) ** 2 / spectrum.values, weights=spectrum.weights))


SPECTRUM = uniform(0, 400)


def test_one_step_is_the_tuned_step() -> None:
    """E tr S / E tr S^2, from the inputs and not from eigenvalues."""
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 10, 10))
    scatter = np.einsum("bnd,bne->bde", x, x)
    expected = np.einsum("bdd->", scatter) / np.sum(scatter**2)
    np.testing.assert_allclose(best_step_sizes(SPECTRUM, 1), [expected], rtol=1e-10)


@pytest.mark.parametrize("rho", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 10, 16])
def test_no_other_polynomial_of_that_degree_is_better(steps: int, rho: float) -> None:
    """NumPy's least squares over all polynomials with p(0) = 1, in a Chebyshev basis: 1 - l q(l)."""
    values = SPECTRUM.values
    basis = np.polynomial.chebyshev.chebvander(2 * values / values.max() - 1, steps - 1)
    rows = np.vstack([values[:, None] * basis, np.sqrt(rho * values)[:, None] * basis])
    targets = np.append(np.ones(values.size), np.zeros(values.size))
    q = np.linalg.lstsq(rows, targets, rcond=None)[0]
    found = best_step_sizes(SPECTRUM, steps, rho)
    p = 1 - values * (basis @ q)
    np.testing.assert_allclose(residual_polynomial(found, values), p, atol=1e-7)
    assert loss(found, SPECTRUM, rho) == pytest.approx(np.mean(p**2 + rho * (1 - p) ** 2 / values), rel=1e-9)


def test_a_polynomial_that_real_step_sizes_do_not_attain_has_complex_ones() -> None:
    """Much noise, two steps: p has no real root, and SciPy finds no better pair of real step sizes."""
    found = best_step_sizes(SPECTRUM, 2, 1.0)
    assert found[0] == pytest.approx(np.conj(found[1]))
    assert abs(found[0].imag) > 0.1
    real = min(minimize(loss, start, (SPECTRUM, 1.0)).fun for start in ([0.3, 0.3], [0.1, 1.0], [0.05, 2.0]))
    assert loss(found, SPECTRUM, 1.0) < real - 1e-4


@pytest.mark.parametrize("rho", [0.0, 0.05])
def test_each_further_step_helps_and_one_step_size_is_never_better(rho: float) -> None:
    losses = [loss(best_step_sizes(SPECTRUM, steps, rho), SPECTRUM, rho) for steps in range(1, 13)]
    assert (np.diff(losses) < 0).all()
    for steps in (2, 5, 10):
        shared = min(loss(np.full(steps, c), SPECTRUM, rho) for c in np.linspace(0.05, 1, 96))
        assert losses[steps - 1] < shared


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_on_one_spectrum_they_are_conjugate_gradients(steps: int, x64: None) -> None:
    """Of w = S^(-1/2) 1 the A-norm of what is left is sum p(l)^2, which conjugate gradients minimise."""
    values = np.array([0.03, 0.2, 0.5, 1.1, 2.0, 3.7, 4.4])
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(7, 7)))[0]
    w = turn @ (1 / np.sqrt(values))
    scatter = turn @ np.diag(values) @ turn.T
    normal = Normal(jnp.asarray(scatter)[None], jnp.asarray(scatter @ w)[None])
    found = descent_with_step_sizes(normal, best_step_sizes(Spectrum(values, np.ones(7)), steps))
    np.testing.assert_allclose(found[-1], conjugate_gradients(normal, steps)[-1], rtol=1e-9)


def test_as_many_steps_as_eigenvalues_solve_the_problem() -> None:
    values = np.array([0.1, 0.7, 2.0, 3.1])
    found = best_step_sizes(Spectrum(values, np.array([1.0, 5.0, 2.0, 2.0])), 4)
    np.testing.assert_allclose(np.sort(1 / found), values, rtol=1e-10)
    with pytest.raises(ValueError, match="5 steps are not between 1 and"):
        best_step_sizes(Spectrum(values, np.ones(4)), 5)


@pytest.mark.parametrize("sizes", [(0.2, 0.05, 0.4), (0.2 + 0.1j, 0.3, 0.2 - 0.1j)])
def test_weights_are_the_polynomials_whatever_the_order(sizes: tuple[complex, ...], x64: None) -> None:
    """w = sum_d (1 - p(l_d)) u_d u_d.b / l_d of NumPy's eigenvectors; after each step for one order."""
    batch = reference.random_batch(3)
    normal = normal_equations(type(batch)(*map(jnp.asarray, batch)))
    values, vectors = np.linalg.eigh(np.asarray(normal.scatter))
    shares = (1 - residual_polynomial(np.array(sizes), values)) / values
    expected = np.einsum("bde,be,bfe,bf->bd", vectors, shares, vectors, np.asarray(normal.moment))
    for order in permutations(sizes):
        np.testing.assert_allclose(descent_with_step_sizes(normal, np.array(order))[-1], expected, rtol=1e-10)
    first = descent_with_step_sizes(normal, np.array(sizes))[0]
    np.testing.assert_allclose(first, sizes[0].real * np.asarray(normal.moment), rtol=1e-12)


def test_twenty_steps_are_the_polynomial_in_float32() -> None:
    """The order keeps products of the first factors small: ascending, errors are a thousand times as large."""
    x = np.random.default_rng(4).uniform(-0.5, 0.5, (200, 10, 10))
    w = np.random.default_rng(5).normal(size=(200, 10))
    scatter = np.einsum("bnd,bne->bde", x, x)
    moment = np.einsum("bde,be->bd", scatter, w)
    sizes = best_step_sizes(uniform(6, 2000), 20)
    normal = Normal(jnp.asarray(scatter, jnp.float32), jnp.asarray(moment, jnp.float32))
    values, vectors = np.linalg.eigh(scatter)
    left = np.einsum("bde,be,bfe,bf->bd", vectors, residual_polynomial(sizes, values), vectors, w)
    error = np.abs(descent_with_step_sizes(normal, sizes)[-1] - (w - left)).max()
    ascending = np.abs(descent_with_step_sizes(normal, np.sort(sizes))[-1] - (w - left)).max()
    assert error < 1e-4
    assert ascending > 100 * error


@pytest.mark.parametrize(
    ("steps", "level", "expected"),
    [
        (1, 0.2062, (0.606,)),
        (2, 0.1412, (0.400, 1.157)),
        (5, 0.0781, (0.272, 0.360, 0.532, 1.05, 3.89)),
        (10, 0.0474, ()),
    ],
)
def test_the_papers_contexts_have_the_known_step_sizes(steps: int, level: float, expected: tuple[float, ...]) -> None:
    """Found independently on the same 20 000 contexts of NumPy's generator, D = N = 10; half squared errors."""
    found = best_step_sizes(PAPER, steps)
    assert 10 / 24 * loss(found, PAPER) == pytest.approx(level, abs=1e-4)
    if expected:
        np.testing.assert_allclose(np.sort(found), expected, rtol=3e-3)


PAPER = uniform(0, 20_000)


def test_the_guard_keeps_rare_contexts_from_exploding() -> None:
    """Fitted to 20 000 contexts: as good on 60 000 others, 100 times better at an eigenvalue 5 % above the largest."""
    others = uniform(12, 60_000)
    found = best_step_sizes(guarded(PAPER), 10)
    assert loss(found, others) < 1.02 * loss(found, PAPER)
    assert loss(found, PAPER) < 1.06 * loss(best_step_sizes(PAPER, 10), PAPER)
    larger = Spectrum(np.array([1.05 * PAPER.values.max()]), np.ones(1))
    assert 100 * loss(found, larger) < loss(best_step_sizes(PAPER, 10), larger)
    np.testing.assert_allclose(best_step_sizes(guarded(PAPER), 1), best_step_sizes(PAPER, 1), rtol=3e-5)
