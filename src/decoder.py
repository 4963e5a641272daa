"""A causal decoder on sequences of pairs: one pass gives all K predictions, each from the pairs before it.

Kinds of block, and choices that all leave open. gpt2, of Raventos et al. 2023: biases everywhere, GELU, weights
N(0, .02^2), those of residual outputs smaller by sqrt(2 L), one output channel. regression, of Hoogland et al. 2024 and
Carroll et al. 2025: no biases in attention, ReLU, uniform weights within 1/sqrt(fan-in), as many output channels as a
token has. plain: no biases in attention, ReLU, weights N(0, 1 / fan-in). Both papers' attention is softmax, their
positions are learned, layer norms stand before attention and MLP and before the read-out, which is channel 0 at the
inputs' rows. Layer norms after the sums, as in Vaswani et al. 2017, leave none for the read-out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial, reduce
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.activations import Hook, is_seen, no_hook
from icl_lab.src.causal import causal_weights, check_kind
from icl_lab.src.decoder_config import DecoderConfig, choices_of
from icl_lab.src.model import Model, Params, as_model
from icl_lab.src.positions import rotated, sinusoids
from icl_lab.src.sequences import tokenise
from icl_lab.src.transformer import ReadOut, normalise

Initialiser = Callable[[Any, Any], Array]


class Kind(NamedTuple):
    """What distinguishes the blocks beside `decoder_config.BLOCKS`; initialisers take fan-in and number of layers."""

    attention_bias: bool
    weights: Callable[[int, int], Initialiser]
    residual_weights: Callable[[int, int], Initialiser]
    biases: Callable[[int, int], Initialiser]


def _normal(fan_in: int, layers: int) -> Initialiser:
    return hk.initializers.RandomNormal(0.02)


def _normal_residual_output(fan_in: int, layers: int) -> Initialiser:
    return hk.initializers.RandomNormal(0.02 / math.sqrt(2 * layers))


def _uniform(fan_in: int, layers: int) -> Initialiser:
    return hk.initializers.RandomUniform(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))


def _scaled(fan_in: int, layers: int) -> Initialiser:
    return hk.initializers.RandomNormal(1 / math.sqrt(fan_in))


def _zeros(fan_in: int, layers: int) -> Initialiser:
    return jnp.zeros


BLOCKS = {
    "gpt2": Kind(True, _normal, _normal_residual_output, _zeros),
    "regression": Kind(False, _uniform, _uniform, _uniform),
    "plain": Kind(False, _scaled, _scaled, _zeros),
}
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": jax.nn.gelu,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
}


@lru_cache
def make_model(model: DecoderConfig, dim: int, num_pairs: int) -> Model:
    """The decoder of sequences of K pairs of dimension D: always the same one for equal arguments.

    `ConfigError` for attention of a plugin's that looks ahead.
    """
    for kind in {model.kind(layer) for layer in range(model.num_layers)}:
        check_kind(kind)
    made = as_model(
        lambda tokens, hook: decode(tokens, model, hook),
        partial(tokenise, layout=model.tokens),
        (2 * num_pairs, model.token_width(dim)),
        model.loss,
        decayed=block_kernels,
    )
    return made._replace(alone_without_vmap=True)


def block_kernels(params: Params) -> Any:
    """Which parameters are kernels of the blocks, as a tree of booleans: those that weight decay applies to."""
    return hk.data_structures.map(lambda module, name, _: module.startswith("layer_") and name == "w", params)


def decode(tokens: Array, model: DecoderConfig, hook: Hook = no_hook, outputs: int = 0) -> Array:
    """Predictions [B, K], or [B, K, outputs], from tokens [B, 2K, W]; to be called inside `hk.transform`.

    Without a hook the last block computes the inputs' rows alone. A block's prediction is what the read-out makes of
    its rows; nothing follows from it.
    """
    _, num_rows, token_width = tokens.shape
    stream, positions = Embedding(model, "embed")(tokens, hook)
    read_out = read_out_of(model, token_width, outputs)
    rows = np.arange(num_rows)
    for layer in range(model.num_layers):
        last = layer == model.num_layers - 1 and hook is no_hook
        rows = np.arange(0, num_rows, 2) if last else rows
        stream = Block(model, f"layer_{layer}")(stream, positions, rows, layer, hook)
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

    @hk.transparent
    def norm(self, rows: Array, where: str, name: str) -> Array:
        """Layer norm of rows, if layer norms stand here: "pre", before attention or MLP, or "post", after a sum."""
        return normalise(rows, self.model.layer_norm and self.model.norm == where, name)


class Embedding(Part):
    """From tokens [B, T, W] to the stream [B, T, d], and what queries and keys see besides it, if anything.

    A linear map, and a vector for each position if one is added, to the stream or to what queries and keys are made of.
    """

    def __call__(self, tokens: Array, hook: Hook) -> tuple[Array, Array | None]:
        """The stream below the first block, and the positions [B, T, d] of queries and keys."""
        return self.placed(self.linear(tokens, self.model.d_model, "linear", bias=False), hook)

    @hk.transparent
    def placed(self, embedded: Array, hook: Hook) -> tuple[Array, Array | None]:
        """The same of what is embedded already."""
        positions = self._positions(embedded.shape[1], embedded.dtype)
        embedded = hook("embed", None, embedded)
        if positions is None:
            return embedded, None
        shown = hook("pos_embed", None, jnp.broadcast_to(positions[None], embedded.shape))
        return (embedded, shown) if self.model.positions == "query_key" else (embedded + shown, None)

    @hk.transparent
    def _positions(self, rows: int, dtype: jnp.dtype) -> Array | None:
        """What is added to each row [T, d]; None where nothing is."""
        width = self.model.d_model
        if self.model.positions in ("learned", "query_key"):
            return hk.get_parameter("positions", (rows, width), init=self.kind.weights(rows, self.model.num_layers))
        return jnp.asarray(sinusoids(rows, width), dtype) if self.model.positions == "sinusoidal" else None


class Block(Part):
    """Attention over the rows up to one's own, then an MLP if there is one, each added to the stream, between norms.

    pre: s + attention(norm(s)), then s + MLP(norm(s)). post: norm(s + attention(s)), then norm(s + MLP(s)); the hook's
    resid_mid and resid_post are the stream, that is what the norms give.
    """

    def __call__(self, stream: Array, positions: Array | None, rows: np.ndarray, layer: int, hook: Hook) -> Array:
        """These rows of stream [B, T, d], updated."""
        model = self.model
        stream = hook("resid_pre", layer, stream)
        kept = stream[:, rows] if len(rows) < stream.shape[1] else stream
        seen = self.norm(stream, "pre", "attention_norm")
        update = CausalAttention(model, "attention")(seen, positions, rows, layer, hook)
        added = self.norm(kept + hook("attn_out", layer, update), "post", "attention_norm")
        if model.mlp_width == 0:
            return kept + added if model.doubled_residual else added
        added = hook("resid_mid", layer, added)
        hidden = self.linear(self.norm(added, "pre", "mlp_norm"), model.mlp_width, "mlp_in")
        hidden = hook("mlp.post", layer, ACTIVATIONS[choices_of(model).activation](hook("mlp.pre", layer, hidden)))
        update = self.linear(hidden, model.d_model, "mlp_out", residual_output=True)
        added = self.norm(added + hook("mlp_out", layer, update), "post", "mlp_norm")
        return kept + added if model.doubled_residual else added


class CausalAttention(Part):
    """Attention of H heads over the rows up to one's own: weights(q . k), of the layer's kind, times values.

    With rotary positions q and k, and what the hook sees of them, are the turned ones: scores are their products. With
    relative ones sqrt(C) b, of a learned b for each head and distance, is added to them.
    """

    def __call__(self, seen: Array, positions: Array | None, rows: np.ndarray, layer: int, hook: Hook) -> Array:
        """Updates [B, R, d] of these rows of what is seen [B, T, d]; `positions` are added for queries and keys."""
        width, heads = self.model.d_model, self.model.num_heads
        biased = self.kind.attention_bias
        if positions is None:
            parts = jnp.split(self.linear(seen, 3 * width, "query_key_value", biased), 3, axis=-1)
        else:
            parts = jnp.split(self.linear(seen + positions, 2 * width, "query_key", biased), 2, axis=-1)
            parts.append(self.linear(seen, width, "value", biased))
        split = (*seen.shape[:2], heads, width // heads)
        query, key, value = (part.reshape(split) for part in parts)
        if self.model.positions == "rotary":
            query, key = rotated(query), rotated(key)
        query, key, value = hook("attn.q", layer, query), hook("attn.k", layer, key), hook("attn.v", layer, value)
        query = query[:, rows] if len(rows) < query.shape[1] else query
        scores = jnp.einsum("brhc,bthc->bhrt", query, key)
        if self.model.positions == "relative":
            scores = scores + math.sqrt(width // heads) * self._by_distance(rows, scores.shape[-1], scores.dtype)[None]
        scores = hook("attn.scores", layer, scores)
        weights = hook("attn.pattern", layer, causal_weights(self.model.kind(layer), scores, rows, width // heads))
        pooled = hook("attn.z", layer, jnp.einsum("bhrt,bthc->brhc", weights, value))
        output = Linear(width, self.model, biased, True, "output") if self.model.attention_output else None
        if is_seen(hook, "attn.result"):
            results = each_head_alone(pooled) if output is None else output.of_heads(pooled)
            results = hook("attn.result", layer, results)
            update = reduce(jnp.add, [results[:, head] for head in range(heads)])
            return update if output is None else output.with_bias(update, width)
        pooled = pooled.reshape(*query.shape[:2], width)
        return pooled if output is None else output(pooled)

    @hk.transparent
    def _by_distance(self, rows: np.ndarray, count: int, dtype: jnp.dtype) -> Array:
        """b [H, R, T] of the distances r - t; of keys that a row does not see, what is masked anyway."""
        learned: Array = hk.get_parameter("distances", (self.model.num_heads, count), dtype, jnp.zeros)
        return learned[:, np.maximum(rows[:, None] - np.arange(count)[None], 0)]


def each_head_alone(pooled: Array) -> Array:
    """[B, H, R, H C] of heads' values [B, R, H, C]: each head's in its own channels, where no matrix mixes them."""
    size, rows, heads, channels = pooled.shape
    alone = jnp.einsum("brhc,hg->bhrgc", pooled, jnp.eye(heads, dtype=pooled.dtype))
    return alone.reshape(size, heads, rows, heads * channels)


def read_out_of(model: DecoderConfig, token_width: int, outputs: int = 0) -> ReadOut:
    """From the stream at the inputs' rows [B, K, d] to predictions [B, K]: channel 0 of a token's, or of one.

    Of several outputs they are its first channels, [B, K, outputs]. A token's channels have biases, others have none.
    """
    reads_token = choices_of(model).read_out == "token"
    channels, norm = token_width if reads_token else max(outputs, 1), model.layer_norm and model.norm == "pre"
    return ReadOut(lambda: Linear(channels, model, reads_token, False, "linear"), norm, "read_out", outputs)


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
        return jnp.stack([x[:, :, head] @ weight[head] for head in range(heads)], axis=1)  # faster than one product

    def with_bias(self, mapped: Array, fan_in: int) -> Array:
        """x W [..., size] with the bias added, if there is one."""
        if not self.bias:
            return mapped
        bias = hk.get_parameter("b", (self.size,), init=self.kind.biases(fan_in, self.layers))
        return mapped + jnp.broadcast_to(bias, mapped.shape)

    def _weight(self, fan_in: int) -> Array:
        return hk.get_parameter("w", (fan_in, self.size), init=self.weights(fan_in, self.layers))
