"""The stack: tokens in, a prediction for the query out, and what happens between in a `Trace`.

The prediction is minus the label channel of the query's row (von Oswald et al. 2023, Sec. 2: gradient descent in token
space subtracts predictions from labels, and the query's label starts at 0).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from src.attn import Attention, Hook, no_hook
from src.batch import Batch
from src.checks import require
from src.config import DataConfig, RunConfig, TrainConfig
from src.data import sample_batch, tokenise
from src.prng import key as make_key

FAMILY = "regression"  # whose runs this model is of
Params = Mapping[str, Mapping[str, Array]]


class Trace(NamedTuple):
    """What one forward pass did.

    layer_predictions [L, B] after each layer (the last is the prediction); attention, one [B, H, R, N] a layer;
    tokens, one [B, R, W] after each layer.
    """

    layer_predictions: Array
    attention: tuple[Array, ...]
    tokens: tuple[Array, ...]


class Model(NamedTuple):
    """A transformer as pure functions.

    init(key) -> params; predict(params, batch) -> [B]; trace(params, batch) -> Trace; forward(params, tokens, hook);
    decayed(params) -> a tree of truth values: which of them weight decay is for, if it is not for all.
    """

    init: Callable[[Array], Params]
    predict: Callable[[Params, Batch], Array]
    trace: Callable[[Params, Batch], Trace]
    forward: Callable[[Params, Array, Hook], Array]
    decayed: Callable[[Params], Any] | None = None


def make_model(config: RunConfig) -> Model:
    """The model of a run config: the same one for configs that differ in nothing it depends on.

    Programs are kept by the model they are of, so equal models share them. `ConfigError` for a run of another family.
    """
    require(
        config.family == FAMILY,
        f"the run {config.name} is of the family {config.family}, whose model is not this transformer; "
        f"runners.families.FAMILIES[{config.family!r}].make_model(config) gives it",
    )
    return _make_model(model_part(config))


def model_part(config: RunConfig) -> RunConfig:
    """What a model depends on: its config, and how many pairs of which dimension it sees. The rest has one value."""
    data = DataConfig(dim=config.data.dim, num_pairs=config.data.num_pairs)
    one = TrainConfig(batch_size=1)  # and as few tasks as there can be, so that these are never too many
    return RunConfig(data=data, model=config.model, training=one, eval_tasks=2, headline_tasks=2, step_size_tasks=2)


@lru_cache
def _make_model(config: RunConfig) -> Model:
    return as_model(lambda tokens, hook: run_stack(tokens, config, hook), config)


def as_model(stack: Callable[[Array, Hook], Array], config: RunConfig) -> Model:
    """The model of a Haiku function from tokens [B, R, W] and a hook to predictions [B]."""
    transformed: Any = hk.without_apply_rng(hk.transform(stack))

    def init(key: Array) -> Params:
        example = sample_batch(make_key(0), config.data, 1)
        params: Params = transformed.init(key, tokenise(example, config.model), no_hook)
        return params

    def forward(params: Params, tokens: Array, hook: Hook) -> Array:
        prediction: Array = transformed.apply(params, tokens, hook)
        return prediction

    def predict(params: Params, batch: Batch) -> Array:
        return forward(params, tokenise(batch, config.model), no_hook)

    def trace(params: Params, batch: Batch) -> Trace:
        seen: dict[str, list[Array]] = defaultdict(list)

        def collect(name: str, layer: int, value: Array) -> Array:
            seen[name].append(value)
            return value

        forward(params, tokenise(batch, config.model), collect)
        return Trace(jnp.stack(seen["prediction"]), tuple(seen["attention"]), tuple(seen["tokens"]))

    return Model(init, predict, trace, forward)


def run_stack(tokens: Array, config: RunConfig, hook: Hook = no_hook) -> Array:
    """Predictions [B] from tokens [B, R, W]; to be called inside `hk.transform`.

    Without a hook the last layer computes the query's row alone, for nothing else is read. A hook sees, per layer,
    ("attention", [B, H, R, N]), ("tokens", [B, R, W]) and ("prediction", [B]); what it gives back for the first two is
    what the model goes on with, so a hook can patch as well as look.
    """
    model, label_channel = config.model, config.data.dim
    blocks = make_blocks(config)
    for layer, block in enumerate(blocks):
        only_query = layer == len(blocks) - 1 and hook is no_hook
        tokens = block(tokens, layer, 1 if only_query else config.num_rows, hook)
        if model.activation_clip > 0:
            tokens = jnp.clip(tokens, -model.activation_clip, model.activation_clip)
        tokens = hook("tokens", layer, tokens)
        hook("prediction", layer, -tokens[:, -1, label_channel])
    return -tokens[:, -1, label_channel]


def make_blocks(config: RunConfig) -> list[Block]:
    """One block a layer; the same one every time when recurrent."""
    blocks = [Block(config, config.model.kind(layer), name) for layer, name in enumerate(config.model.layer_names)]
    return blocks * config.model.num_layers if config.model.recurrent else blocks


class Block(hk.Module):
    """Attention and, if asked for, layer norms before and an MLP after it; each update is damped and added."""

    def __init__(self, config: RunConfig, kind: str, name: str):
        super().__init__(name=name)
        self.config, self.kind = config, kind

    def __call__(self, tokens: Array, layer: int, num_rows: int, hook: Hook) -> Array:
        """The last `num_rows` of tokens [B, R, W], updated."""
        model, width = self.config.model, self.config.model_width
        init = hk.initializers.VarianceScaling(model.init_scale / model.num_layers, "fan_in", "truncated_normal")
        key_size = model.key_size // model.num_heads or width
        attention = Attention(self.kind, model.num_heads, key_size, model.bias, init, "attention")
        seen = normalise(tokens, model.layer_norm, "attention_norm")
        rows = tokens[:, -num_rows:]
        rows = rows + model.damping * attention(
            seen[:, -num_rows:], seen[:, : -self.config.data.num_queries], layer, hook
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
