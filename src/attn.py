"""Linear and softmax attention, from context rows to any rows.

Keys and values come from the context rows alone, queries from the rows to be updated; there is no causal mask. Only the
products W_Q W_K^T and W_V P matter, so each is taken once per layer, [W, W], instead of projecting every token four
times. Heads are computed one after another: XLA:CPU batches best over tasks alone. A bias is a weight on a constant
channel: with biases the tokens carry one more channel, which is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.activations import Hook, is_seen, no_hook
from icl_lab.src.attention_products import pair_scores, weighted_sums
from icl_lab.src.registries import ATTENTION_KINDS
from icl_lab.src.registry import Functions


def softmax_weights(scores: Array, key_size: int) -> Array:
    """softmax(scores / sqrt(key_size)) over the context. Vaswani et al. 2017, Eq. 1."""
    return jax.nn.softmax(scores / math.sqrt(key_size), axis=-1)


def linear_weights(scores: Array, key_size: int) -> Array:
    """The scores themselves, unscaled. Von Oswald et al. 2023, Eq. 2."""
    return scores


ATTENTION_WEIGHTS: Functions[Callable[[Array, int], Array]] = Functions(
    ATTENTION_KINDS, "weights", {"linear": linear_weights, "softmax": softmax_weights}
)


class Attention(hk.Module):
    """Multi-head attention: update_r = sum_h P_h sum_j a_hrj W_V,h e_j, a = weights(e_r . W_Q,h W_K,h^T e_j).

    Parameters: query, key, value [W, H, K] and projection [H, K, W]; with biases also query_bias, key_bias, value_bias
    [1, H, K] and projection_bias [W]. Weights start at `init`, biases at zero. `merged`, the parameters are the
    products themselves, as in `merged_of`: the same function of the tokens, but gradient descent on it is another.
    """

    def __init__(
        self,
        kind: str,
        num_heads: int,
        key_size: int,
        bias: bool,
        init: hk.initializers.Initializer,
        name: str,
        merged: bool = False,
    ):
        super().__init__(name=name)
        self.kind, self.num_heads, self.key_size, self.bias, self.init = kind, num_heads, key_size, bias, init
        self.merged = merged

    def __call__(self, rows: Array, context: Array, layer: int = 0, hook: Hook = no_hook) -> Array:
        """Updates of rows [B, R, W] that look at context [B, N, W]."""
        width = rows.shape[-1]
        score_matrices, value_matrices = self._merged(width) if self.merged else self._multiplied(width)
        if self.bias:
            rows, context = _with_constant(rows), _with_constant(context)
        scores = [pair_scores(jnp.einsum("brw,wu->bru", rows, matrix), context) for matrix in score_matrices]
        weights = ATTENTION_WEIGHTS[self.kind](hook("attn.scores", layer, jnp.stack(scores, axis=1)), self.key_size)
        weights = hook("attn.pattern", layer, weights)
        pooled = [weighted_sums(weights[:, head], context) for head in range(self.num_heads)]
        updates = [jnp.einsum("brw,wu->bru", *pair) for pair in zip(pooled, value_matrices, strict=True)]
        if is_seen(hook, "attn.result"):
            results = hook("attn.result", layer, jnp.stack(updates, axis=1))
            updates = [results[:, head] for head in range(self.num_heads)]
        update: Array = reduce(jnp.add, updates)
        if self.bias:
            offset = hk.get_parameter("projection_bias", (width,), init=jnp.zeros)
            update = update + jnp.broadcast_to(offset, update.shape)
        return update

    def _multiplied(self, width: int) -> tuple[Array, Array]:
        """W_Q W_K^T and W_V P of each head, for rows, [H, W, W]."""
        query, key, value = (self._input_weight(name, width) for name in ("query", "key", "value"))
        projection = self._fan_in_parameter("projection", (self.num_heads, self.key_size, width))
        return jnp.einsum("whk,uhk->hwu", query, key), jnp.einsum("whk,hku->hwu", value, projection)

    def _merged(self, width: int) -> tuple[Array, Array]:
        """The same as parameters; fan-in is counted as that of the second factor is, of maps to and from all heads."""
        shape = (self.num_heads, width, width)

        def into_heads(_: object, dtype: jnp.dtype) -> Array:
            drawn = self.init((width, self.num_heads * width), dtype)
            return jnp.einsum("whu->huw", drawn.reshape(width, self.num_heads, width))

        def out_of_heads(_: object, dtype: jnp.dtype) -> Array:
            return self.init((self.num_heads * width, width), dtype).reshape(shape).swapaxes(-1, -2)

        key_query = hk.get_parameter("key_query", shape, init=into_heads)
        projection_value = hk.get_parameter("projection_value", shape, init=out_of_heads)
        return key_query.swapaxes(-1, -2), projection_value.swapaxes(-1, -2)

    def _input_weight(self, name: str, width: int) -> Array:
        weight = self._fan_in_parameter(name, (width, self.num_heads, self.key_size))
        if not self.bias:
            return weight
        bias = hk.get_parameter(f"{name}_bias", (1, self.num_heads, self.key_size), init=jnp.zeros)
        return jnp.concatenate([weight, bias])

    def _fan_in_parameter(self, name: str, shape: tuple[int, int, int]) -> Array:
        """A parameter drawn as the matrix it is, so that its fan-in is counted as in one linear map over all heads."""
        matrix = (shape[0], shape[1] * shape[2]) if name != "projection" else (shape[0] * shape[1], shape[2])

        def init(_: object, dtype: jnp.dtype) -> Array:
            return self.init(matrix, dtype).reshape(shape)

        return hk.get_parameter(name, shape, init=init)


def merged_of(factors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The parameters of a merged layer that computes what one of these factors does (biases left out).

    key_query = W_K^T W_Q and projection_value = P W_V of each head, [H, W, W], for column vectors as in the paper. A
    merged layer's own parameters stay as they are.
    """
    if "key_query" in factors:
        return {name: np.asarray(factors[name], np.float64) for name in ("key_query", "projection_value")}
    query, key, value, projection = (
        np.asarray(factors[name], np.float64) for name in ("query", "key", "value", "projection")
    )
    return {
        "key_query": np.einsum("whk,uhk->hwu", key, query),
        "projection_value": np.einsum("hku,whk->huw", projection, value),
    }


def _with_constant(tokens: Array) -> Array:
    return jnp.concatenate([tokens, jnp.ones((*tokens.shape[:-1], 1), tokens.dtype)], axis=-1)
