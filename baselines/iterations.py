"""Iterative solvers of a context's least-squares problem, as the weights after every step.

All work on the normal equations S w = b with S = X^T X and b = X^T y, and give weights [T, B, D] after steps 1 to T.
The queries are never used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from src.batch import Batch

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


def descent_with_own_steps(normal: Normal, step_sizes: Array | np.ndarray) -> Array:
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


def newton_schulz(normal: Normal, steps: int) -> Array:
    """Newton-Schulz M <- 2 M - M S M from M = S / lambda_max^2, and w = M b: the error I - M S is squared every step.

    It tends to the pseudo-inverse of S (Ben-Israel and Cohen 1966).
    """
    s = normal.scatter

    def step(m: Array) -> Array:
        return 2 * m - jnp.einsum("bij,bjk,bkl->bil", m, s, m)

    start = s / (power_iteration(s) ** 2)[:, None, None]
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
