"""The Hessian's spectrum at w*, as a few nodes and weights.

    sum_i f(h_i, g_i^2, C_i)

over the eigenvalues h_i of the Hessian of L at w*, g_i the slope and C_i the variance of per-sample gradients along
eigenvector i, all on the data that the chain draws from (the Hessian of a model above 10 000 parameters on 1024 of it).

Few parameters: the whole matrix. Many: the largest eigenvectors by Lanczos, with their own slopes and variances, and
the rest by stochastic Lanczos quadrature (Ubaru, Chen and Saad 2017, Section 3), in memory that grows with d alone.

NumPy's share of it runs on one thread: the libraries of linear algebra divide their sums by threads, of which a worker
on one core has fewer than a process with as many of JAX's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from threadpoolctl import threadpool_limits

from icl_lab.analysis.llc.loss import Form, Split, first, gradient, in_chunks, losses_of, mean_over_chunks
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import key as key_of

DENSE = 320  # parameters up to which the whole Hessian is made
LONG, SHORT = 24, 8  # steps of Lanczos for the largest eigenvectors, and for the rest of the spectrum
PROBES = 5  # random vectors for the rest of the spectrum
NOISE_PROBES = 1  # of the gradients' covariance there
MOST_PARAMETERS, SAMPLES = 10_000, 1024  # of larger models the Hessian is of the first samples; slopes are of all
CONVERGED = 0.02  # residual of a Ritz vector over its value, below which it counts as an eigenvector
CHUNK = 256  # samples whose second derivatives are in memory at once
NO_FORWARD = (
    "the Hessian cannot be computed, as the loss has no forward-mode derivative (it may use jax.custom_vjp): give eps "
    "and predict=False"
)


class Nodes(NamedTuple):
    """Nodes h [K] with weights, slopes and variances: sum over K of weight f(h), of squared slope and variance
    alike.
    """

    h: np.ndarray
    weight: np.ndarray
    slope: np.ndarray
    variance: np.ndarray


class Spectrum(NamedTuple):
    """The spectrum at w* of d parameters that move: a list of nodes for each probe, of which a sum is the mean.

    h_min, h_max: the ends; slope: |grad L(w*)|; samples: of the data, that the Hessian is of (0: all of it).
    """

    probes: tuple[Nodes, ...]
    parameters: int
    h_min: float
    h_max: float
    slope: float
    samples: int = 0

    def total(self, of: Any) -> tuple[float, float]:
        """The mean over probes of a function of nodes, and its standard error; 0 of a whole matrix."""
        values = np.array([of(nodes) for nodes in self.probes], float)
        error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
        return float(values.mean()), float(error)

    @property
    def trace(self) -> float:
        """The sum of the eigenvalues."""
        return self.total(lambda nodes: np.sum(nodes.weight * nodes.h))[0]

    @property
    def top(self) -> list[float]:
        """The largest eigenvalues, in falling order."""
        return [float(h) for h in np.sort(self.probes[0].h[self.probes[0].weight == 1.0])[::-1]]


# --- the nodes ---


def spectrum_of(split: Split, data: Any, mask: np.ndarray | None = None, seed: int = 0) -> Spectrum:
    """The spectrum on all of the data; `ConfigError` for a loss without a forward derivative."""
    moves = np.ones(len(split.vector), np.float32) if mask is None else np.asarray(mask, np.float32)
    with _computing():
        return (_dense if moves.sum() <= DENSE else _sparse)(split, data, moves, seed)


def of_hessian(data: Any, moves: np.ndarray) -> Any:
    """The samples that second derivatives are of: all, of a large model the first."""
    large = moves.sum() > MOST_PARAMETERS and len(jax.tree.leaves(data)[0]) > SAMPLES
    return first(data, SAMPLES) if large else data


def ends_of(split: Split, data: Any, mask: np.ndarray | None = None, seed: int = 0) -> tuple[float, float]:
    """The smallest and the largest eigenvalue alone."""
    moves = np.ones(len(split.vector), np.float32) if mask is None else np.asarray(mask, np.float32)
    with _computing():
        ritz, _, _ = _ritz(split, of_hessian(data, moves), moves, seed)
    return float(ritz.min()), float(ritz.max())


@contextmanager
def _computing() -> Iterator[None]:
    """With NumPy on one thread; `ConfigError` for a loss without a forward derivative."""
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    except TypeError as error:
        if "custom_vjp" not in str(error):
            raise
        raise ConfigError(NO_FORWARD) from None


def _dense(split: Split, data: Any, moves: np.ndarray, seed: int) -> Spectrum:
    chosen = np.flatnonzero(moves)
    matrix, slopes, covariance = (
        np.asarray(part, np.float64) for part in _whole(split.form, split.fixed, split.vector, chosen, data)
    )
    h, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    along, variance = (slopes @ vectors) ** 2, np.einsum("di,de,ei->i", vectors, covariance, vectors)
    nodes = Nodes(h, np.ones(len(h)), along, np.maximum(variance, 0.0))
    return Spectrum((nodes,), len(chosen), float(h[0]), float(h[-1]), float(np.linalg.norm(slopes)))


def _sparse(split: Split, data: Any, moves: np.ndarray, seed: int) -> Spectrum:
    some = of_hessian(data, moves)
    ritz, vectors, residual = _ritz(split, some, moves, seed)
    top = ritz.max(initial=0.0)
    apart = residual <= CONVERGED * np.maximum(np.abs(ritz), 1e-3 * top)
    known, basis = ritz[apart], vectors[apart]  # [R], [R, d]
    padded = np.zeros((LONG, len(moves)), np.float32)
    padded[: len(basis)] = basis
    count = int(moves.sum())
    signs = jax.random.split(key_of(seed), 2)
    probes = np.asarray(jax.random.rademacher(signs[0], (PROBES, len(moves)), np.float32)) * moves
    slope, noisy, variance = (
        np.asarray(x, np.float64)
        for x in _gradients(split.form, split.fixed, split.vector, moves, padded, data, some, signs[1])
    )
    starts = np.concatenate([probes, slope[None].astype(np.float32), noisy.astype(np.float32)])
    starts = starts - (starts @ basis.T) @ basis if len(basis) else starts
    h, weight = _quadratures(split, some, moves, padded, starts.astype(np.float32))  # [P, SHORT], of squared length
    rest_h, rest_weight = h[:PROBES], weight[:PROBES]
    along = (basis.astype(np.float64) @ slope) ** 2 if len(basis) else np.zeros(0)
    shared_h = np.concatenate([known, h[PROBES], *h[PROBES + 1 :]])
    none, some = np.zeros(SHORT), np.zeros(len(known))
    shared_slope = np.concatenate([along, weight[PROBES], *[none] * NOISE_PROBES])
    shared_variance = np.concatenate([variance[: len(known)], none, *weight[PROBES + 1 :] / NOISE_PROBES])
    shared_weight = np.concatenate([some + 1.0, none, *[none] * NOISE_PROBES])
    fill = np.zeros(SHORT)
    nodes = tuple(
        Nodes(
            np.concatenate([shared_h, rest_h[i]]),
            np.concatenate([shared_weight, rest_weight[i] * _unit(rest_weight[i], count - len(known))]),
            np.concatenate([shared_slope, fill]),
            np.concatenate([shared_variance, fill]),
        )
        for i in range(PROBES)
    )
    low = float(min(ritz.min(), h[:PROBES][rest_weight > 1e-6 * count].min(initial=np.inf)))
    samples = 0 if some is data else SAMPLES
    return Spectrum(nodes, count, low, float(ritz.max()), float(np.linalg.norm(slope)), samples)


def _unit(weights: np.ndarray, dimension: int) -> float:
    """What makes a probe's weights sum to the number of directions that it stands for."""
    total = weights.sum()
    return dimension / total if total > 0 else 0.0


