"""The quadratic prediction against closed forms and recursions; the sparse spectrum against NumPy's whole matrix."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from icl_lab.analysis.llc import spectrum
from icl_lab.analysis.llc.loss import split
from icl_lab.analysis.llc.prediction import EXACT, How, Prediction, predict, relaxed
from icl_lab.analysis.llc.spectrum import Nodes, Spectrum
from icl_lab.analysis.llc.validation import known
from icl_lab.src.checks import ConfigError

# --- what a quadratic loss gives ---

H, SLOPE, VARIANCE = np.array([4.0, 1.0, 0.2, 0.0]), np.array([0.03, -0.02, 0.01, 0.0]), np.array([3.0, 1.0, 0.5, 0.0])


def whole(h: np.ndarray = H, slope: np.ndarray = SLOPE, variance: np.ndarray = VARIANCE) -> Spectrum:
    """The spectrum of a whole matrix."""
    nodes = Nodes(h, np.ones(len(h)), slope**2, variance)
    return Spectrum((nodes,), len(h), float(h.min()), float(h.max()), float(np.linalg.norm(slope)))


@pytest.mark.parametrize(("nbeta", "gamma", "eps"), [(100.0, 10.0, 0.0), (100.0, 10.0, 1e-3), (10.0, 100.0, 5e-3)])
def test_of_all_samples_it_is_the_known_value(nbeta: float, gamma: float, eps: float) -> None:
    found = predict(whole(), nbeta, gamma, How(eps))
    assert found.curvature == pytest.approx(known.quadratic(H, nbeta, gamma))
    assert found.curvature + found.step == pytest.approx(known.quadratic(H, nbeta, gamma, eps))
    assert found.noise == 0.0
    assert found.total == pytest.approx(known.quadratic(H, nbeta, gamma, eps, SLOPE))
    assert found.error == 0.0


class Recursion(NamedTuple):
    """One coordinate (u, v) of a chain: X' = M X + c + noise of covariance Q."""

    matrix: np.ndarray
    constant: np.ndarray
    noise: np.ndarray


def recursion(place: int, nbeta: float, gamma: float, how: How) -> Recursion:
    """v' = (1 - f) v - eps/2 (a u + nbeta g + noise of a batch) + sqrt(f eps) xi, u' = u + v'."""
    k, f = how.eps * (nbeta * H[place] + gamma) / 2, how.friction
    row = np.array([-k, 1 - f])
    q = f * how.eps + how.eps**2 * nbeta**2 * VARIANCE[place] / (4 * how.batch_size)
    one = -0.5 * how.eps * nbeta * SLOPE[place]
    return Recursion(np.array([[1, 0] + row, row]), np.array([one, one]), np.full((2, 2), q))


HOWS = [How(1e-3, 16, 1.0), How(1e-3, 16, 0.1), How(4e-3, 4, 0.5), How(1e-3, math.inf, 0.1)]


@pytest.mark.parametrize("how", HOWS)
def test_of_minibatches_with_friction_it_is_the_stationary_state_of_the_recursion(how: How) -> None:
    """Mean and covariance of each coordinate by SciPy's Lyapunov equation; without slope and noise, part by part."""
    nbeta, gamma = 100.0, 10.0
    found = predict(whole(), nbeta, gamma, how)
    total = 0.0
    for place in range(4):
        of = recursion(place, nbeta, gamma, how)
        mean = np.linalg.solve(np.eye(2) - of.matrix, of.constant)[0]
        square = solve_discrete_lyapunov(of.matrix, of.noise)[0, 0] + mean**2
        total += nbeta * (0.5 * H[place] * square + SLOPE[place] * mean)
    assert found.total == pytest.approx(total, rel=1e-8)
    still = predict(whole(slope=0 * SLOPE, variance=0 * VARIANCE), nbeta, gamma, how)
    assert (still.slope, still.noise) == (0, 0)
    assert (still.curvature, still.step) == (found.curvature, found.step)
    assert all(part != 0 for part in (found.step, found.slope))


