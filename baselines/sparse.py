"""Predictors for tasks that are `sparse` (`src.tasks`): the posterior mean of a spike and slab, and the lasso.

A coordinate is N(0, s^2 / p) with probability p, else 0. Given which coordinates are not 0 the prior is a Gaussian, so
the posterior is a mixture over the 2^D supports S, of prior p^|S| (1 - p)^(D - |S|). All are enumerated.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import Partial

from icl_lab.baselines import bayes
from icl_lab.baselines.iterations import iterate, least_between
from icl_lab.baselines.linear_mmse import posterior_noise
from icl_lab.baselines.registry import Contexts
from icl_lab.src.batch import Batch
from icl_lab.src.checks import in_range, require
from icl_lab.src.tasks import NONZERO

MOST_DIMENSIONS = 12  # 4096 supports
TOLERANCE, ROUNDS = 1e-9, 1000  # of the lasso, which takes about ten
JITTER = 1e-12  # of the mean of the Gram matrix's diagonal
PENALTIES = (1e-4, 1e1)  # among which the best is sought, over the standard deviation of labels


def predict(batch: Batch, noise_variance: float, weight_scale: float, probability: float = NONZERO) -> Array:
    """Predictions [B] of the posterior mean for w = weight_scale times a draw of `sparse`.

    x [B, N, D], y [B, N], x_query [B, D]. Probability 1 is ridge regression. `ConfigError` for D above 12, whose
    supports are too many, and unless noise_variance and weight_scale are above 0.
    """
    return predict_sequence(bayes.as_sequence(batch), noise_variance, weight_scale, probability)[:, -1]


def sparse_posterior(batch: Batch, config: Contexts) -> Array:
    """The posterior mean under tasks of the distribution `sparse`; errors as `mixture_posterior`."""
    return predict(batch, posterior_noise(config), config.data.weight_scale)


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


class Quadratic(NamedTuple):
    """The lasso of B contexts: w G w / 2 - m.w + penalty |w|_1, G = X'X / N [B, D, D] and m = X'y / N [B, D]."""

    gram: Array
    moment: Array
    penalty: Array

    def slope(self, w: Array) -> Array:
        """m - G w [B, D]: at most the penalty in size, and penalty sign(w) where w is not 0, at the minimum alone."""
        return self.moment - jnp.einsum("bde,be->bd", self.gram, w)


def lasso_weights(batch: Batch, penalty: float | Array) -> Array:
    """The weights [B, D] of the lasso by feature-sign search (Lee et al. 2007), with coordinate descent for new signs.

    In float64, as the smallest penalties are below what float32 resolves of X'y / N. They end where the conditions of
    the minimum hold up to 1e-9 of the largest |X'y / N|, which bounds the duality gap; a context that is not there
    after 1000 rounds has nan. A coordinate whose inputs are all 0 stays 0.
    """
    dtype = jnp.asarray(batch.x).dtype
    with jax.enable_x64(True):
        x, y, bound = (jnp.asarray(part, jnp.float64) for part in (batch.x, batch.y, penalty))
        problem = Quadratic(
            jnp.einsum("bnd,bne->bde", x, x) / x.shape[1], jnp.einsum("bnd,bn->bd", x, y) / x.shape[1], bound
        )
        largest = jnp.max(jnp.abs(problem.moment), axis=1)

        def residual(w: Array) -> Array:
            slope = problem.slope(w)
            off = jnp.where(w == 0, jnp.abs(slope) - bound, jnp.abs(slope - bound * jnp.sign(w)))
            return jnp.max(off, axis=1) / jnp.where(largest > 0, largest, 1)

        found = iterate(partial(_round, problem), residual, jnp.zeros_like(problem.moment), TOLERANCE, ROUNDS)
        weights: Array = found.or_nan.astype(dtype)
    return weights


def _round(problem: Quadratic, w: Array) -> Array:
    """A sweep over the coordinates, then the minimum among weights of the signs that it leaves, or of fewer."""

    def goes_on(state: tuple[Array, Array]) -> Array:
        return jnp.any(state[1])

    first = _same_signs(problem, _sweep(problem, w))
    after: Array = lax.while_loop(goes_on, lambda state: _same_signs(problem, state[0]), first)[0]
    return after


def _sweep(problem: Quadratic, w: Array) -> Array:
    """Coordinate descent, once: w_d <- soft((m - G w)_d + G_dd w_d, penalty) / G_dd. Friedman et al. 2010."""

    def step(d: int | Array, w: Array) -> Array:
        curvature = problem.gram[:, d, d]
        without = problem.moment[:, d] - jnp.einsum("be,be->b", problem.gram[:, d], w) + curvature * w[:, d]
        shrunk = jnp.sign(without) * jnp.maximum(jnp.abs(without) - problem.penalty, 0)
        moved: Array = w.at[:, d].set(jnp.where(curvature > 0, shrunk / jnp.where(curvature > 0, curvature, 1), 0))
        return moved

    after: Array = lax.fori_loop(0, w.shape[1], step, w)
    return after


def _same_signs(problem: Quadratic, w: Array) -> tuple[Array, Array]:
    """Towards the minimum of the quadratic that the lasso is while no sign changes, and whether [B] one stopped it.

    A coordinate that would change its sign becomes 0, where it stops. More coordinates than pairs have no one minimum:
    a jitter lets them move until one is 0.
    """
    on = w != 0
    downhill = jnp.where(on, problem.slope(w) - problem.penalty * jnp.sign(w), 0)
    diagonal = jnp.where(on, JITTER * jnp.mean(jnp.einsum("bdd->bd", problem.gram), axis=1, keepdims=True), 1)
    eye = jnp.eye(w.shape[1], dtype=w.dtype)[None]
    system = jnp.where(on[:, :, None] & on[:, None, :], problem.gram, 0) + diagonal[:, :, None] * eye
    direction = jnp.where(on, jnp.linalg.solve(system, downhill[:, :, None])[:, :, 0], 0)
    curvature = jnp.einsum("bd,bde,be->b", direction, problem.gram, direction)
    best = jnp.where(curvature > 0, jnp.sum(downhill * direction, axis=1) / jnp.where(curvature > 0, curvature, 1), 1)
    crosses = (w * direction < 0) & (problem.penalty > 0)  # without a penalty signs are free
    at_zero = jnp.where(crosses, -w / jnp.where(direction == 0, 1, direction), jnp.inf)
    size = jnp.minimum(best, jnp.min(at_zero, axis=1))[:, None]
    return jnp.where(at_zero <= size, 0, w + size * direction), jnp.any(at_zero <= size, axis=1)


def fitted_lasso(batch: Batch) -> Partial:
    """The lasso, batch in, predictions [B] out, with the penalty of least mean squared error on these tasks.

    From .0001 to 10 times the root mean square of their labels; they should be other tasks than those it is used on.
    """
    size = float(jnp.sqrt(jnp.mean(batch.y**2)))
    in_range("the size of the labels", size, 0, open_low=True)
    low, high = (math.log(bound * size) for bound in PENALTIES)
    best = least_between(lambda log: float(_error(math.exp(log), batch)), low, high)
    return Partial(partial(lasso), penalty=jnp.asarray(math.exp(best), batch.x.dtype))


@jax.jit
def _error(penalty: float, batch: Batch) -> Array:
    return jnp.mean((lasso(batch, penalty) - batch.y_query) ** 2)
