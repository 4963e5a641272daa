"""The stack with a prediction after every layer, and one layer applied many times: what the depth curve looks at.

Queries see the context rows alone, and context rows never see a query. Without an embedding the prediction is minus the
label channel, as in `src.transformer`; with one, a layer norm and a linear map that all layers share, so that the map
meets the same statistics whatever layer it reads.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import Any

import haiku as hk
import jax.numpy as jnp
from jax import Array, lax

from src.attn import Hook, no_hook
from src.batch import Batch
from src.config import DataConfig, RunConfig, TrainConfig
from src.prng import key as make_key
from src.queries import sample_batch, tokenise
from src.transformer import Model, Params, Trace, make_blocks, normalise


def make_model(config: RunConfig) -> Model:
    """The model of a config of the family layerwise: the same one for configs that differ in nothing it depends on.

    `predict` gives what the loss is taken of: the last layer's predictions [B, Q], or with deep supervision those of
    all layers [L, B, Q], which is also what `forward` and a trace hold.
    """
    data = DataConfig(dim=config.data.dim, num_pairs=config.data.num_pairs, num_queries=config.data.num_queries)
    one = TrainConfig(batch_size=1, deep_supervision=config.training.deep_supervision)
    same = RunConfig(data=data, model=config.model, training=one, eval_tasks=2, headline_tasks=2, step_size_tasks=2)
    return _make_model(same)


@lru_cache
def _make_model(config: RunConfig) -> Model:
    def stack(tokens: Array, hook: Hook) -> Array:
        return run_stack(tokens, config, hook)

    transformed: Any = hk.without_apply_rng(hk.transform(stack))

    def init(key: Array) -> Params:
        params: Params = transformed.init(key, tokenise(sample_batch(make_key(0), config.data, 1)), no_hook)
        return params

    def forward(params: Params, tokens: Array, hook: Hook) -> Array:
        predictions: Array = transformed.apply(params, tokens, hook)
        return predictions

    def predict(params: Params, batch: Batch) -> Array:
        predictions = forward(params, tokenise(batch), no_hook)
        return predictions if config.training.deep_supervision else predictions[-1]

    def trace(params: Params, batch: Batch) -> Trace:
        seen: dict[str, list[Array]] = defaultdict(list)

        def collect(name: str, layer: int, value: Array) -> Array:
            seen[name].append(value)
            return value

        predictions = forward(params, tokenise(batch), collect)
        return Trace(predictions, tuple(seen["attention"]), tuple(seen["tokens"]))

    return Model(init, predict, trace, forward)


def run_stack(tokens: Array, config: RunConfig, hook: Hook = no_hook) -> Array:
    """Predictions [L, B, Q] after every layer from tokens [B, R, W]; to be called inside `hk.transform`.

    Without a hook the last layer computes the queries' rows alone. Hooks see attention and tokens, as in
    `src.transformer.run_stack`.
    """
    model, queries = config.model, config.data.num_queries
    if model.embed_size > 0:
        tokens = hk.Linear(model.embed_size, name="embed")(tokens)
    read_out, blocks = ReadOut(config, "read_out"), make_blocks(config)
    predictions = []
    for layer, block in enumerate(blocks):
        only_queries = layer == len(blocks) - 1 and hook is no_hook
        tokens = block(tokens, layer, queries if only_queries else config.num_rows, hook)
        if model.activation_clip > 0:
            tokens = jnp.clip(tokens, -model.activation_clip, model.activation_clip)
        tokens = hook("tokens", layer, tokens)
        predictions.append(read_out(tokens[:, -queries:]))
    return jnp.stack(predictions)


class ReadOut(hk.Module):
    """From rows [B, Q, W] to predictions [B, Q]: minus the label channel; of embedded tokens a learned linear map."""

    def __init__(self, config: RunConfig, name: str):
        super().__init__(name=name)
        self.config = config

    def __call__(self, rows: Array) -> Array:
        """The predictions; every call shares its parameters."""
        if self.config.model.embed_size == 0:
            return -rows[:, :, self.config.data.dim]
        prediction: Array = hk.Linear(1, name="linear")(normalise(rows, self.config.model.layer_norm, "norm"))
        return prediction[:, :, 0]


def roll_out(model: Model, params: Params, batch: Batch, layers: int, damping: float | Array) -> Array:
    """Predictions [L, B, Q] of one trained layer applied L times, only the label channel moving.

    y <- y + damping * (layer(tokens) - tokens)_y; the prediction is minus the queries' label channel. With the
    construction's weights this is gradient descent of step damping * c. Von Oswald et al. 2023, Fig. 1 and 10.
    """
    label, queries = batch.x.shape[-1], batch.x_query.shape[1]

    def step(tokens: Array, _: None) -> tuple[Array, Array]:
        seen: dict[str, Array] = {}

        def keep(name: str, layer: int, value: Array) -> Array:
            seen[name] = value
            return value

        model.forward(params, tokens, keep)
        tokens = tokens.at[:, :, label].add(damping * (seen["tokens"] - tokens)[:, :, label])
        return tokens, -tokens[:, -queries:, label]

    _, predictions = lax.scan(step, tokenise(batch), None, length=layers)
    return predictions