@pytest.mark.parametrize("friction", [1.0, 0.1])
def test_a_simulated_chain_shows_it(friction: float) -> None:
    """4000 chains of 40 draws in NumPy, with noise in each step's gradient, within four standard errors."""
    nbeta, gamma, how, rng = 100.0, 10.0, How(2e-3, 16, friction), np.random.default_rng(0)
    u, v, values = np.zeros((4000, 4)), np.zeros((4000, 4)), []
    for t in range(1600):
        gradient = H * u + SLOPE + np.sqrt(VARIANCE / how.batch_size) * rng.standard_normal(u.shape)
        noise = np.sqrt(friction * how.eps) * rng.standard_normal(u.shape)
        v = (1 - friction) * v - how.eps / 2 * (nbeta * gradient + gamma * u) + noise
        u = u + v
        if t >= 800 and t % 20 == 0:
            values.append(nbeta * np.sum(0.5 * H * u**2 + SLOPE * u, axis=1))
    means = np.mean(values, axis=0)
    error = means.std(ddof=1) / np.sqrt(len(means))
    exact = predict(whole(), nbeta, gamma, how)
    assert error < 0.01 * exact.total
    assert exact.total == pytest.approx(means.mean(), abs=4 * error)
    assert abs(exact.noise) > 10 * error


def test_derivatives_are_differences() -> None:
    """Of the logarithm of the curvature's part, by central differences."""
    found, step = predict(whole(), 100.0, 10.0), 1e-5
    for name, sides in (
        ("d_nbeta", [predict(whole(), 100.0 * math.exp(sign * step), 10.0) for sign in (1, -1)]),
        ("d_gamma", [predict(whole(), 100.0, 10.0 * math.exp(sign * step)) for sign in (1, -1)]),
    ):
        up, down = (side.curvature for side in sides)
        assert getattr(found, name) == pytest.approx(math.log(up / down) / (2 * step), rel=1e-5), name


def test_at_a_saddle_there_is_no_value() -> None:
    """nbeta h_min + gamma has to be above 0: the Gaussian posterior that would be predicted is none."""
    saddle = whole(np.array([4.0, -0.1]), np.zeros(2), np.zeros(2))
    found = predict(saddle, 100.0, 10.0)
    assert np.isnan([found.curvature, found.step, found.noise, found.slope, found.total]).all()
    assert found.h_min == -0.1
    expected = 0.5 * (400 / 410.1 + -10 / 0.1)
    assert predict(saddle, 100.0, 10.1).curvature == pytest.approx(expected)


def test_a_sampler_without_a_closed_form_has_no_parts_of_its_steps() -> None:
    found, all_samples = predict(whole(), 100.0, 10.0, None), predict(whole(), 100.0, 10.0, EXACT)
    assert math.isnan(found.step)
    assert math.isnan(found.noise)
    assert found.total == pytest.approx(all_samples.total)
    assert math.isnan(Prediction().total)


def test_a_chain_that_diverges_has_an_enormous_part() -> None:
    assert predict(whole(), 100.0, 10.0, How(1e-2)).step > 1e6  # eps a = 4.1


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(("burn_in", "steps"), [(0, 50), (100, 200), (1000, 100)])
def test_the_share_that_a_chain_of_some_length_shows_is_the_recursions(how: How, burn_in: int, steps: int) -> None:
    """E u^2 from w*, step by step. Exact without friction; with it the slower root stands for both, within .06."""
    nbeta, gamma, shown, end = 100.0, 10.0, 0.0, 0.0
    exact = how._replace(batch_size=math.inf)
    for place in range(4):
        of, covariance, squares = recursion(place, nbeta, gamma, exact), np.zeros((2, 2)), []
        for _ in range(burn_in + steps):
            squares.append(covariance[0, 0])
            covariance = of.matrix @ covariance @ of.matrix.T + of.noise
        stationary = solve_discrete_lyapunov(of.matrix, of.noise)[0, 0]
        quadratic = 0.5 * nbeta * H[place] / (nbeta * H[place] + gamma)
        shown += quadratic * np.mean(squares[burn_in:]) / stationary
        end += quadratic
    found = relaxed(whole(), nbeta, gamma, how, burn_in, steps)
    assert found == pytest.approx(shown / end, abs=1e-9 if how.friction == 1 else 0.06)


def test_what_does_not_move_shows_nothing_and_what_is_flat_counts_for_nothing() -> None:
    assert relaxed(whole(), 100.0, 10.0, How(1e-12), 10, 10) < 1e-6
    assert relaxed(whole(np.zeros(2), np.zeros(2), np.zeros(2)), 100.0, 10.0, How(1e-3), 10, 10) == 1.0


# --- the spectrum of a model ---

