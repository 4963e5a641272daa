"""Stable sorting of the few pairs of many contexts."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

MOST_COMPARED = 64  # pairs in a context up to which comparing all with all beats sorting on a CPU (five times at 10)


def stable_order(keys: Sequence[Array]) -> Array:
    """The index int32 [B, N] that puts each row of the keys [B, N] in ascending order; the first key counts most.

    Equal ones stay in the order they have. XLA's sort is slow on short rows; there a pair's rank is counted instead,
    rank_i = sum_j 1[j before i], to the same index.
    """
    num_pairs = keys[0].shape[1]
    if num_pairs > MOST_COMPARED:
        return jnp.lexsort(tuple(keys)[::-1], axis=1).astype(jnp.int32)
    place = jnp.arange(num_pairs, dtype=jnp.int32)
    before = jnp.broadcast_to((place[None, :] < place[:, None])[None], (*keys[0].shape, num_pairs))  # [B, i, j]: j < i
    for key in reversed(keys):
        other, own = key[:, None, :], key[:, :, None]
        before = (other < own) | ((other == own) & before)
    rank = jnp.sum(before, axis=2, dtype=jnp.int32)
    return jnp.sum(jnp.where(rank[:, None, :] == place[None, :, None], place[None, None], 0), axis=2, dtype=jnp.int32)
