"""Corruptions of a context's pairs.

Each noise mode is one function here of the name that `src.registries.NOISE_MODES` has. It takes the clean batch and
the pairs that are hit, and gives the corrupted batch and the label error it injected, |y - clean label| [B, N], which
is exactly 0 where nothing was hit. The query and its label are never corrupted.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.src import registries
from icl_lab.src.batch import Batch
from icl_lab.src.checks import named
from icl_lab.src.data import labels
from icl_lab.src.data_config import LinearData
from icl_lab.src.inputs import sample_inputs
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.registry import Functions

Corruption = Callable[[Array, Batch, Array, "float | Array", LinearData], tuple[Batch, Array]]


def clean(key: Array, batch: Batch, hit: Array, sigma: float | Array, data: LinearData) -> tuple[Batch, Array]:
    """Nothing happens."""
    return batch, jnp.zeros_like(batch.y)


def label_noise(key: Array, batch: Batch, hit: Array, sigma: float | Array, data: LinearData) -> tuple[Batch, Array]:
    """A hit label gains sigma * N(0, 1)."""
    noise = jnp.where(hit, sigma * jax.random.normal(key, batch.y.shape, batch.y.dtype), 0)
    return batch._replace(y=batch.y + noise), jnp.abs(noise)


def random_pairs(key: Array, batch: Batch, hit: Array, sigma: float | Array, data: LinearData) -> tuple[Batch, Array]:
    """A hit pair becomes one of another task: (x', w'.x'), with x' from the input distribution and a fresh w'.

    Alone it is distributed as a clean pair (observation noise included); only agreement between pairs tells them
    apart. sigma is ignored.
    """
    shape = batch.x.shape
    x = sample_inputs(purpose_key(key, Purpose.INPUT), data, shape)
    norms = jnp.linalg.norm(x, axis=2)  # w'.x' of a fresh w' ~ N(0, s^2 I) is N(0, s^2 |x'|^2): one number, not D
    y = data.weight_scale * norms * jax.random.normal(purpose_key(key, Purpose.TASK), norms.shape)
    if data.noise_std > 0:
        y = y + data.noise_std * jax.random.normal(purpose_key(key, Purpose.OBSERVATION), y.shape)
    error = jnp.where(hit, jnp.abs(y - labels(x, batch.w)), 0)
    hit_inputs = jnp.broadcast_to(hit[:, :, None], shape)
    return batch._replace(x=jnp.where(hit_inputs, x, batch.x), y=jnp.where(hit, y, batch.y)), error


NOISE_MODES: Functions[Corruption] = Functions(
    registries.NOISE_MODES, "corrupt", named(registries.NOISE_MODES.built_in, globals())
)


def corrupt(
    key: Array, batch: Batch, mode: str, p: float | Array, sigma: float | Array, data: LinearData
) -> tuple[Batch, Array, Array]:
    """Each pair is hit with probability p. Gives the batch, the pairs hit [B, N] and the label error [B, N]."""
    uniform = jax.random.uniform(purpose_key(key, Purpose.NOISE_MASK), batch.y.shape)
    hit = uniform < p if mode != "clean" else jnp.zeros(batch.y.shape, bool)
    corrupted, error = NOISE_MODES[mode](purpose_key(key, Purpose.NOISE_VALUE), batch, hit, sigma, data)
    return corrupted, hit, error