IN, WIDTH, N = 6, 8, 96
RNG = np.random.default_rng(2)
FIRST, LAST = RNG.standard_normal((WIDTH, IN)) / 2, RNG.standard_normal(WIDTH) / 2
X = RNG.standard_normal((N, IN))
Y = np.tanh(X @ FIRST.T) @ LAST + 0.3 * RNG.standard_normal(N)
D = WIDTH * IN + WIDTH
PARAMS = {"first": FIRST.astype(np.float32), "last": LAST.astype(np.float32), "note": "two layers"}
DATA = (X.astype(np.float32), Y.astype(np.float32))
SETTINGS = [
    (100.0, 50.0, How(1e-4, 16)),
    (100.0, 500.0, How(1e-4, 16)),
    (1000.0, 5000.0, How(2e-5, 4)),
    (10.0, 30.0, How(1e-3, 32, 0.5)),
]


def network(params: Any, batch: Any) -> Any:
    x, y = batch
    return 0.5 * (jnp.tanh(x @ params["first"].T) @ params["last"] - y) ** 2


def slopes_of(vector: np.ndarray) -> np.ndarray:
    """Each sample's gradient [n, d], by hand."""
    first, last = vector[: WIDTH * IN].reshape(WIDTH, IN), vector[WIDTH * IN :]
    hidden = np.tanh(X @ first.T)
    left = hidden @ last - Y
    of_first = np.einsum("n,h,nh,ni->nhi", left, last, 1 - hidden**2, X)
    return np.concatenate([of_first.reshape(N, -1), left[:, None] * hidden], axis=1)


class Exact(NamedTuple):
    """Eigenvalues h [d] in rising order, with slopes and variances along their eigenvectors."""

    h: np.ndarray
    slope: np.ndarray
    variance: np.ndarray


def exact_of(chosen: np.ndarray) -> Exact:
    """The Hessian of what moves by central differences of the gradient, in float64."""
    vector, step = np.concatenate([FIRST.ravel(), LAST]), 1e-5
    shifts = step * np.eye(D)[chosen]
    ends = [np.stack([slopes_of(vector + sign * one).mean(axis=0)[chosen] for one in shifts]) for sign in (1, -1)]
    matrix = (ends[0] - ends[1]) / (2 * step)
    h, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    slopes = slopes_of(vector)[:, chosen] @ vectors
    return Exact(h, slopes.mean(axis=0), slopes.var(axis=0))


EXACTLY = exact_of(np.arange(D))
TAKEN = split(network, PARAMS)


def parts_of(exact: Exact, nbeta: float, gamma: float, how: How) -> np.ndarray:
    """The four parts by the formulas of the facts."""
    a = nbeta * exact.h + gamma
    quadratic, room = 0.5 * nbeta * exact.h / a, 1 - how.eps * a / (4 * (2 - how.friction))
    noise = how.eps * nbeta**2 * exact.variance / (4 * how.batch_size * how.friction)
    slope = -(nbeta**2) * exact.slope**2 * (nbeta * exact.h / 2 + gamma) / a**2
    return np.array([part.sum() for part in (quadratic, quadratic / room - quadratic, quadratic / room * noise, slope)])


@pytest.fixture(scope="module")
def dense() -> Spectrum:
    """The spectrum of the whole matrix."""
    return spectrum.spectrum_of(TAKEN, DATA)


