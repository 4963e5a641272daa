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


def context_shapes(
    tasks: int, pairs: int, dim: int, queries: tuple[int, ...] = (), weights: int | None = None
) -> dict[str, tuple[int, ...]]:
    """The shapes of a `Batch`, by field: with one or several queries a task, and one weight for each dimension."""
    shapes: dict[str, tuple[int, ...]] = {"x": (tasks, pairs, dim), "y": (tasks, pairs)}
    shapes |= {"x_query": (tasks, *queries, dim), "y_query": (tasks, *queries)}
    return shapes | {"w": (tasks, dim if weights is None else weights)}


class TokenBatch(NamedTuple):
    """B sequences of symbols: the rows x [B, R] that a model reads, and what comes next, y_query [B, T - 1].

    With a start symbol R is T, and the first row, the start symbol's, predicts nothing; without one R is T - 1.
    """

    x: Array
    y_query: Array


class StringBatch(NamedTuple):
    """B strings: symbols uint8 [B, L], padding being the number after the last symbol's."""

    symbols: Array
