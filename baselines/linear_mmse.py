"""The best linear predictors on a context: ridge regression, and what it becomes where pairs are corrupted."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from src.batch import Batch
from src.checks import require
from src.config import ContextConfig, DataConfig


def ridge(batch: Batch, penalty: float) -> Array:
    """Predictions [B] of ridge regression: x_query . X^T (X X^T + penalty I)^-1 y, X [N, D] the context's inputs.

    penalty = 0 is the least-norm solution of the least-squares problem; there the inverse is a pseudo-inverse.
    """
    if penalty == 0:  # of X itself: its Gram matrix has the squared condition number, too much for float32
        return jnp.einsum("bdn,bn,bd->b", jnp.linalg.pinv(batch.x), batch.y, batch.x_query)
    return jnp.einsum("bn,bnd,bd->b", _dual(batch, penalty), batch.x, batch.x_query)


def ridge_weights(batch: Batch, penalty: float) -> Array:
    """The weights [B, D] of ridge regression, whose predictions are `ridge`; penalty 0 as there."""
    weights: Array
    if penalty == 0:
        weights = jnp.einsum("bdn,bn->bd", jnp.linalg.pinv(batch.x), batch.y)
        return weights
    weights = jnp.einsum("bn,bnd->bd", _dual(batch, penalty), batch.x)
    return weights


def _dual(batch: Batch, penalty: float) -> Array:
    """(X X^T + penalty I)^-1 y [B, N]."""
    gram = jnp.einsum("bid,bjd->bij", batch.x, batch.x)
    eye = jnp.broadcast_to(jnp.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)
    dual: Array = jnp.linalg.solve(gram + penalty * eye, batch.y[:, :, None])[:, :, 0]
    return dual


def bayes_penalty(data: DataConfig) -> float:
    """The penalty noise_std^2 / weight_scale^2 at which ridge is the posterior mean, for Gaussian w and noise."""
    return data.noise_std**2 / data.weight_scale**2


def hit_rate(context: ContextConfig) -> float:
    """The probability p that a pair is corrupted: 0 also where a hit would change nothing."""
    harmless = context.noise_mode == "clean" or (context.noise_mode == "label_noise" and context.noise_sigma == 0)
    return 0.0 if harmless else context.noise_p


def linear_mmse(batch: Batch, data: DataConfig, context: ContextConfig) -> Array:
    """Predictions [B] of least expected squared error among those linear in the labels, on corrupted contexts.

    Knows the corruption, its p and sigma, and the law of tasks; not which pairs were hit. It is E[w y^T] E[y y^T]^-1 y
    given the inputs X [N, D], which hits leave alone in law. With s = weight_scale, nu = noise_std^2 / s^2, K = X X^T:

        label noise    E[w y^T] = s^2 X^T, E[y y^T] = s^2 K + (noise_std^2 + p sigma^2) I:
                       w = X^T (K + (nu + p sigma^2 / s^2) I)^-1 y, a ridge
        random pairs   two pairs agree on w where neither is hit, (1 - p)^2; each has its full variance either way:
                       w = (1 - p) X^T ((1 - p)^2 K + (1 - (1 - p)^2) diag K + nu I)^-1 y

    p = 0 is `ridge` at `bayes_penalty`, with no noise at all least squares of least norm; p = 1 is a ridge for label
    noise and 0 for random pairs. At p = 0 and p = 1 it is the posterior mean. Order and placement do not matter.
    """
    require(data.num_distractors == 0, "the linear MMSE predictor is not defined for distractor labels")
    p = hit_rate(context)
    if p == 0:
        return ridge(batch, bayes_penalty(data))
    if context.noise_mode == "label_noise":
        return ridge(batch, bayes_penalty(data) + p * context.noise_sigma**2 / data.weight_scale**2)
    gram = jnp.einsum("bid,bjd->bij", batch.x, batch.x)
    eye = jnp.broadcast_to(jnp.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)
    covariance = (1 - p) ** 2 * gram + (1 - (1 - p) ** 2) * gram * eye + bayes_penalty(data) * eye
    dual = jnp.linalg.solve(covariance, batch.y[:, :, None])[:, :, 0]
    return (1 - p) * jnp.einsum("bn,bnd,bd->b", dual, batch.x, batch.x_query)
