"""The batch: what data gives, what models and baselines take. It needs no JAX, so stored batches are the same type."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jax import Array


class Batch(NamedTuple):
    """B in-context tasks of N pairs.

    Shapes: x [B, N, D], y [B, N], x_query [B, D], y_query [B], w [B, D] (the teacher; no model sees it).
    """

    x: Array
    y: Array
    x_query: Array
    y_query: Array
    w: Array


class StringBatch(NamedTuple):
    """B strings: symbols uint8 [B, L], pads being the number behind the last symbol."""

    symbols: Array
