"""Batches of stored contexts: which contexts a step has, and which pairs of a context that has more than it takes.

Stored are x [R, D] and y [R], the pairs of all contexts one after another, and of each context `starts` [n] and
`lengths` [n]; x_query [n, D] and y_query [n] where queries are stored too.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array, lax

from icl_lab.src.batch import Batch
from icl_lab.src.prng import Purpose, purpose_key


def sample_stored(key: Array, stored: Mapping[str, Array], batch_size: int, rows: int, drawn: bool) -> Batch:
    """B contexts, each as likely as another, of `rows` pairs: the first ones, or if `drawn` any, in random order.

    The query is the stored one, else the last of these pairs. w is 0. The same key gives the same batch.
    """
    count = stored["starts"].shape[0]
    context = jax.random.randint(purpose_key(key, Purpose.CHOICE), (batch_size,), 0, count)
    order = jnp.broadcast_to(jnp.arange(rows, dtype=jnp.int32)[None], (batch_size, rows))
    if drawn:
        order = distinct(purpose_key(key, Purpose.INPUT), stored["lengths"][context], rows)
    place = stored["starts"][context][:, None] + order
    x, y, w = stored["x"][place], stored["y"][place], jnp.zeros((batch_size, stored["x"].shape[1]), stored["x"].dtype)
    if "x_query" in stored:
        return Batch(x, y, stored["x_query"][context], stored["y_query"][context], w)
    return Batch(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1], w)


def as_sequence(batch: Batch) -> Batch:
    """The same with the query as the last of N + 1 pairs, each of which is a query: what decoders see."""
    x = jnp.concatenate([batch.x, batch.x_query[:, None]], axis=1)
    y = jnp.concatenate([batch.y, batch.y_query[:, None]], axis=1)
    return Batch(x, y, x, y, batch.w)


def distinct(key: Array, lengths: Array, count: int) -> Array:
    """`count` different numbers below each length, int32 [B, count], every sequence of them as likely as another.

    Number j is drawn as a rank among those that its predecessors left. From right to left each rank is made a number:
    it counts one up where a predecessor is not above it.
    """
    left = lengths[:, None] - jnp.arange(count, dtype=jnp.int32)[None]
    ranks = jax.random.randint(key, left.shape, 0, left)

    def count_up(step: Array, numbers: Array) -> Array:
        place = count - 2 - step
        behind = jnp.arange(count)[None] > place
        return numbers + (behind & (numbers >= jnp.take(numbers, place, axis=1)[:, None]))

    numbers: Array = lax.fori_loop(0, count - 1, count_up, ranks)
    return numbers
