"""The sets of sines that a run uses: pure functions of its config and their purpose, in training of the step."""

from __future__ import annotations

import jax
from jax import Array

from curricula.context import task_key
from src.batch import Batch
from src.config import RunConfig
from src.prng import Purpose
from src.sine import sample_sines
from src.train import BatchFn

_sample = jax.jit(sample_sines, static_argnames=("data", "batch_size"))


def training_batches(config: RunConfig) -> BatchFn:
    """The batch function of a run's training. Sines are neither corrupted nor ordered: it has no knobs to turn."""

    def batch_fn(key: Array, step: Array, **_: Array) -> Batch:
        return sample_sines(jax.random.fold_in(key, step), config.data, config.training.batch_size)

    return batch_fn


def evaluation_batch(config: RunConfig) -> Batch:
    """The evaluation batch, which is also the analysis batch."""
    return _sample(task_key(config, Purpose.EVAL), config.data, config.eval_tasks)


def headline_batch(config: RunConfig) -> Batch:
    """Further tasks, for the headline numbers."""
    return _sample(task_key(config, Purpose.HEADLINE), config.data, config.headline_tasks)