# --- products ---


def _times(form: Form, fixed: tuple[Any, ...], vector: Array, moves: Array, data: Any, direction: Array) -> Array:
    """H v [d] of the mean loss's Hessian, of what moves."""
    losses = losses_of(form, fixed)

    def on(batch: Any) -> Array:
        product: Array = jax.jvp(jax.grad(lambda w: jnp.mean(losses(w, batch))), (vector,), (direction,))[1]
        return product

    found: Array = moves * mean_over_chunks(on, data, CHUNK)
    return found


@partial(jax.jit, static_argnums=0)
def _whole(form: Form, fixed: tuple[Any, ...], vector: Array, chosen: Array, data: Any) -> tuple[Array, Array, Array]:
    """The Hessian of the parameters that move, the gradient of the mean loss, and the covariance of the samples'."""
    data = jax.tree.map(jnp.asarray, data)
    losses = losses_of(form, fixed)

    def placed(part: Array) -> Array:
        return vector.at[chosen].set(part)

    def on(batch: Any) -> tuple[Array, Array, Array]:
        def mean(part: Array) -> Array:
            return jnp.mean(losses(placed(part), batch))

        def each(sample: Any) -> Array:
            one = jax.tree.map(lambda values: values[None], sample)
            slope: Array = jax.grad(lambda part: losses(placed(part), one)[0])(vector[chosen])
            return slope

        slopes = jax.vmap(each)(batch)
        units = jnp.eye(len(chosen), dtype=vector.dtype)
        _, product = jax.linearize(jax.grad(mean), vector[chosen])
        return jax.vmap(product)(units), slopes.mean(axis=0), slopes.T @ slopes / len(slopes)

    matrix, mean, second = mean_over_chunks(on, data, CHUNK)
    return matrix, mean, second - mean[:, None] * mean[None, :]


