"""Orders of a context's pairs.

Each ordering is one function here, (batch, difficulty [B, N]) -> index [B, N], of the name that
`src.registries.ORDERINGS` has; position i then holds pair index[b, i]. Sorts are stable. The query never moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from icl_lab.src import registries
from icl_lab.src.batch import Batch
from icl_lab.src.checks import named
from icl_lab.src.data_config import LinearData
from icl_lab.src.one_step import one_step_size
from icl_lab.src.registry import Functions
from icl_lab.src.sorting import stable_order

Difficulty = tuple[Array, ...]  # sort keys [B, N], the first counts most


def random(batch: Batch, difficulty: Difficulty) -> Array:
    """The order drawn: pairs are exchangeable, so that is already a random one."""
    return jnp.broadcast_to(jnp.arange(batch.y.shape[1])[None], batch.y.shape)


def smallnorm2largenorm(batch: Batch, difficulty: Difficulty) -> Array:
    """Ascending norm of the input."""
    return stable_order([jnp.sum(batch.x**2, axis=2)])


def easy2hard(batch: Batch, difficulty: Difficulty) -> Array:
    """Ascending difficulty."""
    return stable_order(difficulty)


def hard2easy(batch: Batch, difficulty: Difficulty) -> Array:
    """Descending difficulty."""
    return stable_order([-values for values in difficulty])


ORDERINGS: Functions[Callable[[Batch, Difficulty], Array]] = Functions(
    registries.ORDERINGS, "order", named(registries.ORDERINGS.built_in, globals())
)


def leave_one_out_gd_error(batch: Batch, data: LinearData) -> Array:
    """|y_i - c_(N-1) sum_(j != i) y_j x_j.x_i| [B, N]: the error on a pair of one GD step on the other pairs.

    c_(N-1) is the closed-form step for N - 1 pairs. (Leave-one-out ridge is ill-posed on noiseless data at N <= D.)
    """
    step_size = one_step_size(replace(data, num_pairs=data.num_pairs - 1)) if data.num_pairs > 1 else 0.0
    gradient = jnp.einsum("bj,bjd->bd", batch.y, batch.x)  # X'y: all pairs' sum, less the pair's own part
    own = batch.y * jnp.sum(batch.x**2, axis=2)
    return jnp.abs(batch.y - step_size * (jnp.einsum("bid,bd->bi", batch.x, gradient) - own))


def difficulty_keys(kind: str, batch: Batch, label_error: Array, data: LinearData) -> Difficulty:
    """The sort keys of a difficulty: `gd_error`, or `residual`, the label error injected, with ties by `gd_error`."""
    gd_error = leave_one_out_gd_error(batch, data)
    return {"gd_error": (gd_error,), "residual": (label_error, gd_error)}[kind]
