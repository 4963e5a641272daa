"""The exact Bayes predictors of a sequence of noisy pairs: prediction k knows pairs 1 to k - 1 only, all k at once.

A sequence's pairs are its own queries: x = x_query [B, K, D] and y = y_query [B, K], of which only x and y are read.
Labels are y_k = w.x_k plus noise of variance sigma^2; the prior of w makes the predictor. A Gaussian makes ridge
regression, here a Kalman filter. Any other is a mixture, whose component i predicts f_ki with variance v_ki and is
weighted by its likelihood of the labels so far:

    y^_k = sum_i pi_ki f_ki,   pi_ki ~ exp(-1/2 sum_{j<k} [(y_j - f_ji)^2 / v_ji + log v_ji])

Shapes: B sequences of K pairs in D dimensions, in blocks of S; M tasks or samples, in chunks of C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from icl_lab.baselines.iterations import least_between
from icl_lab.src.batch import Batch
from icl_lab.src.checks import in_range, require

SEQUENCES, TASKS = 128, 512  # a block and a chunk: arrays of 256 KiB, which stay in a core's cache
SAMPLES = 64  # a chunk whose components carry a covariance
SMOOTHINGS = (1e-3, 1e1)  # where the best smoothing is sought, in the units of the tasks

Number = float | Array


class Pairs(NamedTuple):
    """Labels = inputs.w + noise: inputs [..., D]; labels and variances of the noise [...]."""

    inputs: Array
    labels: Array
    variances: Array


class Belief(NamedTuple):
    """A Gaussian belief about w: mean [D], and a root [D, D] of its covariance root root'."""

    mean: Array
    root: Array


class Moments(NamedTuple):
    """Of values f_i with weights exp(l_i): top = max l_i, sum_i exp(l_i - top), sum_i exp(l_i - top) f_i."""

    top: Array
    total: Array
    weighted: Array


Step = Callable[[Any, Pairs], tuple[Any, Array, Array]]  # state, pair [S] -> state, predictions and scores [C, S]
Family = Callable[[Array, int], tuple[Any, Step]]  # components [C, D], S -> the first state, what a pair does


def ridge(batch: Batch, penalty: Number) -> Array:
    """Predictions [B, K] of ridge regression: x_k.(X'X + penalty I)^-1 X'y with pairs 1 to k - 1; the first is 0.

    The posterior mean for w ~ N(0, s^2 I), at penalty = sigma^2 / s^2.
    """
    _positive("penalty", penalty)
    return _filtered(batch, penalty)[1]


def dmmse(batch: Batch, tasks: Array, noise_variance: Number) -> Array:
    """Predictions [B, K]: the posterior mean for w uniform on the rows w_i of tasks [M, D].

    f_ki = x_k.w_i, v_ki = sigma^2 = `noise_variance`; the first prediction is that of the mean task.
    """
    _check_pool(batch, tasks, noise_variance)
    x, y = jnp.asarray(batch.x), jnp.asarray(batch.y)
    return _posterior_mean(_points, tasks, Pairs(x, y, jnp.full_like(y, noise_variance)), TASKS)


def smoothed_dmmse(batch: Batch, tasks: Array, noise_variance: Number, smoothing: Number) -> Array:
    """Predictions [B, K]: the posterior mean for w ~ (1/M) sum_i N(w_i, e^2 I), w_i in tasks [M, D], e = `smoothing`.

    One Kalman filter, ridge at penalty sigma^2 / e^2, serves all i. With c_k its prediction and e^2 P_k its covariance,

        f_ki = c_k + (P_k x_k).w_i,   v_ki = e^2 x_k.P_k x_k + sigma^2,

    as of points w_i seen through other inputs. It tends to `dmmse` as e^2 -> 0; M = 1 at w = 0 is `ridge`.
    """
    _check_pool(batch, tasks, noise_variance)
    _positive("smoothing", smoothing)
    inputs, offsets = _filtered(batch, noise_variance / smoothing**2)
    variances = smoothing**2 * jnp.sum(inputs * batch.x, axis=-1) + noise_variance
    return offsets + _posterior_mean(_points, tasks, Pairs(inputs, batch.y - offsets, variances), TASKS)


def best_smoothing(batch: Batch, targets: Array, tasks: Array, noise_variance: float) -> float:
    """The smoothing, from .001 to 10, with the least mean squared error of `smoothed_dmmse` to targets [B, K]."""
    shape, labels = jnp.shape(targets), jnp.shape(batch.y)
    require(shape == labels, f"targets has shape {shape} and the labels {labels}; they must be the same")
    _check_pool(batch, tasks, noise_variance)

    def error(log: float) -> float:
        return float(_smoothing_error(math.exp(log), batch, targets, tasks, noise_variance))

    low, high = (math.log(bound) for bound in SMOOTHINGS)
    return math.exp(least_between(error, low, high))


