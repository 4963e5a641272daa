"""The stack: tokens in, a prediction for the query out, and what happens between in a `Trace`.

The prediction is minus the label channel of the query's row (von Oswald et al. 2023, Sec. 2: gradient descent in token
space subtracts predictions from labels, and the query's label starts at 0), or minus the last channel if asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.src.activations import Hook, no_hook
from icl_lab.src.attn import Attention
from icl_lab.src.config import Architecture, ModelConfig, StackConfig
from icl_lab.src.data import tokenise
from icl_lab.src.model import Model, as_model

Update = Callable[[Array, int, Hook], Array]  # (rows [B, R, W], layer, hook) -> what is added to them


@lru_cache
def make_model(architecture: Architecture[ModelConfig]) -> Model:
    """The model of an architecture: always the same one, and programs are kept by the model they are of."""
    shape = (architecture.num_rows, architecture.token_width)
    return as_model(
        lambda tokens, hook: run_stack(tokens, architecture, hook), partial(tokenise, model=architecture.model), shape
    )


def run_stack(tokens: Array, architecture: Architecture[StackConfig], hook: Hook = no_hook) -> Array:
    """Predictions [B] from tokens [B, R, W]; to be called inside `hk.transform`.

    Without a hook the last layer computes the query's row alone, for nothing else is read. A block's prediction is what
    would be read of its rows; nothing follows from it.
    """
    model, channel = architecture.model, architecture.prediction_channel
    blocks = make_blocks(architecture)
    tokens = hook("embed", None, tokens)
    for layer, block in enumerate(blocks):
        only_query = layer == len(blocks) - 1 and hook is no_hook
        tokens = clipped(block(tokens, layer, 1 if only_query else architecture.num_rows, hook), model.activation_clip)
        tokens = hook("resid_post", layer, tokens)
        hook("prediction", layer, -tokens[:, -1, channel])
    return -tokens[:, -1, channel]


def make_blocks(architecture: Architecture[StackConfig]) -> list[Block]:
    """One block a layer; the same one every time when recurrent. A shared MLP is made here, its weights at the top."""
    model = architecture.model
    mlp = make_mlp(model, architecture.width) if model.shared_mlp and model.mlp_width > 0 else None
    blocks = [Block(architecture, model.kind(layer), name, mlp) for layer, name in enumerate(model.layer_names)]
    return blocks * model.num_layers if model.recurrent else blocks


class Block(hk.Module):
    """Attention and, if asked for, layer norms before and an MLP after it; each update is damped and added."""

    def __init__(self, architecture: Architecture[StackConfig], kind: str, name: str, mlp: Update | None = None):
        super().__init__(name=name)
        self.architecture, self.kind, self.mlp = architecture, kind, mlp

    def __call__(self, tokens: Array, layer: int, num_rows: int, hook: Hook) -> Array:
        """The last `num_rows` of tokens [B, R, W], updated."""
        model, width = self.architecture.model, self.architecture.width
        key_size = model.key_size // model.num_heads or width
        init = initializer(model)
        attention = Attention(self.kind, model.num_heads, key_size, model.bias, init, "attention", model.merged)
        tokens = hook("resid_pre", layer, tokens)
        seen = normalise(tokens, model.layer_norm and (model.first_norm or layer > 0), "attention_norm")
        rows = tokens[:, -num_rows:]
        update = attention(seen[:, -num_rows:], seen[:, : -self.architecture.num_queries], layer, hook)
        rows = rows + hook("attn_out", layer, model.damping * update)
        if model.mlp_width == 0:
            return rows
        rows = hook("resid_mid", layer, clipped(rows, model.activation_clip if model.clip_before_mlp else 0))
        mlp = self.mlp or make_mlp(model, width)
        update = mlp(normalise(rows, model.layer_norm, "mlp_norm"), layer, hook)
        return rows + hook("mlp_out", layer, model.damping * update)


def make_mlp(model: StackConfig, width: int) -> Update:
    """W_out gelu(W_in t + b_in) + b_out of tokens t [B, R, `width`]; its parameters are of the module that makes it.

    The hook sees both sides of the activation function.
    """
    init = initializer(model)
    inner = hk.Linear(model.mlp_width, model.mlp_bias, w_init=init, name="mlp_in")
    outer = hk.Linear(width, model.mlp_bias, w_init=init, name="mlp_out")

    def update(tokens: Array, layer: int, hook: Hook) -> Array:
        hidden = jax.nn.gelu(hook("mlp.pre", layer, inner(tokens)))
        updated: Array = outer(hook("mlp.post", layer, hidden))
        return updated

    return update


def initializer(model: StackConfig) -> hk.initializers.Initializer:
    """Truncated normal of variance `init_scale` / layers / fan-in."""
    return hk.initializers.VarianceScaling(model.init_scale / model.num_layers, "fan_in", "truncated_normal")


def clipped(tokens: Array, bound: float) -> Array:
    """The tokens within ±bound; as they are if it is 0."""
    return jnp.clip(tokens, -bound, bound) if bound > 0 else tokens


def normalise(tokens: Array, wanted: bool, name: str) -> Array:
    """Layer norm over the token's channels, if wanted."""
    if not wanted:
        return tokens
    normalised: Array = hk.LayerNorm(axis=-1, create_scale=True, create_offset=True, name=name)(tokens)
    return normalised


class ReadOut(hk.Module):
    """From rows [B, Q, W] to predictions [B, Q]: a layer norm, if wanted, then channel 0 of a linear map.

    With `outputs` above 0 predictions are its first channels, [B, Q, outputs]. Every call shares its parameters, so it
    may look at the rows of any layer.
    """

    def __init__(self, linear: Callable[[], Callable[[Array], Array]], layer_norm: bool, name: str, outputs: int = 0):
        super().__init__(name=name)
        self.linear, self.layer_norm, self.outputs = linear, layer_norm, outputs

    def __call__(self, rows: Array) -> Array:
        """The predictions."""
        channels = self.linear()(normalise(rows, self.layer_norm, "norm"))
        return channels[:, :, : self.outputs] if self.outputs else channels[:, :, 0]
