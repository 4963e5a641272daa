"""Where the corrupted pairs stand in a context.

Each placement is one function here, hit [B, N] -> index [B, N], of the name that `src.config.PLACEMENTS` registers. It
is applied after the ordering, and stably, so inside each group the ordering stays.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from icl_lab.src import config
from icl_lab.src.checks import named
from icl_lab.src.sorting import stable_order


def mixed(hit: Array) -> Array:
    """Wherever the ordering put them."""
    return jnp.broadcast_to(jnp.arange(hit.shape[1])[None], hit.shape)


def clean_first(hit: Array) -> Array:
    """Clean pairs, then corrupted ones, next to the query."""
    return stable_order([hit])


def noisy_first(hit: Array) -> Array:
    """Corrupted pairs, then clean ones."""
    return stable_order([~hit])


PLACEMENTS: dict[str, Callable[[Array], Array]] = named(config.PLACEMENTS, globals())