@partial(jax.jit, static_argnums=0)
def _gradients(
    form: Form, fixed: tuple[Any, ...], vector: Array, moves: Array, basis: Array, data: Any, some: Any, key: Array
) -> tuple[Array, Array, Array]:
    """The slope [d], random sums of the samples' gradients about it [NOISE_PROBES, d], and their variance along a
    basis.

    A sum with random signs over sqrt(n) has the covariance of one sample's gradient (Rademacher's trick).
    """
    data = jax.tree.map(jnp.asarray, data)
    losses = losses_of(form, fixed)
    n = len(jax.tree.leaves(data)[0])
    _, slope = gradient(form, fixed, vector, data)
    signs = jax.random.rademacher(key, (n, NOISE_PROBES), vector.dtype)

    def summed(batch_and_signs: Any) -> Array:
        batch, mine = batch_and_signs
        _, back = jax.vjp(lambda w: losses(w, batch), vector)
        found: Array = jax.vmap(lambda column: back(column.astype(vector.dtype))[0])(mine.T) / len(mine)
        return found

    noisy = mean_over_chunks(summed, (data, signs), CHUNK) * n - jnp.sum(signs, axis=0)[:, None] * slope[None]

    def along(batch: Any) -> Array:
        _, push = jax.linearize(lambda w: losses(w, batch), vector)
        found: Array = jax.vmap(push)(basis).T
        return found

    variance = jnp.var(in_chunks(along, jax.tree.map(jnp.asarray, some), CHUNK), axis=0)
    return moves * slope, moves[None] * noisy / jnp.sqrt(n), variance


@partial(jax.jit, static_argnums=0)
def _lanczos(
    form: Form,
    fixed: tuple[Any, ...],
    vector: Array,
    moves: Array,
    data: Any,
    apart: Array,
    start: Array,
    steps: Array,
) -> tuple[Array, Array, Array]:
    """Lanczos from a start [d], orthogonal to its own basis and to `apart` [R, d]: alpha, beta [LONG], basis [LONG, d].

    Of `steps` steps, which is no constant of the program, so that all runs share it: the rest is 0. Where the basis
    spans all that the matrix reaches, beta and what follows are 0.
    """
    data = jax.tree.map(jnp.asarray, data)
    tiny = jnp.asarray(np.finfo(start.dtype).tiny, start.dtype)
    begin = start / jnp.maximum(jnp.linalg.norm(start), tiny)

    def orthogonal(candidate: Array, basis: Array) -> Array:
        for _ in range(2):
            candidate = candidate - (basis @ candidate) @ basis
            candidate = candidate - (apart @ candidate) @ apart
        return candidate

    def step(number: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        now, basis, alpha, beta = state
        basis = basis.at[number].set(now)
        product = _times(form, fixed, vector, moves, data, now)
        left = orthogonal(product, basis)
        length = jnp.linalg.norm(left)
        length = jnp.where(length > 1e-4 * jnp.linalg.norm(product), length, 0.0)
        following = jnp.where(length > 0, left / jnp.maximum(length, tiny), 0.0)
        return following, basis, alpha.at[number].set(jnp.sum(now * product)), beta.at[number].set(length)

    none = jnp.zeros(LONG, start.dtype)
    first = begin, jnp.zeros((LONG, len(start)), start.dtype), none, none
    _, basis, alpha, beta = lax.fori_loop(0, steps, step, first)
    return alpha, beta, basis


def _tridiagonal(alpha: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues [k] and eigenvectors [k, k] of the tridiagonal matrix."""
    values, vectors = np.linalg.eigh(np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1))
    return values, vectors


def _ritz(split: Split, data: Any, moves: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ritz values [k], vectors [k, d] and their residuals [k] of one long run from a random start."""
    steps = min(LONG, int(moves.sum()))
    start = np.asarray(jax.random.normal(key_of(seed), (len(moves),), np.float32)) * moves
    apart = np.zeros((LONG, len(moves)), np.float32)
    found = _lanczos(split.form, split.fixed, split.vector, moves, data, apart, start, np.int32(steps))
    alpha, beta, basis = (np.asarray(part, np.float64)[:steps] for part in found)
    values, vectors = _tridiagonal(alpha, beta)
    there = np.abs(vectors[0]) ** 2 > 0  # what the start does not reach has no weight
    ritz = vectors.T @ basis
    return values[there], ritz[there].astype(np.float32), (beta[-1] * np.abs(vectors[-1]))[there]


def _quadratures(
    split: Split, data: Any, moves: np.ndarray, apart: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights [P, SHORT] of v.f(H) v for starts v [P, d]: weights sum to |v|^2."""
    nodes, weights = [], []
    for start in starts:
        found = _lanczos(split.form, split.fixed, split.vector, moves, data, apart, start, np.int32(SHORT))
        values, vectors = _tridiagonal(*(np.asarray(part, np.float64)[:SHORT] for part in found[:2]))
        nodes.append(values)
        weights.append(vectors[0] ** 2 * np.sum(np.asarray(start, np.float64) ** 2))
    return np.array(nodes), np.array(weights)
