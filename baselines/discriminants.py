"""Ridge regression that knows the tasks it may meet: a Gaussian prior fitted to the weights of the training tasks."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.batch import Batch

RIDGE = 1e-6  # of a discriminant's moments


class Prior(NamedTuple):
    """The mean [D] and the covariance [D, D] of weights."""

    mean: Array
    covariance: Array


def discriminant(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The weights [D] of least squares for labels y [S] of inputs x [S, D]."""
    moments = x.T @ x / len(x)
    return np.asarray(
        np.linalg.solve(moments + RIDGE * np.trace(moments) / len(moments) * np.eye(len(moments)), x.T @ y / len(x))
    )


def prior_of(weights: np.ndarray) -> Prior:
    """The prior with the mean and covariance of these weights [M, D]; of one task the covariance is 0."""
    mean = weights.mean(axis=0)
    centred = weights - mean
    return Prior(jnp.asarray(mean, jnp.float32), jnp.asarray(centred.T @ centred / len(weights), jnp.float32))


def posterior_mean(batch: Batch, prior: Prior, noise: float | Array) -> Array:
    """Predictions [B] of the posterior mean, m + C X^T (X C X^T + noise I)^-1 (y - X m), labels having that noise.

    m = 0, C = I is ridge regression of penalty `noise`.
    """
    spread = jnp.einsum("bnd,de->bne", batch.x, prior.covariance)
    gram = jnp.einsum("bne,bme->bnm", spread, batch.x)
    eye = jnp.broadcast_to(jnp.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)
    residual = batch.y - jnp.einsum("bnd,d->bn", batch.x, prior.mean)
    dual = jnp.linalg.solve(gram + noise * eye, residual[:, :, None])[:, :, 0]
    weights = jnp.einsum("bn,bnd->bd", dual, spread)
    return jnp.einsum("bd,bd->b", weights, batch.x_query) + jnp.einsum("bd,d->b", batch.x_query, prior.mean)
