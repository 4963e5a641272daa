"""From a key to a context: sample, corrupt, order, place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.batch import Batch
from icl_lab.src.config import ContextConfig
from icl_lab.src.data import sample_batch, take_pairs
from icl_lab.src.data_config import DataConfig
from icl_lab.src.noise import corrupt
from icl_lab.src.ordering import ORDERINGS, difficulty_keys
from icl_lab.src.placement import PLACEMENTS
from icl_lab.src.registries import BY_DIFFICULTY


class Context(NamedTuple):
    """A batch and what was done to it.

    index int32 [B, N]: position i holds the pair drawn as number index[b, i]. hit bool [B, N]: position i holds a
    corrupted pair. ordered int32 [B, N]: the index as the ordering left it, before placement.
    """

    batch: Batch
    index: Array  # type: ignore[assignment]  # a tuple's method of that name is of no use here
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
    return arranged(key, sample_batch(key, data, batch_size), data, context, noise_p, noise_sigma)


def arranged(
    key: Array,
    batch: Batch,
    data: DataConfig,
    context: ContextConfig,
    noise_p: float | Array | None = None,
    noise_sigma: float | Array | None = None,
) -> Context:
    """Clean tasks, corrupted, ordered and placed as in `draw_context`, wherever they come from."""
    p = context.noise_p if noise_p is None else noise_p
    sigma = context.noise_sigma if noise_sigma is None else noise_sigma
    batch, hit, error = corrupt(key, batch, context.noise_mode, p, sigma, data)
    needs = context.ordering in BY_DIFFICULTY
    difficulty = difficulty_keys(context.difficulty, batch, error, data) if needs else ()
    ordered = ORDERINGS[context.ordering](batch, difficulty)
    placed = PLACEMENTS[context.noise_placement](jnp.take_along_axis(hit, ordered, axis=1))
    index = jnp.take_along_axis(ordered, placed, axis=1)
    if context.ordering != "random" or context.noise_placement != "mixed":  # else the index is the identity
        batch, hit = take_pairs(batch, index), jnp.take_along_axis(hit, index, axis=1)
    return Context(batch, index.astype(jnp.int32), hit, ordered.astype(jnp.int32))


def _draw_all(
    key: Array,
    distributions: tuple[DataConfig, ...],
    kind: ContextConfig,
    batch_size: int,
    noise_p: Array,
    noise_sigma: Array,
) -> tuple[Context, ...]:
    return tuple(draw_context(key, data, kind, batch_size, noise_p, noise_sigma) for data in distributions)


_draw_kind = jax.jit(_draw_all, static_argnames=("distributions", "kind", "batch_size"))


def draw_contexts(
    key: Array, distributions: Sequence[DataConfig], context: ContextConfig, batch_size: int
) -> tuple[Context, ...]:
    """Contexts of several distributions from the same random numbers.

    One program draws all sets of a size, whatever the rate and strength of their noise.
    """
    kind = replace(context, noise_p=0.0, noise_sigma=0.0)
    contexts: tuple[Context, ...] = _draw_kind(
        key, tuple(distributions), kind, batch_size, np.float32(context.noise_p), np.float32(context.noise_sigma)
    )
    return contexts


_arrange = jax.jit(arranged, static_argnames=("data", "context"))


def arrange(key: Array, batch: Batch, data: DataConfig, context: ContextConfig) -> Context:
    """`arranged` of a batch that is stored, in a program of its own."""
    arrangement: Context = _arrange(key, jax.tree.map(jnp.asarray, batch), data, context)
    return arrangement
