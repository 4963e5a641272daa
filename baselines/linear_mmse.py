"""The best linear predictors on a context: ridge regression, and what it becomes where pairs are corrupted.

`LINEAR_MMSE` has the predictor of each noise mode that has one; of others it is not defined.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.baselines.registry import Contexts, check_clean
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.config import ContextConfig
from icl_lab.src.covariance import fixed_eigenvalues
from icl_lab.src.data import TASK_POWERS
from icl_lab.src.data_config import DataConfig, LinearData
from icl_lab.src.registries import NOISE_MODES
from icl_lab.src.registry import Functions


def ridge(batch: Batch, penalty: float) -> Array:
    """Predictions [B] of ridge regression: x_query . X^T (X X^T + penalty I)^-1 y, X [N, D] the context's inputs.

    penalty = 0 is the least-norm solution of the least-squares problem; there the inverse is a pseudo-inverse.
    """
    if penalty == 0:  # of X itself: its Gram matrix has the squared condition number, too much for float32
        return jnp.einsum("bdn,bn,bd->b", jnp.linalg.pinv(batch.x), batch.y, batch.x_query)
    return dual_ridge(batch, penalty)


def dual_ridge(batch: Batch, penalty: float | Array) -> Array:
    """`ridge` for a penalty above 0, which may be traced."""
    return jnp.einsum("bn,bnd,bd->b", _dual(batch, penalty), batch.x, batch.x_query)


def primal_ridge(batch: Batch, penalty: float) -> Array:
    """`ridge` for a penalty above 0 on many pairs: x_query . (X^T X + penalty I)^-1 X^T y, in D x D."""
    scatter = jnp.einsum("bnd,bne->bde", batch.x, batch.x)
    eye = jnp.broadcast_to(jnp.eye(scatter.shape[-1], dtype=scatter.dtype), scatter.shape)
    moment = jnp.einsum("bn,bnd->bd", batch.y, batch.x)
    weights = jnp.linalg.solve(scatter + penalty * eye, moment[:, :, None])[:, :, 0]
    return jnp.einsum("bd,bd->b", weights, batch.x_query)


def ridge_weights(batch: Batch, penalty: float) -> Array:
    """The weights [B, D] of ridge regression, whose predictions are `ridge`; penalty 0 as there."""
    weights: Array
    if penalty == 0:
        weights = jnp.einsum("bdn,bn->bd", jnp.linalg.pinv(batch.x), batch.y)
        return weights
    weights = jnp.einsum("bn,bnd->bd", _dual(batch, penalty), batch.x)
    return weights


def _dual(batch: Batch, penalty: float | Array) -> Array:
    """(X X^T + penalty I)^-1 y [B, N]."""
    gram = jnp.einsum("bid,bjd->bij", batch.x, batch.x)
    eye = jnp.broadcast_to(jnp.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)
    dual: Array = jnp.linalg.solve(gram + penalty * eye, batch.y[:, :, None])[:, :, 0]
    return dual


def bayes_penalty(data: LinearData) -> float:
    """The penalty at which ridge is the posterior mean for Gaussian w = N(0, s^2 I): noise_std^2 / s^2.

    s^2 is the mean variance of a task's coordinate, before any task covariance; with one, use `gaussian_posterior`.
    """
    return data.noise_std**2 / data.mean_task_variance


def gaussian_posterior(batch: Batch, config: Contexts) -> Array:
    """The posterior mean under tasks N(m 1, W) and the config's noise: m 1 + W X^T (X W X^T + s^2 I)^-1 (y - m X 1).

    Of tasks that are not Gaussian the best predictor that is linear in the labels. `ConfigError` where labels are not
    linear, where W differs between contexts, and where the run trains or is tested on corrupted pairs.
    """
    data = config.data
    check_clean(config)
    require(
        data.teacher == "linear", f"the posterior is defined only for linear labels, and the teacher is {data.teacher}"
    )
    eigenvalues, power = fixed_eigenvalues(data), TASK_POWERS[data.task_covariance]
    shared = power == 0 or (eigenvalues is not None and data.axes == "coordinates")
    require(shared, "the posterior is defined only for tasks that have the same covariance in all contexts")
    deviations = np.ones(data.dim) if power == 0 or eigenvalues is None else eigenvalues**power
    scale = jnp.asarray(deviations, batch.x.dtype)
    white = batch._replace(
        x=batch.x * scale[None, None],
        x_query=batch.x_query * scale[None],
        y=batch.y - data.task_mean * jnp.sum(batch.x, axis=2),
    )
    mean = data.task_mean * jnp.sum(batch.x_query, axis=1)
    return ridge(white, data.noise_std**2 / data.mean_task_variance) + mean


def posterior_noise(config: Contexts) -> float:
    """The noise variance of linear labels; `ConfigError` without noise, and for other labels or tasks."""
    check_clean(config)
    data = config.data
    plain = data.teacher == "linear" and data.task_covariance == "isotropic" and data.task_mean == 0
    require(plain, "the posterior is defined only for linear labels, task_mean 0 and task_covariance isotropic")
    require(data.noise_std > 0, "noise_std is 0; the posterior is defined only for labels with noise")
    return data.noise_std**2


def partly_agreeing(batch: Batch, data: DataConfig, agreement: float) -> Array:
    """Predictions [B] of the best linear predictor where corruption leaves each label's variance and shrinks the rest.

    Each label agrees on w by a = `agreement` and two of them by a^2: with K = X X^T and s = weight_scale

        E[w y^T] = a s^2 X^T,   E[y y^T] = s^2 (a^2 K + (1 - a^2) diag K) + noise_std^2 I,
        w = a X^T (a^2 K + (1 - a^2) diag K + (noise_std / s)^2 I)^-1 y

    a = 1 is `ridge`, a = -1 that of the labels' negatives, a = 0 is 0.
    """
    if agreement**2 == 1:  # without noise K may have no inverse
        return agreement * ridge(batch, bayes_penalty(data))
    gram = jnp.einsum("bid,bjd->bij", batch.x, batch.x)
    eye = jnp.broadcast_to(jnp.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)
    covariance = agreement**2 * gram + (1 - agreement**2) * gram * eye + bayes_penalty(data) * eye
    dual = jnp.linalg.solve(covariance, batch.y[:, :, None])[:, :, 0]
    return agreement * jnp.einsum("bn,bnd,bd->b", dual, batch.x, batch.x_query)


def _label_noise(batch: Batch, data: DataConfig, context: ContextConfig) -> Array:
    """E[y y^T] = s^2 K + (noise_std^2 + p sigma^2) I: a ridge, w = X^T (K + (nu + p sigma^2 / s^2) I)^-1 y."""
    return ridge(batch, bayes_penalty(data) + context.noise_p * context.noise_sigma**2 / data.task_variance)


def _random_pairs(batch: Batch, data: DataConfig, context: ContextConfig) -> Array:
    """A pair agrees on w where it is not hit, 1 - p, two of them where neither is, (1 - p)^2."""
    return partly_agreeing(batch, data, 1 - context.noise_p)


# noise mode -> the best predictor that is linear in the labels, for contexts where some pairs are hit
LINEAR_MMSE: Functions[Callable[[Batch, DataConfig, ContextConfig], Array]] = Functions(
    NOISE_MODES, "linear_mmse", {"label_noise": _label_noise, "random_pairs": _random_pairs}
)


def linear_mmse(batch: Batch, data: DataConfig, context: ContextConfig) -> Array:
    """Predictions [B] of least expected squared error among those linear in the labels, on corrupted contexts.

    Knows the corruption, its p and sigma, and the distribution of tasks; not which pairs were hit. It is
    w = E[w y^T] E[y y^T]^-1 y given the inputs X [N, D], whose distribution hits leave alone. With s = weight_scale,
    nu = noise_std^2 / s^2, K = X X^T:

        label noise    w = X^T (K + (nu + p sigma^2 / s^2) I)^-1 y, a ridge
        random pairs   w = (1 - p) X^T ((1 - p)^2 K + (1 - (1 - p)^2) diag K + nu I)^-1 y

    p = 0 is `ridge` at `bayes_penalty`, with no noise at all least squares of least norm; p = 1 is a ridge for label
    noise and 0 for random pairs. At p = 0 and p = 1 these are posterior means. Order and placement do not matter.
    `ConfigError` for distractor labels, and for a noise mode that `LINEAR_MMSE` does not have.
    """
    require(data.num_distractors == 0, "the linear MMSE predictor is not defined for distractor labels")
    require(
        data.equal_tasks, "the linear MMSE predictor is defined only for linear labels and isotropic tasks of mean 0"
    )
    if context.hit_rate == 0:
        return ridge(batch, bayes_penalty(data))
    require(
        context.noise_mode in LINEAR_MMSE,
        f"the noise mode {context.noise_mode!r} is registered without its linear_mmse",
    )
    return LINEAR_MMSE[context.noise_mode](batch, data, context)
