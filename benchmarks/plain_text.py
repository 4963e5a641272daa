"""The plain loop's data and model for text: windows of an array of symbols, and every block over all rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.benchmarks.plain_decoder import linear, norm
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.src.batch import TokenBatch


def symbols_of(config: TokensConfig) -> np.ndarray:
    """The training text [N]."""
    return np.asarray(config.shared_arrays()["symbols"])


def sample(key: Array, config: TokensConfig, size: int) -> TokenBatch:
    """A batch of windows, with JAX's own random numbers; windows may reach from one passage into the next."""
    symbols, length = jnp.asarray(symbols_of(config)), config.data.num_tokens
    first = jax.random.randint(key, (size,), 0, len(symbols) - length)
    windows = symbols[first[:, None] + jnp.arange(length)[None]]
    return TokenBatch(windows[:, :-1], windows[:, 1:])


def predict(params: Any, batch: TokenBatch, config: TokensConfig) -> Array:
    """All logits of a decoder without MLP whose positions are added to queries and keys."""
    model = config.model
    stream = params["embed"]["symbols"][batch.x]
    mask = jnp.tril(jnp.ones((stream.shape[1], stream.shape[1]), bool))[None, None]
    for layer in range(model.num_layers):
        part = {name.removeprefix(f"layer_{layer}/"): values for name, values in params.items()}
        seen = norm(part["attention_norm"], stream)
        stacked = linear(part["attention/query_key"], seen + params["embed"]["positions"][None])
        split = (*jnp.split(stacked, 2, axis=-1), linear(part["attention/value"], seen))
        heads = (*stream.shape[:2], model.num_heads, -1)
        query, key, value = (each.reshape(heads).transpose(0, 2, 1, 3) for each in split)
        scores = query @ key.transpose(0, 1, 3, 2) / jnp.sqrt(query.shape[-1])
        mixed = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1) @ value
        stream = stream + linear(part["attention/output"], mixed.transpose(0, 2, 1, 3).reshape(stream.shape))
    logits: Array = norm(params["read_out/norm"], stream) @ params["read_out"]["symbols"]
    return logits


def loss(logits: Array, batch: TokenBatch) -> Array:
    """The mean cross-entropy, in nats."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), batch.y_query[..., None], axis=-1)
    return -chosen.mean()
