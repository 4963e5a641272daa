"""Contexts with several independent queries: sampling, tokens, and sets of evaluation tasks.

In such a `Batch` x_query is [B, Q, D] and y_query [B, Q]. A query sees the context alone: no other query, and no
context row sees it, so its prediction is the one it would get alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.src.batch import Batch
from icl_lab.src.data import labels
from icl_lab.src.data_config import QueriesData
from icl_lab.src.inputs import sample_inputs
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.prng import key as make_key

CHUNK = 500  # tasks in memory at once


def sample_batch(key: Array, data: QueriesData, batch_size: int) -> Batch:
    """B fresh tasks with Q queries each: y = w.x + noise_std * N(0, 1) for pairs and queries alike.

    The same (key, data, batch_size) gives the same batch. w ~ N(0, weight_scale^2 I), inputs from the input
    distribution.
    """
    size, pairs, queries, dim = batch_size, data.num_pairs, data.num_queries, data.dim
    w = data.weight_scale * jax.random.normal(purpose_key(key, Purpose.TASK), (size, dim))
    x = sample_inputs(purpose_key(key, Purpose.INPUT), data, (size, pairs, dim))
    x_query = sample_inputs(purpose_key(key, Purpose.QUERY), data, (size, queries, dim))
    y, y_query = labels(x, w), labels(x_query, w)
    if data.noise_std > 0:
        noise = data.noise_std * jax.random.normal(purpose_key(key, Purpose.OBSERVATION), (size, pairs + queries))
        y, y_query = y + noise[:, :pairs], y_query + noise[:, pairs:]
    return Batch(x, y, x_query, y_query, w)


def tokenise(batch: Batch) -> Array:
    """Rows (x_1, y_1), ..., (x_N, y_N), then (x_query, 0) for each query: [B, N + Q, D + 1]."""
    context = jnp.concatenate([batch.x, batch.y[:, :, None]], axis=2)
    return jnp.concatenate([context, jnp.pad(batch.x_query, ((0, 0), (0, 0), (0, 1)))], axis=1)


@partial(jax.jit, static_argnames=("data", "purpose"))
def _chunk(seed: Array, index: Array, data: QueriesData, purpose: Purpose) -> Batch:
    return sample_batch(jax.random.fold_in(purpose_key(make_key(seed), purpose), index), data, CHUNK)


def task_chunks(
    data: QueriesData, seed: int, num_tasks: int, purpose: Purpose = Purpose.TEST_SET
) -> Iterator[tuple[Batch, int]]:
    """The tasks of a seed and purpose, a chunk at a time: (batch of `CHUNK` tasks, how many of them count).

    Task number i is the same however many are asked for.
    """
    for index, start in enumerate(range(0, num_tasks, CHUNK)):
        yield _chunk(jnp.uint32(seed), jnp.uint32(index), data, purpose), min(CHUNK, num_tasks - start)
