"""Losses and gradients of a stack by compiled C++.

The inputs are the merged matrices of each head, A = W_Q W_K^T and V = W_V P: XLA merges factors, and takes the gradient
back to them. Only the first derivative is here; whoever needs another takes the model's own losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.batch import Batch
from icl_lab.src.config import TOKENS, Architecture, StackConfig
from icl_lab.src.data import positional_encoding
from icl_lab.src.model import Params
from icl_lab.src.native.library import Library
from icl_lab.src.units import Units, standardised


class Found(NamedTuple):
    """Losses [B], their mean, and its gradient."""

    losses: Array
    mean: Array
    gradient: Any


LossesAndGradient = Callable[[Params, Batch], Found]


def loss_and_gradient(
    architecture: Architecture[StackConfig], library: Library, units: Units | None = None
) -> LossesAndGradient:
    """(params, batch) -> losses [B], their mean and its gradient, of a stack that `native.support` supports.

    Losses are half squared errors, as `src.losses.half_squared_errors`; of several queries their mean. Gradients have
    the relative error of XLA's own.
    """
    model, computed = architecture.model, by_matrices(architecture, library)

    def of_params(params: Params, batch: Batch) -> Found:
        (scores, values), back = jax.vjp(lambda given: matrices_of(model, given), params)
        found = computed(scores, values, standardised(batch, units))
        (gradient,) = back(found.gradient)
        return found._replace(gradient=gradient)

    return of_params


def by_matrices(architecture: Architecture[StackConfig], library: Library) -> Callable[..., Found]:
    """(A, V, batch) -> losses [B], their mean, and its gradients of A and V [layers, H, W, W]."""
    queries = architecture.num_queries
    encodings = positional_encoding(architecture.num_rows, architecture.pos_enc_size).astype(np.float32)
    told = attributes(architecture)

    def computed(scores: Array, values: Array, batch: Batch) -> Found:
        size = len(batch.y)
        like = tuple(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((size,), (), scores.shape, values.shape))
        arrays = (batch.x, batch.y, batch.x_query.reshape(size, queries, -1), batch.y_query.reshape(size, queries))
        call = jax.ffi.ffi_call(library.named("icl_stack"), like, vmap_method="expand_dims")
        losses, mean, *slopes = call(scores, values, *arrays, jnp.asarray(encodings), **told)
        return Found(losses, mean, tuple(slopes))

    return computed


def attributes(architecture: Architecture[StackConfig]) -> dict[str, Any]:
    """What the C++ is told of a stack besides its arrays."""
    model = architecture.model
    key_size = model.key_size // model.num_heads or architecture.width
    return {
        "layers": np.int64(model.num_layers),
        "recurrent": np.bool_(model.recurrent),
        "soft": np.array([model.kind(layer) == "softmax" for layer in range(model.num_layers)], np.int64),
        "tokens": np.int64(list(TOKENS).index(getattr(model, "tokens", "concatenated"))),
        "channel": np.int64(architecture.prediction_channel),
        "score_scale": np.float32(1 / math.sqrt(key_size)),
        "damping": np.float32(model.damping),
        "clip": np.float32(model.activation_clip),
    }


def matrices_of(model: StackConfig, params: Params) -> tuple[Array, Array]:
    """A and V of all heads, [layers, H, W, W]: one layer's where all share them."""
    scores, values = zip(*(_of_layer(params[f"{name}/attention"]) for name in model.layer_names), strict=True)
    return jnp.stack(scores), jnp.stack(values)


def _of_layer(attention: Any) -> tuple[Array, Array]:
    if "key_query" in attention:
        return attention["key_query"].swapaxes(-1, -2), attention["projection_value"].swapaxes(-1, -2)
    query, key, value, projection = (attention[name] for name in ("query", "key", "value", "projection"))
    return jnp.einsum("whk,uhk->hwu", query, key), jnp.einsum("whk,hku->hwu", value, projection)
