"""What a plain loop on languages would do: JAX's own random numbers, strings looked up, attention over all rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.src.batch import Batch
from icl_lab.src.data import concatenated_tokens


def sample(key: Array, config: LanguagesConfig, size: int) -> Batch:
    """A batch of tasks of the training pool."""
    positives, negatives, codes = (
        jnp.asarray(config.shared_arrays()[name]) for name in ("positives", "negatives", "codes")
    )
    keys, shape = jax.random.split(key, 3), (size, config.data.num_pairs + 1)
    language = jax.random.randint(keys[0], (size,), 0, len(positives))
    index = jax.random.randint(keys[1], shape, 0, positives.shape[1])
    positive = jax.random.bernoulli(keys[2], config.data.positive_share, shape)
    rows = jnp.broadcast_to(language[:, None], shape)
    x, y = codes[jnp.where(positive, positives[rows, index], negatives[rows, index])], 2.0 * positive - 1
    return Batch(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1], language[:, None].astype(x.dtype))


def predict(params: Any, batch: Batch, config: LanguagesConfig) -> Array:
    """The predictions of linear layers, computed layer by layer over all rows."""
    tokens = concatenated_tokens(batch)
    for layer in range(config.model.num_layers):
        part = params[f"{config.model.layer_names[0 if config.model.recurrent else layer]}/attention"]
        context = tokens[:, :-1]
        query = jnp.einsum("brw,whk->bhrk", tokens, part["query"])
        key, value = (jnp.einsum("bnw,whk->bhnk", context, part[name]) for name in ("key", "value"))
        mixed = jnp.einsum("bhrn,bhnk->bhrk", jnp.einsum("bhrk,bhnk->bhrn", query, key), value)
        tokens = tokens + jnp.einsum("bhrk,hkw->brw", mixed, part["projection"])
    return -tokens[:, -1, config.architecture.dim]
