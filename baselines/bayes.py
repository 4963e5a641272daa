"""Ridge regression on a context: the Bayes predictor when its penalty is the noise-to-signal ratio."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from src.batch import Batch
from src.config import DataConfig


def ridge(batch: Batch, penalty: float) -> Array:
    """Predictions [B] of ridge regression: x_query . X^T (X X^T + penalty I)^-1 y, X [N, D] the context's inputs.

    penalty = 0 is the least-norm solution of the least-squares problem; there the inverse is a pseudo-inverse.
    """
    if penalty == 0:  # of X itself: its Gram matrix has the squared condition number, too much for float32
        return jnp.einsum("bdn,bn,bd->b", jnp.linalg.pinv(batch.x), batch.y, batch.x_query)
    gram = jnp.einsum("bid,bjd->bij", batch.x, batch.x)
    eye = jnp.broadcast_to(jnp.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)
    dual = jnp.linalg.solve(gram + penalty * eye, batch.y[:, :, None])[:, :, 0]
    return jnp.einsum("bn,bnd,bd->b", dual, batch.x, batch.x_query)


def bayes_penalty(data: DataConfig) -> float:
    """The penalty noise_std^2 / weight_scale^2 at which ridge is the posterior mean, for Gaussian w and noise."""
    return data.noise_std**2 / data.weight_scale**2
