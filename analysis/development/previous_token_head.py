"""Does a model without its previous-token head still copy? And a decoder of symbols without its positions, or shorter.

A head is ablated by `src.patching`: the mean of its output over contexts, at each position, stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src import patching
from icl_lab.src.batch import TokenBatch
from icl_lab.src.model import Model, Params

POSITIONS, DISTANCES = "positions", "distances"  # names of parameters: [R, d], and of each head [H, R]


class Ablation(NamedTuple):
    """The previous-token head of a layer, and the change of a loss without each head of it [H]."""

    chosen: int
    changes: np.ndarray

    @property
    def others(self) -> float | None:
        """The mean change without one of the other heads; None where there are none."""
        rest = np.delete(self.changes, self.chosen)
        return float(rest.mean()) if len(rest) else None


def ablation(
    model: Model, params: Params, layer: int, scores: np.ndarray, batch: TokenBatch, weights: np.ndarray
) -> Ablation:
    """What each head of a layer is worth, and which has the highest of previous-token scores [H].

    The loss is sum_bp w_bp l_bp of losses l [B, P] and weights [B, P]; the scores are to be of other sequences.
    """
    whole = weighted_loss(model, params, batch, weights)
    means = _means(model, params, batch, f"blocks.{layer}.attn.result")
    without = [float(_without(model, params, batch, weights, means, head)) for head in range(len(scores))]
    return Ablation(int(np.argmax(scores)), np.array(without) - whole)


def weighted_loss(model: Model, params: Params, batch: TokenBatch, weights: np.ndarray) -> float:
    """sum_bp w_bp l_bp."""
    return float(_weighted(model, params, batch, weights))


@partial(jax.jit, static_argnums=0)
def _weighted(model: Model, params: Params, batch: TokenBatch, weights: Array) -> Array:
    return _summed(model.predict(params, batch), batch, weights)


@partial(jax.jit, static_argnums=(0, 3))
def _means(model: Model, params: Params, batch: TokenBatch, at: str) -> dict[str, Array]:
    return patching.ablated(model, params, batch, at, "mean")


@partial(jax.jit, static_argnums=0)
def _without(
    model: Model, params: Params, batch: TokenBatch, weights: Array, means: dict[str, Array], head: int
) -> Array:
    return _summed(patching.patch(model, params, batch, means, patching.Site(head=head)), batch, weights)


def _summed(logits: Array, batch: TokenBatch, weights: Array) -> Array:
    wanted = batch.y_query[..., None].astype(jnp.int32)
    said = jnp.take_along_axis(jax.nn.log_softmax(logits), wanted, axis=-1)[..., 0]
    return -jnp.sum(said * weights)


# --- positions ---


def has_positions(params: Params) -> bool:
    """Whether a decoder learns positions: of rows, or of distances."""
    return any({POSITIONS, DISTANCES} & set(arrays) for arrays in params.values())


def without_positions(params: Params) -> Params:
    """The parameters of a decoder with its learned positions 0."""
    return _positions_changed(params, lambda name, value: np.zeros_like(value))


def shortened(params: Params, rows: int) -> Params:
    """The parameters of the same decoder of fewer rows, which predicts the same of them."""
    return _positions_changed(params, lambda name, value: value[:rows] if name == POSITIONS else value[:, :rows])


def _positions_changed(params: Params, change: Callable[[str, np.ndarray], np.ndarray]) -> Params:
    return {
        module: {
            name: change(name, np.asarray(value)) if name in (POSITIONS, DISTANCES) else value
            for name, value in arrays.items()
        }
        for module, arrays in params.items()
    }
