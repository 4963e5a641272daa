"""Iterative solvers of a context's least-squares problem, with the weights after every step; what ends at a solution.

Solvers work on the normal equations S w = b with S = X^T X and b = X^T y, and give weights [T, B, D] after steps 1 to
T. The queries are never used. An iteration to a solution (`iterate`) changes a context's values until its residual is
small, at most so many times. Where it is not small by then there is no solution to speak of: predictions are nan there,
and `why_missing` is the sentence for whoever reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from icl_lab.src.batch import Batch
from icl_lab.src.checks import require

State = TypeVar("State")


class Normal(NamedTuple):
    """The normal equations of B contexts: scatter S [B, D, D] and moment b [B, D]."""

    scatter: Array
    moment: Array


def normal_equations(batch: Batch) -> Normal:
    """S = sum_i x_i x_i^T and b = sum_i y_i x_i of each context."""
    return Normal(jnp.einsum("bnd,bne->bde", batch.x, batch.x), jnp.einsum("bnd,bn->bd", batch.x, batch.y))


def descent(normal: Normal, step_size: Array, steps: int, start: Array) -> Array:
    """Gradient descent w <- w - c (S w - b) from `start` [B, D]; c [B], one step size a task."""

    def step(w: Array) -> Array:
        return w + step_size[:, None] * _residual(normal, w)

    return _path(step, start, steps, lambda w: w)


def descent_with_step_sizes(normal: Normal, step_sizes: Array | np.ndarray) -> Array:
    """Gradient descent from zero with a step size for each step: w <- w - c_k (S w - b); c [T].

    Step sizes may be complex in conjugate pairs, after both of which weights are real; the real part is given.
    """
    dtype = normal.moment.dtype
    sizes = jnp.asarray(step_sizes, jnp.result_type(dtype, jnp.complex64) if np.iscomplexobj(step_sizes) else dtype)
    scatter, moment = (part.astype(sizes.dtype) for part in normal)

    def step(w: Array, size: Array) -> tuple[Array, Array]:
        w = w + size * _residual(Normal(scatter, moment), w)
        return w, jnp.real(w)

    path: Array = lax.scan(step, jnp.zeros_like(moment), sizes)[1]
    return path


def steepest_descent(normal: Normal, steps: int, start: Array) -> Array:
    """Gradient descent with exact line search: c = g.g / g.S g with g = b - S w, the step of least context loss."""

    def step(w: Array) -> Array:
        g = _residual(normal, w)
        return w + _ratio(_dots(g, g), _dots(g, _times(normal.scatter, g)))[:, None] * g

    return _path(step, start, steps, lambda w: w)


def conjugate_gradients(normal: Normal, steps: int) -> Array:
    """Conjugate gradients from zero (Hestenes and Stiefel 1952); exact after D steps."""

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        w, r, p = state
        image = _times(normal.scatter, p)
        alpha = _ratio(_dots(r, r), _dots(p, image))[:, None]
        rest = r - alpha * image
        beta = _ratio(_dots(rest, rest), _dots(r, r))[:, None]
        return w + alpha * p, rest, rest + beta * p

    start = jnp.zeros_like(normal.moment)
    return _path(step, (start, normal.moment, normal.moment), steps, lambda state: state[0])


class Interval(NamedTuple):
    """Bounds of the eigenvalues of each S: low [B], at least 0, and high [B]."""

    low: Array
    high: Array


def eigenvalue_interval(normal: Normal) -> Interval:
    """The smallest and the largest eigenvalue of each context's own S: what solvers on [a, b] have at best."""
    values = jnp.maximum(jnp.linalg.eigvalsh(normal.scatter), 0)  # below 0 is rounding
    return Interval(values[:, 0], values[:, -1])


def momentum(normal: Normal, steps: int, interval: Interval) -> Array:
    """The heavy ball from zero, w <- w + c (b - S w) + beta (w - w_before), with the best rates on [a, b].

    c = 4 / (sqrt a + sqrt b)^2, beta = ((sqrt b - sqrt a) / (sqrt b + sqrt a))^2, and w_before = w at first. The error
    falls by sqrt beta a step in the end, and may rise before. a = b is gradient descent of step 1/a. Polyak 1964.
    """
    low, high = (jnp.sqrt(end)[:, None] for end in interval)
    size, beta = _ratio(jnp.full_like(low, 4), (low + high) ** 2), _ratio(high - low, high + low) ** 2

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        w, before = state
        return w + size * _residual(normal, w) + beta * (w - before), w

    start = jnp.zeros_like(normal.moment)
    return _path(step, (start, start), steps, lambda state: state[0])


def chebyshev(normal: Normal, steps: int, interval: Interval) -> Array:
    """The Chebyshev semi-iteration from zero: after K steps the error is p(S) w, w the solution, p minimax on [a, b].

        p(l) = T_K((a + b - 2 l) / (b - a)) / T_K((a + b) / (b - a))
        w <- w_before + omega (2 / (a + b) (b - S w) + w - w_before),   omega_k+1 = 1 / (1 - mu^2 omega_k / 4)

    with mu = (b - a) / (b + a), omega_1 = 1 and omega_2 = 1 / (1 - mu^2 / 2). One step is gradient descent of step
    2 / (a + b); at a = 0 it still converges where b has no part in the null space. Golub and Varga 1961.
    """
    low, high = (end[:, None] for end in interval)
    size, ratio = _ratio(jnp.full_like(low, 2), low + high), _ratio(high - low, high + low)

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        w, before, omega = state
        after = before + omega * (size * _residual(normal, w) + w - before)
        follows = jnp.where(omega == 1, 2, omega)  # omega_1, or mu = 0, which makes the next 1 in any case
        return after, w, 1 / (1 - ratio**2 * follows / 4)

    start = jnp.zeros_like(normal.moment)
    return _path(step, (start, start, jnp.ones_like(low)), steps, lambda state: state[0])


