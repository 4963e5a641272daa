"""A causal decoder of symbols: at every position the logits of the next one, from those before it.

Blocks, positions and norms are those of `src.decoder`. Symbols are embedded by a table and read out by a matrix of its
own, after a layer norm where there is one before blocks.
"""

from __future__ import annotations

import math
from functools import lru_cache

import haiku as hk
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.activations import Hook, no_hook
from icl_lab.src.batch import TokenBatch
from icl_lab.src.causal import check_kind
from icl_lab.src.decoder import Block, Embedding, block_kernels
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.model import Model, as_model
from icl_lab.src.transformer import normalise


@lru_cache
def make_model(model: DecoderConfig, num_symbols: int, rows: int, embedding_std: float, start: bool) -> Model:
    """The model of sequences that have so many rows, of k symbols and with a `start` one more, in the first row.

    embedding_std: of the entries of both tables at initialisation. `ConfigError` for attention that looks ahead.
    """
    for kind in {model.kind(layer) for layer in range(model.num_layers)}:
        check_kind(kind)

    def stack(tokens: Array, hook: Hook) -> Array:
        logits = read(tokens.astype(jnp.int32), model, num_symbols, embedding_std, start, hook)
        return logits[:, int(start) :]

    made = as_model(stack, lambda batch: batch.x, (rows,), "cross_entropy", decayed=block_kernels)
    return made._replace(null_losses=lambda batch: losses_of_uniform(batch, num_symbols))


def read(
    symbols: Array, model: DecoderConfig, num_symbols: int, embedding_std: float, start: bool, hook: Hook = no_hook
) -> Array:
    """Logits [B, R, k] from symbols [B, R]; to be called inside `hk.transform`."""
    stream, positions = SymbolEmbedding(model, num_symbols + int(start), embedding_std)(symbols, hook)
    rows = np.arange(symbols.shape[1])
    read_out = SymbolReadOut(model, num_symbols, embedding_std)
    for layer in range(model.num_layers):
        stream = hook("resid_post", layer, Block(model, f"layer_{layer}")(stream, positions, rows, layer, hook))
        if hook is not no_hook:
            hook("prediction", layer, read_out(stream))
    return read_out(stream)


def losses_of_uniform(batch: TokenBatch, num_symbols: int) -> Array:
    """log k [B]: the loss of a predictor that says every symbol is as likely."""
    return jnp.full(batch.y_query.shape[0], math.log(num_symbols))


class SymbolEmbedding(Embedding):
    """From symbols [B, R] to the stream [B, R, d], by a table."""

    def __init__(self, model: DecoderConfig, num_symbols: int, std: float):
        super().__init__(model, "embed")
        self.num_symbols, self.std = num_symbols, std

    def __call__(self, symbols: Array, hook: Hook) -> tuple[Array, Array | None]:
        """The stream below the first block, and the positions of queries and keys."""
        shape = (self.num_symbols, self.model.d_model)
        table = hk.get_parameter("symbols", shape, init=hk.initializers.RandomNormal(self.std))
        return self.placed(jnp.take(table, symbols, axis=0), hook)


class SymbolReadOut(hk.Module):
    """From the stream [B, R, d] to logits [B, R, k]; every call shares its parameters."""

    def __init__(self, model: DecoderConfig, num_symbols: int, std: float):
        super().__init__(name="read_out")
        self.num_symbols, self.std = num_symbols, std
        self.norm = model.layer_norm and model.norm == "pre"

    def __call__(self, stream: Array) -> Array:
        """The logits."""
        normed = normalise(stream, self.norm, "norm")
        shape = (normed.shape[-1], self.num_symbols)
        weights = hk.get_parameter("symbols", shape, init=hk.initializers.RandomNormal(self.std))
        flat: Array = normed.reshape(-1, shape[0]) @ weights
        return flat.reshape(*normed.shape[:-1], self.num_symbols)
