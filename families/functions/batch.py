"""The batch of this family. It needs no JAX, so stored batches are the same type."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jax import Array


class FunctionBatch(NamedTuple):
    """B prompts of K pairs, of which each prediction sees the pairs before it.

    Shapes: x [B, K, D], y [B, K] as a context shows it, x_query [B, K, D], which is x, and y_query [B, K], the targets;
    member [B], of a mixture the number of the class that a prompt is of, else 0; counted [B, K], 1 where a prediction
    counts in the loss, else 0.
    """

    x: Array
    y: Array
    x_query: Array
    y_query: Array
    member: Array
    counted: Array
