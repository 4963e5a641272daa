"""The sets of sequences that a run uses: pure functions of its config and their purpose, in training of the step.

The pool of tasks is a function of the data seed, so runs of one seed and different M have nested pools; their inputs
and noise are the same.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import jax
import numpy as np
from jax import Array

from src.batch import Batch
from src.config import DataConfig, RunConfig
from src.prng import Purpose, purpose_key
from src.prng import key as make_key
from src.sequences import sample_sequences, task_pool
from src.train import BatchFn


def training_batches(config: RunConfig) -> BatchFn:
    """The batch function of a run's training. The pool, and how many of its tasks count, may differ within a pack."""

    def batch_fn(key: Array, step: Array, num_tasks: Array, pool: Array, **_: Array) -> Batch:
        size = config.training.batch_size
        return sample_sequences(jax.random.fold_in(key, step), pool, config.data, size, num_tasks)[0]

    return batch_fn


@partial(jax.jit, static_argnames=("data", "count"))
def _sample(seed: Array, purpose: Array, data: DataConfig, count: int, num_tasks: Array) -> Batch:
    key = make_key(seed)
    pool = purpose_key(key, Purpose.POOL)
    return sample_sequences(jax.random.fold_in(key, purpose), pool, data, count, num_tasks)[0]


def _drawn(config: RunConfig, purpose: Purpose, count: int, num_tasks: int) -> Batch:
    law = _law(config.data)
    batch: Batch = _sample(np.uint32(config.data_seed), np.uint32(purpose), law, count, np.uint32(num_tasks))
    return batch


def _law(data: DataConfig) -> DataConfig:
    """What a sequence's law depends on beside the pool's size, so that one program serves all sizes."""
    return replace(data, num_tasks=0)


def pool_sequences(config: RunConfig) -> Batch:
    """The evaluation batch in distribution: fresh sequences of the run's pool."""
    return _drawn(config, Purpose.EVAL, config.eval_tasks, config.data.num_tasks)


def latent_sequences(config: RunConfig) -> Batch:
    """The evaluation batch out of distribution: a fresh task of the pool's law for each sequence."""
    return _drawn(config, Purpose.LATENT, config.eval_tasks, 0)


def headline_sequences(config: RunConfig) -> tuple[Batch, Batch]:
    """Further sequences, in distribution and out of it, for the headline numbers."""
    count = config.headline_tasks
    in_distribution = _drawn(config, Purpose.HEADLINE, count, config.data.num_tasks)
    return in_distribution, _drawn(config, Purpose.LATENT_HEADLINE, count, 0)


def root_sequences(config: RunConfig, count: int) -> Batch:
    """Sequences of the root task, the one that pools of every size hold: the same whatever the run's M."""
    return _drawn(config, Purpose.ROOT, count, 1)


_task_pool = jax.jit(task_pool, static_argnums=(1, 2))


@lru_cache(maxsize=8)
def _pool(data_seed: int, data: DataConfig, num_tasks: int) -> Array:
    return _task_pool(purpose_key(make_key(data_seed), Purpose.POOL), data, num_tasks)


def pool_of(config: RunConfig, num_tasks: int | None = None) -> Array:
    """The tasks [M, D] of a run's pool, or the first `num_tasks` of them; M must be finite."""
    return _pool(config.data_seed, _law(config.data), config.data.num_tasks if num_tasks is None else num_tasks)