@pytest.fixture(scope="module")
def sparse() -> Spectrum:
    """The spectrum by Lanczos, as of a model of many parameters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectrum, "DENSE", 0)
        return spectrum.spectrum_of(TAKEN, DATA)


def check_parts(found: Prediction, expected: np.ndarray, rel: float) -> None:
    for name, value in zip(("curvature", "step", "noise", "slope"), expected, strict=True):
        assert getattr(found, name) == pytest.approx(value, rel=rel), name


@pytest.mark.parametrize(("nbeta", "gamma", "how"), SETTINGS)
def test_of_a_whole_matrix_all_four_parts_are_numpys(dense: Spectrum, nbeta: float, gamma: float, how: How) -> None:
    """In float32, against differences in float64: within 1 %."""
    assert nbeta * EXACTLY.h[0] + gamma > 0
    check_parts(predict(dense, nbeta, gamma, how), parts_of(EXACTLY, nbeta, gamma, how), 0.01)


@pytest.mark.parametrize(("nbeta", "gamma", "how"), SETTINGS)
def test_by_lanczos_all_four_parts_are_within_a_tenth(sparse: Spectrum, nbeta: float, gamma: float, how: How) -> None:
    found = predict(sparse, nbeta, gamma, how)
    expected = parts_of(EXACTLY, nbeta, gamma, how)
    check_parts(found, expected, 0.1)
    assert found.total == pytest.approx(expected.sum(), rel=0.1)
    assert found.error < 0.1 * abs(found.total)


def test_the_ends_and_the_trace_are_numpys(dense: Spectrum, sparse: Spectrum) -> None:
    trace = EXACTLY.h.sum()
    for found in (dense, sparse):
        assert found.parameters == D
        assert found.h_max == pytest.approx(EXACTLY.h[-1], rel=1e-3)
        assert found.h_min == pytest.approx(EXACTLY.h[0], abs=2e-3 * EXACTLY.h[-1])
        assert found.trace == pytest.approx(trace, rel=0.03)
        assert found.slope == pytest.approx(np.linalg.norm(EXACTLY.slope), rel=1e-3)
        np.testing.assert_allclose(found.top[:4], EXACTLY.h[:-5:-1], rtol=5e-3)
        weight = found.total(lambda nodes: nodes.weight.sum())[0]
        assert weight == pytest.approx(D, rel=1e-6)  # every direction is counted once
    low, high = spectrum.ends_of(TAKEN, DATA)
    assert (low, high) == (
        pytest.approx(EXACTLY.h[0], abs=2e-3 * EXACTLY.h[-1]),
        pytest.approx(EXACTLY.h[-1], rel=1e-3),
    )


def test_of_a_mask_it_is_the_part_of_the_matrix_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.arange(WIDTH * IN, D)  # the last layer
    mask = np.zeros(D, np.float32)
    mask[chosen] = 1
    exact, how = exact_of(chosen), How(1e-3, 16)
    expected = parts_of(exact, 50.0, 5.0, how)
    check_parts(predict(spectrum.spectrum_of(TAKEN, DATA, mask), 50.0, 5.0, how), expected, 0.01)
    monkeypatch.setattr(spectrum, "DENSE", 0)
    found = spectrum.spectrum_of(TAKEN, DATA, mask)  # fewer directions than steps of Lanczos
    assert found.parameters == WIDTH
    check_parts(predict(found, 50.0, 5.0, how), expected, 0.05)


@jax.custom_vjp
def squared(x: Any) -> Any:
    """A function with a backward derivative of its own."""
    return x**2


@jax.custom_vjp
def cubed(x: Any) -> Any:
    """One whose backward derivative has one of its own too, so that it has no second derivative."""
    return x**3


squared.defvjp(lambda x: (x**2, x), lambda x, up: (2 * x * up,))
cubed.defvjp(lambda x: (x**3, x), lambda x, up: (3 * squared(x) * up,))

REFUSED = r"has no forward-mode derivative \(it may use jax\.custom_vjp\).*predict=False"
ROWS = np.array([[1, 2], [0, 1], [3, 1]], np.float32)


@pytest.mark.parametrize("how", ["dense", "sparse", "ends"])
def test_a_loss_without_a_forward_derivative_is_refused(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = split(lambda params, x: cubed(x @ params), np.ones(2, np.float32))
    monkeypatch.setattr(spectrum, "DENSE", 0 if how == "sparse" else 320)
    with pytest.raises(ConfigError, match=REFUSED):
        (spectrum.ends_of if how == "ends" else spectrum.spectrum_of)(taken, ROWS)


def test_a_backward_derivative_that_has_a_forward_one_is_enough_for_a_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """H = 2 X^T X / n. The variance of gradients along eigenvectors needs the loss's own, where there are many."""
    taken = split(lambda params, x: squared(x @ params), np.ones(2, np.float32))
    h = np.linalg.eigvalsh(2 * ROWS.T @ ROWS / 3)
    np.testing.assert_allclose(spectrum.spectrum_of(taken, ROWS).probes[0].h, h, rtol=1e-5)
    np.testing.assert_allclose(spectrum.ends_of(taken, ROWS), h, rtol=1e-5)
    monkeypatch.setattr(spectrum, "DENSE", 0)
    with pytest.raises(ConfigError, match=REFUSED):
        spectrum.spectrum_of(taken, ROWS)


def test_another_type_error_of_a_loss_is_its_own() -> None:
    def broken(params: Any, x: Any) -> Any:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        spectrum.spectrum_of(split(broken, np.ones(2, np.float32)), np.ones((3, 2), np.float32))
