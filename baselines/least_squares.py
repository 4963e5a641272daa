"""Predictors that are linear in some features of a task, fitted by least squares on separate tasks.

With s = sum_i y_i x_i and S = sum_i x_i x_i^T:

    query_features           x_q                       no context: the best linear classifier of the query
    one_layer_features       vec(s x_q^T)              all that one linear layer can do with the labels: s^T A x_q
    biased_layer_features    vec(s x_q^T), x_q         and with sum_i y_i^2 = N, which is constant: s^T A x_q + b^T x_q
    layer_and_query_features vec(s x_q^T), x_q, 1      the columns of all of these: one pass over the tasks
    krylov_features          x_q^T S^k s, k < K        K steps of gradient descent, each with a step size of its own

So theta = E[z z^T]^-1 E[z y_q] is the exact optimum of one linear layer (the second, and the third where labels are 1
and -1), whatever the labels are: they need not be linear in x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.src.batch import Batch

Features = Callable[[Batch], Array]  # batch -> [B, F]
RIDGE = 1e-9  # of each feature's mean square, for features that are always 0 or duplicated


def query_features(batch: Batch) -> Array:
    """(x_q, 1) [B, D + 1]."""
    return jnp.concatenate([batch.x_query, jnp.ones((len(batch.x_query), 1), batch.x_query.dtype)], axis=1)


def one_layer_features(batch: Batch) -> Array:
    """vec(s x_q^T) [B, D^2]."""
    gradient = jnp.einsum("bn,bnd->bd", batch.y, batch.x)
    return jnp.einsum("bi,bj->bij", gradient, batch.x_query).reshape(len(gradient), -1)


def biased_layer_features(batch: Batch) -> Array:
    """(vec(s x_q^T), x_q) [B, D^2 + D]."""
    return jnp.concatenate([one_layer_features(batch), batch.x_query], axis=1)


def layer_and_query_features(batch: Batch) -> Array:
    """(vec(s x_q^T), x_q, 1) [B, D^2 + D + 1]."""
    return jnp.concatenate([one_layer_features(batch), query_features(batch)], axis=1)


@lru_cache(maxsize=64)
def krylov(steps: int) -> Features:
    """`krylov_features` of so many steps: always the same function."""
    return partial(krylov_features, steps=steps)


def krylov_features(batch: Batch, steps: int) -> Array:
    """x_q^T S^k s for k < steps: [B, K]. Their combinations are the residual polynomials of K steps from zero."""
    direction = jnp.einsum("bn,bnd->bd", batch.y, batch.x)
    features = []
    for _ in range(steps):
        features.append(jnp.einsum("bd,bd->b", batch.x_query, direction))
        direction = jnp.einsum("bnd,bn->bd", batch.x, jnp.einsum("bnd,bd->bn", batch.x, direction))
    return jnp.stack(features, axis=1)


class Moments(NamedTuple):
    """E[z z^T] [F, F] and E[z y_q] [F] of some tasks, in float64."""

    gram: np.ndarray
    moment: np.ndarray


def moments(features: Features, batches: Iterable[Batch]) -> Moments:
    """The moments over the tasks of all batches."""
    gram, moment, tasks = np.zeros(()), np.zeros(()), 0
    computed = jax.jit(features)
    for batch in batches:
        z = np.asarray(computed(batch), np.float64)
        gram, moment = gram + z.T @ z, moment + z.T @ np.asarray(batch.y_query, np.float64)
        tasks += len(z)
    return Moments(gram / tasks, moment / tasks)


def solve(feature_moments: Moments, columns: slice | np.ndarray = slice(None)) -> np.ndarray:
    """theta of least mean squared error among those that use these features alone."""
    gram, moment = feature_moments.gram[columns][:, columns], feature_moments.moment[columns]
    scale = np.sqrt(np.diagonal(gram))
    scale = np.where(scale > 0, scale, 1.0)
    scaled = gram / np.outer(scale, scale) + RIDGE * np.eye(len(scale))
    return np.asarray(np.linalg.solve(scaled, moment / scale) / scale)


def predictor(features: Features, theta: np.ndarray) -> Partial:
    """theta . z as a predictor: batch in, predictions [B] out."""
    return Partial(_predict_of(features), jnp.asarray(theta, jnp.float32))


@lru_cache(maxsize=64)
def _predict_of(features: Features) -> Callable[[Array, Batch], Array]:
    """Always the same function of some features, so that programs which call it are compiled once."""
    return partial(_predict, features)


def _predict(features: Features, theta: Array, batch: Batch) -> Array:
    return jnp.einsum("bf,f->b", features(batch), theta)
