"""How heads attend: entropy, variability over contexts, and mass on oneself, the previous token and inputs.

Maps a [B, H, R, T] are distributions over columns, sum_j a_rj = 1, of B contexts, H heads, R rows (queries) and T
columns (keys); linear attention has none. Hoogland et al. 2024, App. E. Only informative rows are averaged: those that
see two columns or more and whose output is used. Of the last layer only the predictions' rows are used, whereas the
published figures average over all.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import xlogy

ROUNDING = 1e-4  # of a sum of single-precision weights


class Kind(NamedTuple):
    """What a layer's maps are like: causal or not, of tokens x, y, x, y or of pairs, and of the last layer or not.

    all_read: each row's output is, as of a decoder of symbols.
    """

    causal: bool
    interleaved: bool
    last: bool
    all_read: bool = False


class Rows(NamedTuple):
    """Columns by row [R, T]: those it sees, itself, the previous token, inputs x. Rows [R]: measured ones, inputs."""

    visible: np.ndarray
    own: np.ndarray
    previous: np.ndarray
    inputs: np.ndarray
    measured: np.ndarray
    are_inputs: np.ndarray


def are_distributions(maps: np.ndarray) -> bool:
    """Whether weights are distributions over columns, as softmax makes them."""
    sums = maps.sum(axis=-1)
    return bool((maps >= 0).all() and (np.abs(sums - 1) < ROUNDING).all())


def are_causal(maps: np.ndarray) -> bool:
    """Whether no row attends to a later one."""
    return maps.shape[-1] == maps.shape[-2] and not np.triu(maps, 1).any()


def rows_of(num_rows: int, num_columns: int, kind: Kind) -> Rows:
    """The rows of a layer's maps: of a decoder without the last label, which nothing reads.

    The last layer is read at a decoder's inputs, or at the queries, which stand behind the columns.
    """
    row = np.arange(num_rows)
    back = row[:, None] - np.arange(num_columns)[None]
    inputs = np.broadcast_to(np.arange(num_columns)[None] % 2 == 0, back.shape)
    visible = back >= (0 if kind.causal else -num_columns)
    measured = visible.sum(axis=1) > 1
    if kind.causal and not kind.all_read:
        measured[-1] = False
    if kind.last and not kind.all_read:
        measured &= row % 2 == 0 if kind.causal else row >= num_columns
    return Rows(visible, back == 0, back == 1, inputs, measured, row % 2 == 0)


def entropies(maps: Array, visible: np.ndarray) -> Array:
    """-sum_j a_rj log2 a_rj / log2(visible columns) [H, R], averaged over contexts; of rows that see one column 0."""
    bits: Array = -jnp.sum(xlogy(maps, maps), axis=-1).mean(axis=0) / np.log(2)
    most = np.log2(np.maximum(visible.sum(axis=1), 2))
    shares: Array = bits / jnp.asarray(most, bits.dtype)[None]
    return shares


def variabilities(maps: Array) -> Array:
    """mean_b sum_j |a_brj - mean_b a_brj| / 2 [H, R]: the total-variation distance from the mean pattern."""
    apart = jnp.abs(maps - maps.mean(axis=0, keepdims=True))
    return jnp.mean(jnp.sum(apart, axis=-1), axis=0) / 2


def masses(maps: Array, chosen: np.ndarray) -> Array:
    """sum_j a_rj over the chosen columns of each row [R, T], averaged over contexts: [H, R]."""
    return jnp.where(chosen[None], maps.mean(axis=0), 0).sum(axis=-1)


def patterns(maps: Array, kind: Kind) -> dict[str, Array]:
    """Each metric [H] of a layer's heads, over the rows that have it.

    entropy, variability, self, previous; of interleaved tokens also inputs, the mass on x, and entropy_x and entropy_y,
    those of the rows that are inputs and labels.
    """
    rows = rows_of(maps.shape[-2], maps.shape[-1], kind)
    bits = entropies(maps, rows.visible)
    metrics = {
        "entropy": (bits, rows.measured),
        "variability": (variabilities(maps), rows.measured),
        "self": (masses(maps, rows.own), rows.measured & rows.own.any(axis=1)),
        "previous": (masses(maps, rows.previous), rows.measured & rows.previous.any(axis=1)),
    }
    if kind.interleaved:
        metrics |= {
            "inputs": (masses(maps, rows.inputs), rows.measured),
            "entropy_x": (bits, rows.measured & rows.are_inputs),
            "entropy_y": (bits, rows.measured & ~rows.are_inputs),
        }
    return {name: values[:, of].mean(axis=1) for name, (values, of) in metrics.items() if of.any()}