@jax.jit
def _smoothing_error(smoothing: Number, batch: Batch, targets: Array, tasks: Array, noise_variance: Number) -> Array:
    return jnp.mean((smoothed_dmmse(batch, tasks, noise_variance, smoothing) - targets) ** 2)


def laplace_mean(batch: Batch, scale: Number, noise_variance: Number, key: Array, num_samples: int) -> Array:
    """Predictions [B, K]: the posterior mean for w of independent Laplace coordinates of standard deviation `scale`.

    A Laplace variable is a mixture of Gaussians, w_d ~ N(0, t_d) with t_d exponential of mean scale^2; given t the
    posterior is a Kalman filter's. The t are drawn from their prior, once for all sequences, and weighed as components
    are: importance sampling, whose error falls as num_samples^(-1/2).
    """
    _positive("scale", scale)
    _positive("noise_variance", noise_variance)
    require(num_samples >= 1, f"num_samples is {num_samples}; it must be at least 1")
    x, y = jnp.asarray(batch.x), jnp.asarray(batch.y)
    deviations = scale * jnp.sqrt(jax.random.exponential(key, (num_samples, x.shape[-1]), x.dtype))
    return _posterior_mean(_gaussians, deviations, Pairs(x, y, jnp.full_like(y, noise_variance)), SAMPLES)


def scale_mixture(batch: Batch, deviations: Array, priors: Array, noise_variance: Number) -> Array:
    """Predictions [B, K]: the posterior mean for w ~ sum_i pi_i N(0, diag(s_i^2)), s_i in deviations [M, D], 0 or more.

    pi = `priors` [M], above 0, need not sum to 1. One component of equal deviations is `ridge`.
    """
    _check_pool(batch, deviations, noise_variance)
    x, y = jnp.asarray(batch.x), jnp.asarray(batch.y)
    pairs = Pairs(x, y, jnp.full_like(y, noise_variance))
    return _posterior_mean(_gaussians, deviations, pairs, SAMPLES, jnp.log(jnp.asarray(priors, x.dtype)))


def as_sequence(batch: Batch) -> Batch:
    """Contexts [B, N, D] with a query as sequences of N + 1 pairs, whose last prediction is the query's.

    Its label, which no prediction knows, is 0.
    """
    x = jnp.concatenate([batch.x, batch.x_query[:, None]], axis=1)
    y = jnp.pad(batch.y, ((0, 0), (0, 1)))
    return Batch(x, y, x, y, batch.w)


def _observe(belief: Belief, x: Array, y: Array, variance: Number) -> tuple[Belief, Array, Array, Array]:
    """A step of a Kalman filter: the belief with y = x.w + noise; and without it Cov(w) x, and y's mean and variance.

    It is the covariance's root that is updated (Potter 1963): rounding can't make a variance negative.
    """
    mean, root = belief
    seen = jnp.sum(root * x[:, None], axis=0)
    gain = jnp.sum(root * seen[None, :], axis=1)
    prediction, total = jnp.sum(mean * x), jnp.sum(seen**2) + variance
    shrink = gain / (total + jnp.sqrt(total) * jnp.sqrt(variance))
    after = Belief(mean + gain * ((y - prediction) / total), root - shrink[:, None] * seen[None, :])
    return after, gain, prediction, total


def _filtered(batch: Batch, variance: Number) -> tuple[Array, Array]:
    """For w ~ N(0, I), given pairs 1 to k - 1 with noise of a variance: Cov(w) x_k [B, K, D] and E[w].x_k [B, K]."""
    x, y = jnp.asarray(batch.x), jnp.asarray(batch.y)
    prior = Belief(jnp.zeros(x.shape[-1], x.dtype), jnp.eye(x.shape[-1], dtype=x.dtype))

    def of_pair(belief: Belief, pair: tuple[Array, Array]) -> tuple[Belief, tuple[Array, Array]]:
        after, gain, prediction, _ = _observe(belief, *pair, variance)
        return after, (gain, prediction)

    return jax.vmap(lambda x, y: lax.scan(of_pair, prior, (x, y))[1])(x, y)


def _points(tasks: Array, _: int) -> tuple[Any, Step]:
    """The components w_i of tasks [C, D]: i predicts x.w_i, and is as sure as any other."""

    def step(state: Any, pair: Pairs) -> tuple[Any, Array, Array]:
        predictions = jnp.matmul(tasks, pair.inputs.T, precision="highest")
        halves = 0.5 / pair.variances
        return state, predictions, halves[None, :] * (pair.labels[None, :] - predictions) ** 2

    return (), step


