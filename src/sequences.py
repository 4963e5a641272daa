"""Sequences of noisy pairs whose task is one of a pool, and what a decoder sees of them.

All K pairs of a sequence are predicted, each from the pairs before it: in such a `Batch` x_query [B, K, D] is x and
y_query [B, K] is y. Task number i of a pool is a function of the pool's key and i alone, so pools are nested, T_1
within T_2 within ..., and all of them hold the root task, number 0. Raventos et al. 2023, Sec. 2.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.batch import Batch
from icl_lab.src.config import TOKENS
from icl_lab.src.data import labels
from icl_lab.src.data_config import PoolData
from icl_lab.src.inputs import sample_inputs
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.tasks import TASK_DISTRIBUTIONS


def tasks_of(key: Array, data: PoolData, numbers: Array) -> Array:
    """Tasks [B, D] by their numbers [B] under a key: `weight_scale` times draws of the task distribution."""
    draw = TASK_DISTRIBUTIONS[data.task_distribution]
    return data.weight_scale * jax.vmap(lambda number: draw(jax.random.fold_in(key, number), data.dim))(numbers)


def task_pool(key: Array, data: PoolData, num_tasks: int) -> Array:
    """The first M tasks [M, D] of a pool: the same ones whatever M."""
    return tasks_of(key, data, jnp.arange(num_tasks, dtype=jnp.uint32))


def traced_size(num_tasks: float) -> np.uint32:
    """A pool's size M as programs take it, as a value: 0 stands for infinity, which whole numbers do not have."""
    return np.uint32(0 if num_tasks == math.inf else num_tasks)


def sample_sequences(
    key: Array, pool: Array, data: PoolData, batch_size: int, num_tasks: int | Array
) -> tuple[Batch, Array]:
    """B sequences of K pairs y = w.x + noise_std * N(0, 1), w uniform among M tasks of a pool; and the w's numbers [B].

    `num_tasks` is `traced_size(M)`. For infinite M, w is drawn afresh from the task distribution, and the numbers mean
    nothing. `pool` is the pool's key; the same (key, pool, data, M) gives the same sequences.
    """
    count = jnp.asarray(num_tasks, jnp.uint32)
    fresh = count == 0
    task_key, choice_key = purpose_key(key, Purpose.TASK), purpose_key(key, Purpose.CHOICE)
    chosen = jax.random.randint(choice_key, (batch_size,), 0, jnp.maximum(count, 1).astype(jnp.int32))
    numbers = jnp.where(fresh, jnp.arange(batch_size, dtype=jnp.uint32), chosen.astype(jnp.uint32))
    drawn_from = jnp.where(fresh, task_key, pool)
    return sequences_with(key, data, tasks_of(drawn_from, data, numbers)), numbers


def sequences_with(key: Array, data: PoolData, w: Array) -> Batch:
    """A sequence of K pairs y = w.x + noise_std * N(0, 1) for each of these tasks [B, D]."""
    data.check_drawn("a sequence that is drawn")
    shape = (w.shape[0], data.num_pairs)
    x = sample_inputs(purpose_key(key, Purpose.INPUT), data, (*shape, data.dim))
    y = labels(x, w)
    if data.noise_std > 0:
        y = y + data.noise_std * jax.random.normal(purpose_key(key, Purpose.OBSERVATION), shape)
    return Batch(x, y, x, y, w)


def tokenise(batch: Any, layout: str = "interleaved") -> Array:
    """Rows (0, x_1), (y_1, 0), ..., (0, x_K), (y_K, 0): [B, 2K, D + 1], the label in channel 0.

    Labels y [B, K, C] have C channels. interleaved_shared: rows x_1, (y_1, 0, ..., 0), ...: [B, 2K, D], the label where
    x has its first coordinates. Garg et al. 2022, Sec. 3.
    """
    size, pairs, dim = batch.x.shape
    labels = batch.y if batch.y.ndim == 3 else batch.y[:, :, None]
    channels = labels.shape[-1]
    own = channels * int(TOKENS[layout].own_label_channel)
    inputs = jnp.pad(batch.x, ((0, 0), (0, 0), (own, 0)))
    outputs = jnp.pad(labels, ((0, 0), (0, 0), (0, dim + own - channels)))
    return jnp.stack([inputs, outputs], axis=2).reshape(size, 2 * pairs, dim + own)
