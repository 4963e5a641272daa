"""The two batched products of attention, with gradients that XLA:CPU computes fast.

Attention multiplies many matrices as small as a context. Forward and backward pass compute dots, except a^T g, the
gradient of keys or values, which XLA:CPU computes an order of magnitude slower than the same sum of outer products, one
per row (see benchmarks/performance.md). So the rules below define the tangent row by row: it is not run itself, but its
transpose is that sum. All modes and orders of differentiation work. Beyond `MOST_ROWS` rows the sum would be long and
the dot is as fast.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

MOST_ROWS = 32


@jax.custom_jvp
def pair_scores(queries: Array, keys: Array) -> Array:
    """Scores [B, R, N] = queries [B, R, W] . keys [B, N, W]."""
    return jnp.einsum("brw,bnw->brn", queries, keys)


@pair_scores.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (queries, keys), (d_queries, d_keys) = primals, tangents
    if queries.shape[1] > MOST_ROWS:
        by_keys = pair_scores(queries, d_keys)
    else:
        by_row = [jnp.sum(row * d_keys, axis=2) for row in _rows(queries[:, :, None, :])]
        by_keys = jnp.stack(by_row, axis=1)
    return pair_scores(queries, keys), pair_scores(d_queries, keys) + by_keys


@jax.custom_jvp
def weighted_sums(weights: Array, values: Array) -> Array:
    """Sums [B, R, W] over the context of weights [B, R, N] times values [B, N, W]."""
    return jnp.einsum("brn,bnw->brw", weights, values)


@weighted_sums.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (weights, values), (d_weights, d_values) = primals, tangents
    if weights.shape[1] > MOST_ROWS:
        by_values = weighted_sums(weights, d_values)
    else:
        by_row = [jnp.sum(row * d_values, axis=1) for row in _rows(weights[:, :, :, None])]
        by_values = jnp.stack(by_row, axis=1)
    return weighted_sums(weights, values), weighted_sums(d_weights, values) + by_values


def _rows(array: Array) -> list[Array]:
    return [array[:, row] for row in range(array.shape[1])]
