"""A causal decoder on sequences of pairs: one pass gives all K predictions, each from the pairs before it.

Two kinds of block. gpt2, of Raventos et al. 2023: biases everywhere, GELU, weights N(0, .02^2), those of residual
outputs smaller by sqrt(2 L), one output channel. regression, of Hoogland et al. 2024 and Carroll et al. 2025: no biases
in attention, ReLU, uniform weights within 1/sqrt(fan-in), as many output channels as a token has. Positions are
learned, layer norms stand before attention and MLP and before the read-out, which is channel 0 at the inputs' rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.activations import Hook, no_hook
from icl_lab.src.config import DecoderConfig
from icl_lab.src.model import Model, Params, as_model
from icl_lab.src.sequences import tokenise
from icl_lab.src.transformer import ReadOut, normalise

Initialiser = Callable[[Any, Any], Array]


class Kind(NamedTuple):
    """What distinguishes the kinds of blocks; the initialisers take fan-in and the number of layers.

    reads_token: the read-out has a biased channel for each of a token's, else one without bias.
    """

    attention_bias: bool
    reads_token: bool
    activation: Callable[[Array], Array]
    weights: Callable[[int, int], Initialiser]
    residual_weights: Callable[[int, int], Initialiser]
    biases: Callable[[int, int], Initialiser]


def _normal(fan_in: int, layers: int) -> Initialiser:
    return hk.initializers.RandomNormal(0.02)


def _normal_residual_output(fan_in: int, layers: int) -> Initialiser:
    return hk.initializers.RandomNormal(0.02 / math.sqrt(2 * layers))


def _uniform(fan_in: int, layers: int) -> Initialiser:
    return hk.initializers.RandomUniform(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))


def _zeros(fan_in: int, layers: int) -> Initialiser:
    return jnp.zeros


BLOCKS = {
    "gpt2": Kind(True, False, jax.nn.gelu, _normal, _normal_residual_output, _zeros),
    "regression": Kind(False, True, jax.nn.relu, _uniform, _uniform, _uniform),
}


@lru_cache
def make_model(model: DecoderConfig, dim: int, num_pairs: int) -> Model:
    """The decoder of sequences of K pairs of dimension D: always the same one for equal arguments."""
    return as_model(
        lambda tokens, hook: decode(tokens, model, hook), tokenise, (2 * num_pairs, dim + 1), decayed=block_kernels
    )


def block_kernels(params: Params) -> Any:
    """Which parameters are kernels of the blocks, as a tree of booleans: those that weight decay applies to."""
    return hk.data_structures.map(lambda module, name, _: module.startswith("layer_") and name == "w", params)


def decode(tokens: Array, model: DecoderConfig, hook: Hook = no_hook) -> Array:
    """Predictions [B, K] from tokens [B, 2K, D + 1]; to be called inside `hk.transform`.

    Without a hook the last block computes the inputs' rows alone. A block's prediction is what the read-out makes of
    its rows; nothing follows from it.
    """
    _, num_rows, token_width = tokens.shape
    stream = Embedding(model, "embed")(tokens, hook)
    read_out = read_out_of(model, token_width)
    rows = np.arange(num_rows)
    for layer in range(model.num_layers):
        last = layer == model.num_layers - 1 and hook is no_hook
        rows = np.arange(0, num_rows, 2) if last else rows
        stream = Block(model, f"layer_{layer}")(stream, rows, layer, hook)
        stream = hook("resid_post", layer, stream)
        if hook is not no_hook:
            hook("prediction", layer, read_out(stream[:, ::2]))
    return read_out(stream if hook is no_hook else stream[:, ::2])


class Part(hk.Module):
    """A part of a decoder."""

    def __init__(self, model: DecoderConfig, name: str):
        super().__init__(name=name)
        self.model, self.kind = model, BLOCKS[model.block]

    @hk.transparent
    def linear(self, x: Array, size: int, name: str, bias: bool = True, residual_output: bool = False) -> Array:
        """x W + b over the last axis, initialised as the kind of block asks."""
        mapped: Array = Linear(size, self.model, bias, residual_output, name)(x)
        return mapped


class Embedding(Part):
    """From tokens [B, T, D + 1] to the stream [B, T, d]: a linear map, and a learned vector for each position."""

    def __call__(self, tokens: Array, hook: Hook) -> Array:
        """The stream below the first block."""
        width, rows, layers = self.model.d_model, tokens.shape[1], self.model.num_layers
        embedded = self.linear(tokens, width, "linear", bias=False)
        positions = hk.get_parameter("positions", (rows, width), init=self.kind.weights(rows, layers))
        embedded = hook("embed", None, embedded)
        return embedded + hook("pos_embed", None, jnp.broadcast_to(positions[None], embedded.shape))


class Block(Part):
    """Attention over the rows up to one's own, then an MLP, each after a layer norm and added to the stream."""

    def __call__(self, stream: Array, rows: np.ndarray, layer: int, hook: Hook) -> Array:
        """These rows of stream [B, T, d], updated."""
        model = self.model
        stream = hook("resid_pre", layer, stream)
        kept = stream[:, rows] if len(rows) < stream.shape[1] else stream
        seen = normalise(stream, model.layer_norm, "attention_norm")
        update = CausalAttention(self.model, "attention")(seen, rows, layer, hook)
        added = hook("resid_mid", layer, kept + hook("attn_out", layer, update))
        hidden = hook(
            "mlp.pre", layer, self.linear(normalise(added, model.layer_norm, "mlp_norm"), model.mlp_width, "mlp_in")
        )
        hidden = hook("mlp.post", layer, self.kind.activation(hidden))
        added = added + hook("mlp_out", layer, self.linear(hidden, model.d_model, "mlp_out", residual_output=True))
        return kept + added if model.doubled_residual else added


