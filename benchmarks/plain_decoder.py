"""The plain loop's data and model for decoders: a fixed pool of tasks, and every block over all rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.src.batch import Batch
from icl_lab.src.sequences import tokenise


def sample(key: Array, config: DiversityConfig, size: int) -> Batch:
    """A batch of sequences from a pool of Gaussian tasks, with JAX's own random numbers."""
    data = config.data
    choice, task, inputs, noise = jax.random.split(key, 4)
    if data.num_tasks < math.inf:
        pool = jax.random.normal(jax.random.key(config.data_seed), (int(data.num_tasks), data.dim))
        w = pool[jax.random.randint(choice, (size,), 0, len(pool))]
    else:
        w = jax.random.normal(task, (size, data.dim))
    x = jax.random.normal(inputs, (size, data.num_pairs, data.dim))
    y = jnp.einsum("bkd,bd->bk", x, w) + data.noise_std * jax.random.normal(noise, (size, data.num_pairs))
    return Batch(x, y, x, y, w)


def predict(params: Any, batch: Batch, config: DiversityConfig) -> Array:
    """All K predictions of GPT-2's decoder."""
    model = config.model
    stream = linear(params["embed/linear"], tokenise(batch)) + params["embed"]["positions"][None]
    mask = jnp.tril(jnp.ones((stream.shape[1], stream.shape[1]), bool))[None, None]
    for layer in range(model.num_layers):
        part = {name.removeprefix(f"layer_{layer}/"): values for name, values in params.items()}
        stacked = linear(part["attention/query_key_value"], norm(part["attention_norm"], stream))
        heads = (*stream.shape[:2], model.num_heads, -1)
        query, key, value = (each.reshape(heads).transpose(0, 2, 1, 3) for each in jnp.split(stacked, 3, axis=-1))
        scores = query @ key.transpose(0, 1, 3, 2) / jnp.sqrt(query.shape[-1])
        mixed = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1) @ value
        stream = stream + linear(part["attention/output"], mixed.transpose(0, 2, 1, 3).reshape(stream.shape))
        hidden = jax.nn.gelu(linear(part["mlp_in"], norm(part["mlp_norm"], stream)))
        stream = stream + linear(part["mlp_out"], hidden)
    predictions: Array = linear(params["read_out/linear"], norm(params["read_out/norm"], stream))[:, ::2, 0]
    return predictions


def linear(params: Mapping[str, Array], x: Array) -> Array:
    """x W, plus b if there is one."""
    mapped: Array = x @ params["w"]
    if "b" in params:
        mapped = mapped + params["b"][None, None]
    return mapped


def norm(params: Mapping[str, Array], x: Array) -> Array:
    """Layer norm over channels."""
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    normal: Array = params["scale"][None, None] * (centred * scale) + params["offset"][None, None]
    return normal
