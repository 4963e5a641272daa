"""Attention in a causal decoder: the weights of each kind, of rows that see the keys up to their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.checks import require
from icl_lab.src.registries import ATTENTION_KINDS
from icl_lab.src.registry import Functions


def causal_weights(kind: str, scores: Array, rows: np.ndarray, key_size: int) -> Array:
    """The weights [B, H, R, T] of a kind, from scores of the rows of these numbers [R], each of which sees t <= r."""
    visible = rows[:, None] >= np.arange(scores.shape[-1])[None]
    count = jnp.asarray(visible.sum(axis=-1), scores.dtype)[None, None, :, None]
    return CAUSAL_WEIGHTS[kind](scores, key_size, jnp.asarray(visible)[None, None], count)


def check_kind(kind: str) -> None:
    """`ConfigError` for a plugin's kind whose weights say something of keys that a row does not see."""
    if not ATTENTION_KINDS.owner(kind):
        return
    rows, draw = np.arange(5), np.random.default_rng(0)
    scores, others = (draw.normal(size=(2, 2, 5, 5)).astype(np.float32) for _ in range(2))
    hidden = rows[:, None] < rows[None]
    weights, same = (
        np.asarray(causal_weights(kind, jnp.asarray(each), rows, 4))
        for each in (scores, np.where(hidden, others, scores))
    )
    text = f"the attention {kind!r} of a decoder"
    require(weights.shape == scores.shape, f"{text} gives weights of shape {weights.shape}; it must be {scores.shape}")
    says = "a row's weights of keys that it does not see must be 0, and nothing may depend on their scores"
    require(not weights[..., hidden].any() and np.array_equal(weights, same), f"{text} looks ahead: {says}")


def softmax_weights(scores: Array, key_size: int, visible: Array, count: Array) -> Array:
    """softmax(scores / sqrt(key_size)) over the visible keys."""
    scores = jnp.where(jnp.broadcast_to(visible, scores.shape), scores / math.sqrt(key_size), -jnp.inf)
    return jax.nn.softmax(scores, axis=-1)


def linear_weights(scores: Array, key_size: int, visible: Array, count: Array) -> Array:
    """Visible scores over their number, unscaled: a_rt = q_r . k_t / n_r for the n_r keys that row r sees, else 0.

    With the mean a row's update is a gradient step on the mean loss of what it has seen, of one size for all rows. The
    sum, which a stack's linear layer takes over its fixed N pairs, would be a step that grows along the sequence.
    """
    return jnp.where(jnp.broadcast_to(visible, scores.shape), scores, 0) / count


# kind -> (scores [B, H, R, T], size of a key, visible [1, 1, R, T], count [1, 1, R, 1]) -> weights [B, H, R, T]
CAUSAL_WEIGHTS: Functions[Callable[[Array, int, Array, Array], Array]] = Functions(
    ATTENTION_KINDS, "causal", {"linear": linear_weights, "softmax": softmax_weights}
)
