"""Classifiers of a context's labels, 1 and -1, and what knows the languages that labels are of.

Logistic regression, the nearest neighbour, the majority; ridge regression with a Gaussian prior fitted to the weights
of the training tasks; the posterior over a list of languages.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.baselines.iterations import iterate
from icl_lab.src.batch import Batch

NEWTON_STEPS = 12  # in full, which suffice but for small penalties
TOLERANCE = 1e-3  # of the error of w.x, which is one of 2 p - 1 of half as much
MOST, SIZES = 200, 0.5 ** np.arange(16)  # of damped steps


class Logistic(NamedTuple):
    """Logistic regression of B contexts in their pairs, w = X^T a: K = X X^T [B, N, N], y [B, N], the penalty.

    No p (1 - p) counts as less than `least`.
    """

    gram: Array
    y: Array
    penalty: float | Array
    least: float

    def fitted(self, dual: Array) -> Array:
        """f = K a [B, N]."""
        return jnp.einsum("bij,bj->bi", self.gram, dual)

    def objective(self, dual: Array) -> Array:
        """sum_i log(1 + exp(-y_i f_i)) + penalty a.f / 2 [B]."""
        fitted = self.fitted(dual)
        return jnp.sum(jax.nn.softplus(-self.y * fitted) + 0.5 * self.penalty * dual * fitted, axis=1)

    def error(self, dual: Array) -> Array:
        """|X^T (penalty a - g)| max_i |x_i| / penalty [B], g = y sigmoid(-y f): a bound of the error of w.x.

        For all x as long as the context's inputs, as the penalty bounds the objective's curvature in w from below.
        """
        left = self.penalty * dual - self.y * jax.nn.sigmoid(-self.y * self.fitted(dual))
        square = jnp.einsum("bi,bij,bj->b", left, self.gram, left)
        return jnp.sqrt(jnp.maximum(square * jnp.max(jnp.einsum("bii->bi", self.gram), axis=1), 0)) / self.penalty

    def newton(self, dual: Array) -> Array:
        """a <- (K + penalty H^-1)^-1 (K a + H^-1 g), H = diag p (1 - p), g = y sigmoid(-y f)."""
        fitted = self.fitted(dual)
        chance = jax.nn.sigmoid(fitted)
        curvature = jnp.maximum(chance * (1 - chance), self.least)
        gradient = self.y * jax.nn.sigmoid(-self.y * fitted)
        inverse = self.penalty / curvature
        target = fitted + gradient / curvature
        eye = jnp.broadcast_to(jnp.eye(self.gram.shape[-1], dtype=self.gram.dtype), self.gram.shape)
        solved: Array = jnp.linalg.solve(self.gram + inverse[:, :, None] * eye, target[:, :, None])[:, :, 0]
        return solved

    def damped(self, dual: Array) -> Array:
        """Newton's step or the share of it, a power of 1/2, after which the objective is least."""
        step = self.newton(dual) - dual
        sizes = jnp.asarray(SIZES, dual.dtype)
        values = jax.vmap(lambda size: self.objective(dual + size * step))(sizes)
        is_best = values == jnp.min(values, axis=0, keepdims=True)
        return dual + jnp.max(jnp.where(is_best, sizes[:, None], 0), axis=0)[:, None] * step


def logistic_regression(batch: Batch, penalty: float | Array) -> Array:
    """2 p - 1 [B], p the probability of the label 1: w minimises sum_i log(1 + exp(-y_i w.x_i)) + penalty |w|^2 / 2.

    By Newton's method in the context's pairs (w = X^T a), which needs a penalty above 0. No intercept, as elsewhere. A
    context that twelve full steps leave unsolved starts anew with damped ones in float64; nan if they don't solve it.
    """
    problem = Logistic(jnp.einsum("bid,bjd->bij", batch.x, batch.x), jnp.asarray(batch.y), penalty, 1e-5)
    dual = jax.lax.fori_loop(0, NEWTON_STEPS, lambda _, dual: problem.newton(dual), jnp.zeros_like(problem.y))
    solved = problem.error(dual) <= TOLERANCE
    dual = jnp.where(solved[:, None], dual, _damped(batch, penalty, solved).astype(dual.dtype))
    weights = jnp.einsum("bn,bnd->bd", dual, batch.x)
    return 2 * jax.nn.sigmoid(jnp.einsum("bd,bd->b", weights, batch.x_query)) - 1


def _damped(batch: Batch, penalty: float | Array, solved: Array) -> Array:
    """a [B, N] of the contexts that are not solved, nan where it is not found; 0 of the others."""
    with jax.enable_x64(True):
        x, y, strength = (jnp.asarray(part, jnp.float64) for part in (batch.x, batch.y, penalty))
        problem = Logistic(jnp.einsum("bid,bjd->bij", x, x), y, strength, 1e-12)
        left = lambda dual: jnp.where(solved, 0, problem.error(dual))  # noqa: E731
        return iterate(problem.damped, left, jnp.zeros_like(y), TOLERANCE, MOST).or_nan


def nearest_neighbour(batch: Batch) -> Array:
    """The label [B] of the context's input that is nearest to the query; the first of several."""
    distances = jnp.sum((batch.x - batch.x_query[:, None]) ** 2, axis=2)
    nearest = jnp.argmin(distances, axis=1)
    return jnp.take_along_axis(batch.y, nearest[:, None], axis=1)[:, 0]


def majority(batch: Batch) -> Array:
    """The mean label [B]."""
    return jnp.mean(batch.y, axis=1)


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


TASKS_AT_ONCE = 1024  # in memory


def version_space(members: np.ndarray, strings: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Predictions [B]: the mean label of the query over the languages that fit the context best.

    members [M, S] says which language has which string; strings [B, N + 1] are rows of it, the query last; y [B, N].
    Where no language agrees with all labels, as for one that is not in the list, those with the fewest errors count.
    """
    labels = np.where(members, 1, -1).astype(np.int8)
    predictions = np.empty(len(y))
    for start in range(0, len(y), TASKS_AT_ONCE):
        part = slice(start, start + TASKS_AT_ONCE)
        seen = labels[:, strings[part, :-1]]  # [M, b, N]
        wrong = (seen != y[None, part]).sum(axis=2)
        best = wrong == wrong.min(axis=0, keepdims=True)
        asked = labels[:, strings[part, -1]].astype(float)
        predictions[part] = (best * asked).sum(axis=0) / best.sum(axis=0)
    return predictions


def any_language(members: np.ndarray, strings: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """Predictions [B] without context, whose labels it does not use: 1 where any language has the query, else -1."""
    return np.where(members[:, strings[:, -1]].any(axis=0), 1.0, -1.0)