def _gaussians(deviations: Array, sequences: int) -> tuple[Any, Step]:
    """The components N(0, diag(deviations_i^2)), deviations [C, D]: a Kalman filter for each, on every sequence."""
    of_component = jax.vmap(_observe, in_axes=(-1, 0, 0, 0), out_axes=-1)
    observe = jax.vmap(of_component, in_axes=(-2, None, None, None), out_axes=-2)

    def step(beliefs: Belief, pair: Pairs) -> tuple[Belief, Array, Array]:
        after, _, predictions, variances = observe(beliefs, *pair)
        surprises = (pair.labels[None, :] - predictions) ** 2 / variances
        return after, predictions, 0.5 * (surprises + jnp.log(variances / pair.variances[None, :]))

    size, dim = deviations.shape
    roots = deviations.T[:, None, :, None] * jnp.eye(dim, dtype=deviations.dtype)[:, :, None, None]
    means = jnp.zeros((dim, size, sequences), deviations.dtype)
    return Belief(means, jnp.broadcast_to(roots, (dim, *means.shape))), step


def _posterior_mean(
    family: Family, components: Array, pairs: Pairs, chunk: int, log_priors: Array | None = None
) -> Array:
    """The posterior mean [B, K] of the labels, under components [M, D] of a family; of equal priors if none are given.

    The logarithm of a sum of exponentials is kept over chunks: memory is a block's and a chunk's, whatever B and M are.
    """
    chunks = _in_parts(jnp.asarray(components, pairs.inputs.dtype), chunk)
    is_repeated = jnp.arange(chunks.shape[0] * chunks.shape[1]) >= len(components)
    priors = jnp.zeros(len(components), chunks.dtype) if log_priors is None else log_priors
    log_priors = jnp.where(is_repeated, -jnp.inf, _in_parts(priors, chunk).ravel()).reshape(chunks.shape[:2])

    def of_block(block: Pairs) -> Array:
        in_order = Pairs(*(jnp.moveaxis(part, 1, 0) for part in block))
        shape = in_order.labels.shape

        def add_chunk(moments: Moments, part: tuple[Array, Array]) -> tuple[Moments, None]:
            log_weights = jnp.broadcast_to(part[1][:, None], (len(part[1]), shape[1]))
            return _add(moments, log_weights, *family(part[0], shape[1]), in_order), None

        none = Moments(jnp.full(shape, -jnp.inf, chunks.dtype), *[jnp.zeros(shape, chunks.dtype)] * 2)
        moments, _ = lax.scan(add_chunk, none, (chunks, log_priors))
        return (moments.weighted / moments.total).T

    means: Array = lax.map(of_block, Pairs(*(_in_parts(part, SEQUENCES) for part in pairs)))
    return means.reshape(-1, means.shape[-1])[: len(pairs.labels)]


def _add(moments: Moments, log_weights: Array, state: Any, step: Step, pairs: Pairs) -> Moments:
    """The moments [K, S] with those of a chunk's predictions before each pair; log weights [C, S] at first."""

    def of_pair(carry: tuple[Array, Any], row: tuple[Moments, Pairs]) -> tuple[tuple[Array, Any], Moments]:
        (log_weights, state), (before, pair) = carry, row
        state, predictions, scores = step(state, pair)
        top = jnp.maximum(before.top, jnp.max(log_weights, axis=0))
        weights, kept = jnp.exp(log_weights - top[None, :]), jnp.exp(before.top - top)
        total = kept * before.total + jnp.sum(weights, axis=0)
        weighted = kept * before.weighted + jnp.sum(weights * predictions, axis=0)
        return (log_weights - scores, state), Moments(top, total, weighted)

    added: Moments = lax.scan(of_pair, (log_weights, state), (moments, pairs))[1]
    return added


def _in_parts(rows: Array, most: int) -> Array:
    """Rows [N, ...] as equal parts [P, n, ...], n <= most; where P n > N the last row repeats, in the last part."""
    parts = -(-len(rows) // most)
    size = -(-len(rows) // parts)
    return rows[jnp.minimum(jnp.arange(parts * size), len(rows) - 1)].reshape(parts, size, *rows.shape[1:])


def _check_pool(batch: Batch, tasks: Array, noise_variance: Number) -> None:
    shape, dim = jnp.shape(tasks), jnp.shape(batch.x)[-1]
    fits = len(shape) == 2 and shape[0] >= 1 and shape[1] == dim
    require(fits, f"tasks has shape {shape}; it must be [M, {dim}], M at least 1, as the inputs have {dim} dimensions")
    _positive("noise_variance", noise_variance)


def _positive(name: str, value: Number) -> None:
    if not isinstance(value, jax.core.Tracer):  # whose value is not known yet
        in_range(name, float(value), 0.0, open_low=True)
