"""Classifiers of a context's labels, 1 and -1: logistic regression, the nearest neighbour, the majority."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from src.batch import Batch

NEWTON_STEPS = 12


def logistic_regression(batch: Batch, penalty: float | Array) -> Array:
    """2 p - 1 [B], p the probability of the label 1: w minimises sum_i log(1 + exp(-y_i w.x_i)) + penalty |w|^2 / 2.

    By Newton's method in the context's pairs (w = X^T a), which needs a penalty above 0. No intercept, as elsewhere.
    """
    gram = jnp.einsum("bid,bjd->bij", batch.x, batch.x)
    eye = jnp.broadcast_to(jnp.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)

    def step(_: int, dual: Array) -> Array:
        """a <- (K + penalty H^-1)^-1 (K a + H^-1 g), H = diag p (1 - p), g = y sigmoid(-y f)."""
        fitted = jnp.einsum("bij,bj->bi", gram, dual)
        chance = jax.nn.sigmoid(fitted)
        curvature = jnp.maximum(chance * (1 - chance), 1e-5)
        gradient = batch.y * jax.nn.sigmoid(-batch.y * fitted)
        inverse = penalty / curvature
        target = fitted + gradient / curvature
        solved: Array = jnp.linalg.solve(gram + inverse[:, :, None] * eye, target[:, :, None])[:, :, 0]
        return solved

    dual = jax.lax.fori_loop(0, NEWTON_STEPS, step, jnp.zeros_like(batch.y))
    weights = jnp.einsum("bn,bnd->bd", dual, batch.x)
    return 2 * jax.nn.sigmoid(jnp.einsum("bd,bd->b", weights, batch.x_query)) - 1


def nearest_neighbour(batch: Batch) -> Array:
    """The label [B] of the context's input that is nearest to the query; the first of several."""
    distances = jnp.sum((batch.x - batch.x_query[:, None]) ** 2, axis=2)
    nearest = jnp.argmin(distances, axis=1)
    return jnp.take_along_axis(batch.y, nearest[:, None], axis=1)[:, 0]


def majority(batch: Batch) -> Array:
    """The mean label [B]."""
    return jnp.mean(batch.y, axis=1)