def newton_schulz(normal: Normal, steps: int, factor: Array | None = None) -> Array:
    """Newton-Schulz M <- 2 M - M S M from M = a S, and w = M b: the error I - M S = I - a S^2 is squared every step.

    a = `factor` [B], below 2 / lambda_max^2, is 1 / lambda_max^2 if none is given. It tends to the pseudo-inverse of S
    (Ben-Israel and Cohen 1966). Fu et al. 2023 have this start.
    """
    s = normal.scatter
    start = s / (power_iteration(s) ** 2)[:, None, None] if factor is None else s * factor[:, None, None]
    return _squarings(normal, start, steps)


def newton_schulz_identity(normal: Normal, steps: int, interval: Interval) -> Array:
    """Newton-Schulz from M = a I, a = 2 / (low + high): after k steps the error at an eigenvalue l is (1 - a l)^(2^k).

    That is the error of 2^k steps of gradient descent of step a; this a minimises its maximum over the interval.
    """
    factor = _ratio(jnp.full_like(interval.low, 2), interval.low + interval.high)
    eye = jnp.eye(normal.scatter.shape[-1], dtype=normal.scatter.dtype)
    return _squarings(normal, factor[:, None, None] * eye[None], steps)


def _squarings(normal: Normal, start: Array, steps: int) -> Array:
    """Newton-Schulz from M = `start` [B, D, D], which commutes with S."""

    def step(m: Array) -> Array:
        return 2 * m - jnp.einsum("bij,bjk,bkl->bil", m, normal.scatter, m)

    return _path(step, start, steps, lambda m: _times(m, normal.moment))


def power_iteration(scatter: Array, iterations: int = 100) -> Array:
    """The largest eigenvalue [B] of each S [B, D, D], from below: v.S v / v.v after `iterations` products with S."""

    def step(_: Array | int, v: Array) -> Array:
        v = _times(scatter, v)
        return v * _ratio(jnp.ones(len(v), v.dtype), jnp.sqrt(_dots(v, v)))[:, None]

    v = lax.fori_loop(0, iterations, step, jnp.ones(scatter.shape[:2], scatter.dtype))
    return _ratio(_dots(v, _times(scatter, v)), _dots(v, v))


def _path(step: Callable[[State], State], start: State, steps: int, weights: Callable[[State], Array]) -> Array:
    """The weights after each step."""

    def body(state: State, _: None) -> tuple[State, Array]:
        state = step(state)
        return state, weights(state)

    path: Array = lax.scan(body, start, None, length=steps)[1]
    return path


def _residual(normal: Normal, w: Array) -> Array:
    return normal.moment - _times(normal.scatter, w)


def _times(matrix: Array, vector: Array) -> Array:
    return jnp.einsum("bde,be->bd", matrix, vector)


def _dots(a: Array, b: Array) -> Array:
    return jnp.sum(a * b, axis=1)


def _ratio(numerator: Array, denominator: Array) -> Array:
    """0 where the denominator is 0: a problem that is solved stays so."""
    return jnp.where(denominator > 0, numerator / jnp.where(denominator > 0, denominator, 1), 0)


class Solution(NamedTuple):
    """Values [B, F] of B contexts, and in which of them [B] the residual is above the tolerance."""

    values: Array
    unsolved: Array

    @property
    def or_nan(self) -> Array:
        """The values, nan where they are no solution."""
        return jnp.where(self.unsolved[:, None], jnp.nan, self.values)


def iterate(
    step: Callable[[Array], Array], residual: Callable[[Array], Array], start: Array, tolerance: float, most: int
) -> Solution:
    """Steps from a start [B, F] until residual(values) [B] is at most the tolerance; of each context at most `most`.

    A context that is solved stays as it is while others go on, so its values do not depend on theirs.
    """

    def unsolved(values: Array) -> Array:
        return ~(residual(values) <= tolerance)  # so is nan

    def goes_on(state: tuple[Array, Solution]) -> Array:
        return (state[0] < most) & jnp.any(state[1].unsolved)

    def body(state: tuple[Array, Solution]) -> tuple[Array, Solution]:
        count, (values, left) = state
        after = jnp.where(left[:, None], step(values), values)
        return count + 1, Solution(after, unsolved(after))

    solution: Solution = lax.while_loop(goes_on, body, (jnp.int32(0), Solution(start, unsolved(start))))[1]
    return solution


def least_between(objective: Callable[[float], float], low: float, high: float, within: float = 1e-5) -> float:
    """Where a function of one number is least between two, to this accuracy, by Brent's method.

    `ConfigError` where that does not converge, as for values that are not numbers.
    """
    from scipy.optimize import minimize_scalar  # here, as it takes a while to import

    found = minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": within})
    require(bool(found.success), f"no minimum was found between {low:g} and {high:g}: {found.message}")
    return float(found.x)


def why_missing(predictions: np.ndarray) -> str | None:
    """Why predictions [B] of an iteration lack a value, None where none does."""
    missing = int(np.count_nonzero(~np.isfinite(predictions)))
    if missing == 0:
        return None
    return f"in {missing} of {len(predictions)} contexts it has not converged, or float32 does not hold its prediction"
