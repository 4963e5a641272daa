"""The exact posterior of tasks that are `mixture` (`src.tasks`): four Gaussians of one width about ±e_1 and ±e_2.

With centres mu_k, prior variance tau^2 about each, noise variance sigma^2 and labels y = X w + noise,

    p_k ~ N(y; X mu_k, tau^2 X X' + sigma^2 I),   m_k = mu_k + tau^2 X' (tau^2 X X' + sigma^2 I)^-1 (y - X mu_k),

and the posterior mean is sum_k p_k m_k. As the covariance is the same for all k, p_k follows from the exponents alone,

    -log p_k = |y - X m_k|^2 / (2 sigma^2) + |m_k - mu_k|^2 / (2 tau^2) + const,

sums of squares at a minimum: rounding in m_k is of second order in them. Lin and Lee 2024, arXiv 2402.18819.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.baselines import bayes
from icl_lab.baselines.linear_mmse import posterior_noise, ridge_weights
from icl_lab.baselines.registry import Contexts
from icl_lab.src.batch import Batch
from icl_lab.src.checks import in_range, require
from icl_lab.src.tasks import MIXTURE_STD, centres


class Posterior(NamedTuple):
    """Of B contexts: the probability [B, M] of each component, and the mean [B, M, D] of the task under it."""

    probabilities: Array
    means: Array


def posterior(batch: Batch, means: Array, variance: float, noise_variance: float) -> Posterior:
    """The posterior for w ~ (1/M) sum_k N(mu_k, tau^2 I), mu in means [M, D], tau^2 = `variance`.

    M = 1 at mu = 0 is ridge regression of penalty sigma^2 / tau^2. `ConfigError` unless both variances are above 0.
    """
    in_range("variance", variance, 0, open_low=True)
    in_range("noise_variance", noise_variance, 0, open_low=True)
    shape, dim = jnp.shape(means), batch.x.shape[-1]
    fits = len(shape) == 2 and shape[0] >= 1 and shape[1] == dim
    require(fits, f"means has shape {shape}; it must be [M, {dim}], M at least 1, as the inputs have {dim} dimensions")

    def of_component(centre: Array) -> tuple[Array, Array]:
        residual = batch.y - jnp.einsum("bnd,d->bn", batch.x, centre)
        moved = ridge_weights(batch._replace(y=residual), noise_variance / variance)
        left = residual - jnp.einsum("bnd,bd->bn", batch.x, moved)
        exponent = jnp.sum(left**2, axis=1) / noise_variance + jnp.sum(moved**2, axis=1) / variance
        return -0.5 * exponent, centre[None, :] + moved

    logits, of_each = jax.vmap(of_component, out_axes=1)(jnp.asarray(means, batch.x.dtype))
    return Posterior(jax.nn.softmax(logits, axis=1), of_each)


def predict(batch: Batch, noise_variance: float, weight_scale: float) -> Array:
    """Predictions [B] of the posterior mean for w = weight_scale times a draw of `mixture`: sum_k p_k m_k.x_query.

    x [B, N, D], y [B, N], x_query [B, D]; `ConfigError` as `posterior`.
    """
    in_range("weight_scale", weight_scale, 0, open_low=True)
    components = posterior(batch, *prior(batch.x.shape[-1], weight_scale), noise_variance)
    return jnp.einsum("bk,bkd,bd->b", components.probabilities, components.means, batch.x_query)


def mixture_posterior(batch: Batch, config: Contexts) -> Array:
    """The posterior mean under tasks of the distribution `mixture`, whatever the run's are.

    `ConfigError` without label noise, and where labels are not linear or tasks have a mean or a covariance besides.
    """
    return predict(batch, posterior_noise(config), config.data.weight_scale)


def predict_sequence(batch: Batch, noise_variance: float, weight_scale: float) -> Array:
    """The same of every prefix of a sequence [B, K]: prediction k knows pairs 1 to k - 1."""
    means, variance = prior(batch.x.shape[-1], weight_scale)
    return bayes.smoothed_dmmse(batch, means, noise_variance, variance**0.5)


def prior(dim: int, weight_scale: float) -> tuple[Array, float]:
    """The centres [4, D] of the components, and their variance."""
    return weight_scale * centres(dim), (weight_scale * MIXTURE_STD) ** 2
