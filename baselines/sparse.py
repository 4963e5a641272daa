"""Predictors for tasks that are `sparse` (`src.tasks`): the posterior mean of a spike and slab, and the lasso.

A coordinate is N(0, s^2 / p) with probability p, else 0. Given which coordinates are not 0 the prior is a Gaussian, so
the posterior is a mixture over the 2^D supports S, of prior p^|S| (1 - p)^(D - |S|). All are enumerated.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import Partial

from baselines import bayes
from src.batch import Batch
from src.checks import in_range, require
from src.tasks import NONZERO

MOST_DIMENSIONS = 12  # 4096 supports
SWEEPS = 200  # of the lasso over all coordinates
PENALTIES = (1e-4, 1e1)  # among which the best is sought, over the standard deviation of labels


def predict(batch: Batch, noise_variance: float, weight_scale: float, probability: float = NONZERO) -> Array:
    """Predictions [B] of the posterior mean for w = weight_scale times a draw of `sparse`.

    x [B, N, D], y [B, N], x_query [B, D]. Probability 1 is ridge regression. `ConfigError` for D above 12, whose
    supports are too many, and unless noise_variance and weight_scale are above 0.
    """
    return predict_sequence(bayes.as_sequence(batch), noise_variance, weight_scale, probability)[:, -1]


def predict_sequence(batch: Batch, noise_variance: float, weight_scale: float, probability: float = NONZERO) -> Array:
    """The same of every prefix of a sequence [B, K]: prediction k knows pairs 1 to k - 1."""
    in_range("weight_scale", weight_scale, 0, open_low=True)
    in_range("probability", probability, 0, 1, open_low=True)
    on = supports(batch.x.shape[-1])
    size = on.sum(axis=1)
    priors = probability**size * (1 - probability) ** (on.shape[1] - size)  # 0^0 is 1
    possible = priors > 0
    deviations = weight_scale / math.sqrt(probability) * on[possible]
    return bayes.scale_mixture(batch, jnp.asarray(deviations), jnp.asarray(priors[possible]), noise_variance)


def supports(dim: int) -> np.ndarray:
    """All subsets [2^D, D] of D coordinates, 1 where a coordinate is in; `ConfigError` for D above 12."""
    require(
        dim <= MOST_DIMENSIONS,
        f"dim is {dim}; the posterior mean of sparse tasks is a sum over 2^dim supports, for at most {MOST_DIMENSIONS}",
    )
    return (np.arange(2**dim)[:, None] >> np.arange(dim) & 1).astype(float)


def lasso(batch: Batch, penalty: float | Array) -> Array:
    """Predictions [B] of the lasso: w.x_query, w least in |y - X w|^2 / (2 N) + penalty |w|_1. Tibshirani 1996."""
    return jnp.einsum("bd,bd->b", lasso_weights(batch, penalty), batch.x_query)


def lasso_weights(batch: Batch, penalty: float | Array) -> Array:
    """The weights [B, D] of the lasso, by 200 sweeps of coordinate descent from 0 (Friedman et al. 2010).

    w_d <- soft(X_d.(y - X w) / N + S_dd w_d, penalty) / S_dd, S = X'X / N. A coordinate whose inputs are all 0 stays 0.
    """
    pairs, dim = batch.x.shape[1:]
    gram = jnp.einsum("bnd,bne->bde", batch.x, batch.x) / pairs
    moment = jnp.einsum("bnd,bn->bd", batch.x, batch.y) / pairs

    def step(d: int | Array, w: Array) -> Array:
        curvature = gram[:, d, d]
        without = moment[:, d] - jnp.einsum("be,be->b", gram[:, d], w) + curvature * w[:, d]
        shrunk = jnp.sign(without) * jnp.maximum(jnp.abs(without) - penalty, 0)
        after: Array = w.at[:, d].set(jnp.where(curvature > 0, shrunk / jnp.where(curvature > 0, curvature, 1), 0))
        return after

    def sweep(_: int | Array, w: Array) -> Array:
        after: Array = lax.fori_loop(0, dim, step, w)
        return after

    weights: Array = lax.fori_loop(0, SWEEPS, sweep, jnp.zeros_like(moment))
    return weights


def fitted_lasso(batch: Batch) -> Partial:
    """The lasso, batch in, predictions [B] out, with the penalty of least mean squared error on these tasks.

    From .0001 to 10 times the root mean square of their labels; they should be other tasks than those it is used on.
    """
    from scipy.optimize import minimize_scalar  # here, as it takes a while to import

    size = float(jnp.sqrt(jnp.mean(batch.y**2)))
    in_range("the size of the labels", size, 0, open_low=True)
    low, high = (math.log(bound * size) for bound in PENALTIES)
    minimum = minimize_scalar(lambda log: float(_error(math.exp(log), batch)), bounds=(low, high), method="bounded")
    return Partial(partial(lasso), penalty=jnp.asarray(math.exp(minimum.x), batch.x.dtype))


@jax.jit
def _error(penalty: float, batch: Batch) -> Array:
    return jnp.mean((lasso(batch, penalty) - batch.y_query) ** 2)
