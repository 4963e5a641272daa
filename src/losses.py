"""Losses of single predictions, by name: what a model's loss of a task is a mean of.

Predictions have their targets' shape, and may have further axes before it; anything else is a `ConfigError`.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from icl_lab.src.checks import same_shape


def half_squared_errors(predictions: Array, targets: ArrayLike) -> Array:
    """(prediction - target)^2 / 2, of the predictions' shape; these may have further leading axes, as of layers."""
    same_shape(leading=True, predictions=predictions, targets=jnp.asarray(targets))
    return 0.5 * (predictions - jnp.broadcast_to(targets, predictions.shape)) ** 2


def absolute_errors(predictions: Array, targets: ArrayLike) -> Array:
    """|prediction - target|, of the predictions' shape: what the median of the posterior makes least."""
    same_shape(leading=True, predictions=predictions, targets=jnp.asarray(targets))
    return jnp.abs(predictions - jnp.broadcast_to(targets, predictions.shape))


def half_mse(predictions: ArrayLike, targets: ArrayLike) -> Array:
    """Half the mean squared error, mean((prediction - target)^2) / 2, as in the paper's figures; over all axes."""
    same_shape(leading=True, predictions=jnp.asarray(predictions), targets=jnp.asarray(targets))
    return 0.5 * jnp.mean((predictions - jnp.broadcast_to(targets, jnp.shape(predictions))) ** 2)


def binary_cross_entropies(logits: Array, labels: Array) -> Array:
    """-log p(label) = log(1 + exp(z)) - label z of logits z and labels in {0, 1}, of their shape, in nats."""
    same_shape(leading=True, logits=logits, labels=labels)
    return jax.nn.softplus(logits) - jnp.broadcast_to(labels, logits.shape) * logits


def logistic_losses(logits: Array, labels: Array) -> Array:
    """-log p(label) = log(1 + exp(-label z)) of logits z and labels -1 or 1, of their shape, in nats."""
    same_shape(leading=True, logits=logits, labels=labels)
    return jax.nn.softplus(-jnp.broadcast_to(labels, logits.shape) * logits)


def cross_entropies(logits: Array, labels: Array) -> Array:
    """-log p(label) [...] of logits [..., V] and labels [...], whole numbers below V, in nats."""
    same_shape(leading=True, logits=logits[..., 0], labels=labels)
    every = jnp.broadcast_to(labels, logits.shape[:-1])
    chosen: Array = jnp.take_along_axis(logits, every[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - chosen


# name -> losses of predictions, given targets
LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "half_squared_error": half_squared_errors,
    "absolute_error": absolute_errors,
    "binary_cross_entropy": binary_cross_entropies,
    "logistic_loss": logistic_losses,
    "cross_entropy": cross_entropies,
}
# losses whose prediction has the shape of the target
OF_A_NUMBER = ("half_squared_error", "absolute_error", "binary_cross_entropy", "logistic_loss")
