"""Roll-out: one trained layer applied K times, as gradient descent repeats its step; only labels are updated.

e_y <- e_y + damping * attention, of every row; the prediction after k applications is minus the query's label. Damped
gradient descent with the same damping is what one layer of the construction gives. Von Oswald et al. 2023, Fig. 1 and
App. A.7: undamped, the errors of some tasks grow. Activations are not clipped here.

Here a layer is its two products, as trained or as constructed, and all rows' updates tell which tasks are unstable.
`src.layerwise.roll_out` rolls out a model, for its predictions alone; it sums in another order, so results differ by
rounding.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.batch import Batch


class Rollout(NamedTuple):
    """Predictions [K, B] after each application, and whether a task's updates grow, unstable [B]."""

    predictions: Array
    unstable: Array


@partial(jax.jit, static_argnames="steps")
def rollout(kq: Array, pv: Array, batch: Batch, steps: int, damping: float | Array = 1.0) -> Rollout:
    """Rolls out the linear layer of products W_K^T W_Q and P W_V, both [W, W] for columns, on tokens (x, y).

    A task is unstable if its last update is larger than the one halfway: of a converging iteration none is.
    """
    inputs = jnp.concatenate([batch.x, batch.x_query[:, None]], axis=1)
    start = jnp.concatenate([batch.y, jnp.zeros_like(batch.y_query)[:, None]], axis=1)

    def apply(label: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        rows = jnp.concatenate([inputs, label[:, :, None]], axis=2)
        context = rows[:, :-1]
        weights = jnp.einsum("bnw,wv,brv->brn", context, kq, rows)
        update = damping * jnp.einsum("brn,bnw,w->br", weights, context, pv[-1])
        label = label + update
        return label, (-label[:, -1], jnp.linalg.norm(update, axis=1))

    _, (predictions, sizes) = jax.lax.scan(apply, start, None, length=steps)
    return Rollout(predictions, ~(sizes[-1] <= sizes[steps // 2 - 1]) | ~jnp.isfinite(sizes[-1]))


def gd_products(dim: int, step_size: float) -> tuple[np.ndarray, np.ndarray]:
    """The products of the construction: one application is one step of gradient descent from where labels stand."""
    width = dim + 1
    kq, pv = np.zeros((width, width), np.float32), np.zeros((width, width), np.float32)
    kq[np.arange(dim), np.arange(dim)] = 1
    pv[-1, -1] = -step_size
    return kq, pv