class CausalAttention(Part):
    """Softmax attention of H heads: softmax(q.k / sqrt(d / H)) over the rows up to one's own, times values."""

    def __call__(self, seen: Array, rows: np.ndarray, layer: int, hook: Hook) -> Array:
        """Updates [B, R, d] of these rows of what is seen [B, T, d]."""
        width, heads = self.model.d_model, self.model.num_heads
        biased = self.kind.attention_bias
        stacked = self.linear(seen, 3 * width, "query_key_value", biased)
        split = (*seen.shape[:2], heads, width // heads)
        query, key, value = (
            hook(name, layer, part.reshape(split))
            for name, part in zip(("attn.q", "attn.k", "attn.v"), jnp.split(stacked, 3, axis=-1), strict=True)
        )
        query = query[:, rows] if len(rows) < query.shape[1] else query
        visible = jnp.asarray(rows[:, None] >= np.arange(seen.shape[1])[None])
        scores = hook("attn.scores", layer, jnp.einsum("brhc,bthc->bhrt", query, key) / math.sqrt(width // heads))
        scores = jnp.where(jnp.broadcast_to(visible[None, None], scores.shape), scores, -jnp.inf)
        weights = hook("attn.pattern", layer, jax.nn.softmax(scores, axis=-1))
        pooled = hook("attn.z", layer, jnp.einsum("bhrt,bthc->brhc", weights, value))
        output = Linear(width, self.model, biased, True, "output") if self.model.attention_output else None
        if hook is not no_hook:
            results = each_head_alone(pooled) if output is None else output.of_heads(pooled)
            update: Array = jnp.sum(hook("attn.result", layer, results), axis=1)
            return update if output is None else output.with_bias(update, width)
        pooled = pooled.reshape(*query.shape[:2], width)
        return pooled if output is None else output(pooled)


def each_head_alone(pooled: Array) -> Array:
    """[B, H, R, H C] of heads' values [B, R, H, C]: each head's in its own channels, where no matrix mixes them."""
    size, rows, heads, channels = pooled.shape
    alone = jnp.einsum("brhc,hg->bhrgc", pooled, jnp.eye(heads, dtype=pooled.dtype))
    return alone.reshape(size, heads, rows, heads * channels)


def read_out_of(model: DecoderConfig, token_width: int) -> ReadOut:
    """From the stream at the inputs' rows [B, K, d] to predictions [B, K]: channel 0 of a token's, or of one."""
    reads_token = BLOCKS[model.block].reads_token
    channels = token_width if reads_token else 1
    return ReadOut(lambda: Linear(channels, model, reads_token, False, "linear"), model.layer_norm, "read_out")


class Linear(hk.Module):
    """x W + b, initialised as the kind of block asks."""

    def __init__(self, size: int, model: DecoderConfig, bias: bool, residual_output: bool, name: str):
        super().__init__(name=name)
        self.size, self.layers, self.bias, self.kind = size, model.num_layers, bias, BLOCKS[model.block]
        self.weights = self.kind.residual_weights if residual_output else self.kind.weights

    def __call__(self, x: Array) -> Array:
        """Maps the last axis."""
        fan_in = x.shape[-1]
        mapped = self.with_bias(x.reshape(-1, fan_in) @ self._weight(fan_in), fan_in)
        return mapped.reshape(*x.shape[:-1], self.size)

    def of_heads(self, x: Array) -> Array:
        """What each head's channels of x [B, R, H, C] come to, without the bias: [B, H, R, size]."""
        heads, channels = x.shape[2:]
        weight = self._weight(heads * channels).reshape(heads, channels, self.size)
        return jnp.einsum("brhc,hcd->bhrd", x, weight)

    def with_bias(self, mapped: Array, fan_in: int) -> Array:
        """x W [..., size] with the bias added, if there is one."""
        if not self.bias:
            return mapped
        bias = hk.get_parameter("b", (self.size,), init=self.kind.biases(fan_in, self.layers))
        return mapped + jnp.broadcast_to(bias, mapped.shape)

    def _weight(self, fan_in: int) -> Array:
        return hk.get_parameter("w", (fan_in, self.size), init=self.weights(fan_in, self.layers))
