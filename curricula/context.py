"""From a key to a context: sample, corrupt, order, place. And the sets of tasks that a run uses.

A set of tasks is a pure function of the config and its purpose; training batches are one of (data seed, step). No two
purposes share a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from curricula.noise import corrupt
from curricula.ordering import ORDERINGS, difficulty_keys
from curricula.placement import PLACEMENTS
from src.batch import Batch
from src.config import BY_DIFFICULTY, ContextConfig, DataConfig, RunConfig
from src.data import sample_batch, take_pairs
from src.prng import Purpose
from src.prng import key as make_key
from src.train import BatchFn


class Context(NamedTuple):
    """A batch and what was done to it.

    index int32 [B, N]: position i holds the pair drawn as number index[b, i]. hit bool [B, N]: position i holds a
    corrupted pair. ordered int32 [B, N]: the index as the ordering left it, before placement.
    """

    batch: Batch
    index: Array
    hit: Array
    ordered: Array


def draw_context(
    key: Array,
    data: DataConfig,
    context: ContextConfig,
    batch_size: int,
    noise_p: float | Array | None = None,
    noise_sigma: float | Array | None = None,
) -> Context:
    """B tasks, corrupted, ordered and placed. `noise_p` and `noise_sigma` stand in for the context's own if given."""
    p = context.noise_p if noise_p is None else noise_p
    sigma = context.noise_sigma if noise_sigma is None else noise_sigma
    batch, hit, error = corrupt(key, sample_batch(key, data, batch_size), context.noise_mode, p, sigma, data)
    needs = context.ordering in BY_DIFFICULTY
    difficulty = difficulty_keys(context.difficulty, batch, error, data) if needs else ()
    ordered = ORDERINGS[context.ordering](batch, difficulty)
    placed = PLACEMENTS[context.noise_placement](jnp.take_along_axis(hit, ordered, axis=1))
    index = jnp.take_along_axis(ordered, placed, axis=1)
    if context.ordering != "random" or context.noise_placement != "mixed":  # else the index is the identity
        batch, hit = take_pairs(batch, index), jnp.take_along_axis(hit, index, axis=1)
    return Context(batch, index.astype(jnp.int32), hit, ordered.astype(jnp.int32))


def _draw_laws(
    key: Array, laws: tuple[DataConfig, ...], kind: ContextConfig, batch_size: int, noise_p: Array, noise_sigma: Array
) -> tuple[Context, ...]:
    return tuple(draw_context(key, law, kind, batch_size, noise_p, noise_sigma) for law in laws)


_draw_kind = jax.jit(_draw_laws, static_argnames=("laws", "kind", "batch_size"))
_sample = jax.jit(sample_batch, static_argnames=("data", "batch_size"))
_key, _fold_in = jax.jit(make_key), jax.jit(jax.random.fold_in)


def _draw(key: Array, laws: Sequence[DataConfig], context: ContextConfig, batch_size: int) -> tuple[Context, ...]:
    """Contexts of several laws from the same random numbers.

    One program draws all sets of a size, whatever the rate and strength of their noise.
    """
    kind = replace(context, noise_p=0.0, noise_sigma=0.0)
    return _draw_kind(key, tuple(laws), kind, batch_size, np.float32(context.noise_p), np.float32(context.noise_sigma))


def training_batches(config: RunConfig) -> BatchFn:
    """The batch function of a run's training contexts. Noise rate and strength may differ within a pack."""

    def batch_fn(
        key: Array, step: Array, noise_p: Array | None = None, noise_sigma: Array | None = None, **_: Array
    ) -> Batch:
        step_key = jax.random.fold_in(key, step)
        size = config.training.batch_size
        return draw_context(step_key, config.data, config.train, size, noise_p, noise_sigma).batch

    return batch_fn


def task_key(config: RunConfig, purpose: Purpose) -> Array:
    """The key of one of a run's sets of tasks: that of the purpose under the data seed."""
    key: Array = _fold_in(_key(np.uint32(config.data_seed)), np.uint32(purpose))
    return key


def first_training_context(config: RunConfig) -> Context:
    """The context of the first training step, with what was done to it."""
    key = _fold_in(task_key(config, Purpose.TRAIN), np.uint32(0))
    return _draw(key, [config.data], config.train, config.training.batch_size)[0]


def evaluation_context(config: RunConfig) -> Context:
    """The evaluation batch, which is also the analysis batch."""
    return _draw(task_key(config, Purpose.EVAL), [config.data], config.eval, config.eval_tasks)[0]


def clean_twin(config: RunConfig, context: Context) -> Batch:
    """The evaluation batch as it would be with no pair corrupted: the same keys, and the same permutation of pairs."""
    batch = _sample(task_key(config, Purpose.EVAL), config.data, config.eval_tasks)
    return take_pairs(batch, context.index)


def headline_batch(config: RunConfig) -> Batch:
    """Further tasks of the evaluation's law, for the headline numbers."""
    return headline_batches(config, [config.data])[0]


def headline_batches(config: RunConfig, laws: Sequence[DataConfig]) -> tuple[Batch, ...]:
    """The headline tasks under several laws: the same random numbers make them all."""
    key = task_key(config, Purpose.HEADLINE)
    return tuple(context.batch for context in _draw(key, laws, config.eval, config.headline_tasks))


def step_size_batch(config: RunConfig) -> Batch:
    """Clean tasks on which step sizes are searched, shared with nothing else."""
    return _sample(task_key(config, Purpose.STEP_SIZE), config.data, config.step_size_tasks)


def corrupted_step_size_batch(config: RunConfig) -> Batch:
    """Tasks corrupted as the evaluation's are, on which a step size for them is searched; shared with nothing else.

    Neither ordered nor placed: gradient descent sums over the pairs.
    """
    unordered = replace(config.eval, ordering="random", noise_placement="mixed")
    key = task_key(config, Purpose.CORRUPTED_STEP_SIZE)
    return _draw(key, [config.data], unordered, config.step_size_tasks)[0].batch
