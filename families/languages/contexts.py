"""Contexts of labelled strings: how a batch is drawn from a pool, in training and for the tests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.src.batch import Batch
from icl_lab.src.prng import Purpose, purpose_key


class Drawn(NamedTuple):
    """Tasks: language [B]; strings [B, N + 1], rows of a pool's, the query last; and their labels [B, N + 1]."""

    language: Array
    strings: Array
    labels: Array


def draw(key: Array, positives: Array, negatives: Array, size: int, pairs: int, positive_share: float) -> Drawn:
    """Tasks of one language each, all languages alike; a string's label is 1 with the chance `positive_share`."""
    positives, negatives = jnp.asarray(positives), jnp.asarray(negatives)
    languages, pool_size = positives.shape
    language = jax.random.randint(purpose_key(key, Purpose.TASK), (size,), 0, languages)
    index = jax.random.randint(purpose_key(key, Purpose.INPUT), (size, pairs + 1), 0, pool_size)
    positive = jax.random.uniform(purpose_key(key, Purpose.OBSERVATION), (size, pairs + 1)) < positive_share
    rows = jnp.broadcast_to(language[:, None], index.shape)
    strings = jnp.where(positive, positives[rows, index], negatives[rows, index])
    return Drawn(language, strings, jnp.where(positive, 1.0, -1.0))


def coded(drawn: Drawn, codes: Array) -> Batch:
    """The tasks with codes [S, D] for strings; w [B, 1] is the number of the language."""
    x = codes[drawn.strings]
    return Batch(
        x[:, :-1], drawn.labels[:, :-1], x[:, -1], drawn.labels[:, -1], drawn.language[:, None].astype(x.dtype)
    )


@partial(jax.jit, static_argnames=("size", "pairs", "positive_share"))
def drawn_from(key: Array, pool: Mapping[str, Array], size: int, pairs: int, positive_share: float) -> Drawn:
    """`draw` from a pool's draws, as one program."""
    return draw(key, pool["positives"], pool["negatives"], size, pairs, positive_share)
