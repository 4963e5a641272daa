"""The stack: tokens in, a prediction for the query out, and what happens between in a `Trace`.

The prediction is minus the label channel of the query's row (von Oswald et al. 2023, Sec. 2: gradient descent in token
space subtracts predictions from labels, and the query's label starts at 0).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from src.attn import Attention, Hook, no_hook
from src.config import Architecture, ModelConfig, StackConfig
from src.data import tokenise
from src.model import Model, as_model


@lru_cache
def make_model(architecture: Architecture[ModelConfig]) -> Model:
    """The model of an architecture: always the same one, and programs are kept by the model they are of."""
    shape = (architecture.num_rows, architecture.token_width)
    return as_model(
        lambda tokens, hook: run_stack(tokens, architecture, hook), partial(tokenise, model=architecture.model), shape
    )


def run_stack(tokens: Array, architecture: Architecture[StackConfig], hook: Hook = no_hook) -> Array:
    """Predictions [B] from tokens [B, R, W]; to be called inside `hk.transform`.

    Without a hook the last layer computes the query's row alone, for nothing else is read. A hook sees, per layer,
    ("attention", [B, H, R, N]), ("tokens", [B, R, W]) and ("prediction", [B]); what it gives back for the first two is
    what the model goes on with, so a hook can patch as well as look.
    """
    model, label_channel = architecture.model, architecture.dim
    blocks = make_blocks(architecture)
    for layer, block in enumerate(blocks):
        only_query = layer == len(blocks) - 1 and hook is no_hook
        tokens = block(tokens, layer, 1 if only_query else architecture.num_rows, hook)
        if model.activation_clip > 0:
            tokens = jnp.clip(tokens, -model.activation_clip, model.activation_clip)
        tokens = hook("tokens", layer, tokens)
        hook("prediction", layer, -tokens[:, -1, label_channel])
    return -tokens[:, -1, label_channel]


def make_blocks(architecture: Architecture[StackConfig]) -> list[Block]:
    """One block a layer; the same one every time when recurrent."""
    model = architecture.model
    blocks = [Block(architecture, model.kind(layer), name) for layer, name in enumerate(model.layer_names)]
    return blocks * model.num_layers if model.recurrent else blocks


class Block(hk.Module):
    """Attention and, if asked for, layer norms before and an MLP after it; each update is damped and added."""

    def __init__(self, architecture: Architecture[StackConfig], kind: str, name: str):
        super().__init__(name=name)
        self.architecture, self.kind = architecture, kind

    def __call__(self, tokens: Array, layer: int, num_rows: int, hook: Hook) -> Array:
        """The last `num_rows` of tokens [B, R, W], updated."""
        model, width = self.architecture.model, self.architecture.width
        init = hk.initializers.VarianceScaling(model.init_scale / model.num_layers, "fan_in", "truncated_normal")
        key_size = model.key_size // model.num_heads or width
        attention = Attention(self.kind, model.num_heads, key_size, model.bias, init, "attention")
        seen = normalise(tokens, model.layer_norm, "attention_norm")
        rows = tokens[:, -num_rows:]
        rows = rows + model.damping * attention(
            seen[:, -num_rows:], seen[:, : -self.architecture.num_queries], layer, hook
        )
        if model.mlp_width == 0:
            return rows
        hidden = hk.Linear(model.mlp_width, w_init=init, name="mlp_in")(normalise(rows, model.layer_norm, "mlp_norm"))
        return rows + model.damping * hk.Linear(width, w_init=init, name="mlp_out")(jax.nn.gelu(hidden))


def normalise(tokens: Array, wanted: bool, name: str) -> Array:
    """Layer norm over the token's channels, if wanted."""
    if not wanted:
        return tokens
    normalised: Array = hk.LayerNorm(axis=-1, create_scale=True, create_offset=True, name=name)(tokens)
    return normalised


class ReadOut(hk.Module):
    """From rows [B, Q, W] to predictions [B, Q]: a layer norm, if wanted, then channel 0 of a linear map.

    Every call shares its parameters, so it may look at the rows of any layer.
    """

    def __init__(self, linear: Callable[[], Callable[[Array], Array]], layer_norm: bool, name: str):
        super().__init__(name=name)
        self.linear, self.layer_norm = linear, layer_norm

    def __call__(self, rows: Array) -> Array:
        """The predictions."""
        return self.linear()(normalise(rows, self.layer_norm, "norm"))[:, :, 0]
