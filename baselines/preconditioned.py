"""One preconditioned gradient step, in closed form: the optimum of one linear attention layer, and its loss.

One layer predicts y^ = 1/n sum_i y_i x_i^T A x_query. In the basis of the axes, where inputs have the covariance
L = diag(l) and tasks W = diag(w), the best A is diagonal. With S = X^T X / n,

    A = (E[S W S] + s^2/n L)^-1 L W,   E[S W S]_ii = w_i l_i^2 (1 + (k - 1)/n) + l_i sum_{j != i} w_j l_j / n,

k the kurtosis of a coordinate, 3 for Gaussian inputs, where it is ((1 + 1/n) W L + (tr W L + s^2)/n I)^-1 W; with an
exact covariance E[S W S] = L W L. Where the axes are drawn anew for each context, A = c I. Its loss on m pairs of
covariance L', tasks W', queries Q and noise s'^2, half the mean squared error with a noiseless query, is

    1/2 tr Q (A (E[S_m W' S_m] + s'^2/m L') A - 2 A L' W' + W').

Ahn et al. 2023, Theorem 1; Zhang, Frei and Bartlett 2023, Theorem 4.1; Mahankali, Hashimoto and Ma 2023, Theorems 1, 2.

`trained_step` is the best step for the contexts of a training: in closed form also under the built-in noise, elsewhere
fitted on contexts of that training. Label noise adds p sigma^2 to the variance of a label. Of random pairs a share
(1 - p) of the gradient agrees with the task, and (1 - p)^2 of the products of two different pairs:
E[(1/N sum_i y_i x_i)^2] loses (2p - p^2) (1 - 1/N) w l^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.baselines.comparison import cosine
from icl_lab.baselines.registry import Contexts, check_clean
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.config import ContextConfig
from icl_lab.src.covariance import fixed_eigenvalues
from icl_lab.src.data import TASK_POWERS
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import TASK_DISTRIBUTIONS


class Moments(NamedTuple):
    """What the loss of a preconditioned step depends on: means over contexts along each axis, [D], times the queries'.

    `first` is of S W, `second` of S W S + s^2/n S, `tasks` of W.
    """

    first: np.ndarray
    second: np.ndarray
    tasks: np.ndarray


def moments(data: DataConfig) -> Moments:
    """The moments of a run's data.

    `ConfigError` for labels that are not linear, distractor labels, tasks whose second moments are not known, and
    inputs without a variance or a fourth moment.
    """
    require(
        data.teacher == "linear", f"the closed form holds only for linear labels, and the teacher is {data.teacher}"
    )
    require(data.num_distractors == 0, "the closed form is not defined for distractor labels")
    require(
        TASK_DISTRIBUTIONS[data.task_distribution].uncorrelated,
        "the closed form holds only for tasks with uncorrelated coordinates of equal variance, not for "
        f"{data.task_distribution}",
    )
    eigenvalues = fixed_eigenvalues(data)
    return _of_drawn(data) if eigenvalues is None else _of_fixed(data, eigenvalues)


def preconditioner(data: DataConfig) -> np.ndarray:
    """The diagonal [D] of the best A: c for all where no axis differs from another on average."""
    return best_diagonal(moments(data), axes_alike(data))


def best_diagonal(axis_moments: Moments, alike: bool) -> np.ndarray:
    """The diagonal [D] of A of least loss; one number for all axes if they are alike."""
    if alike:
        axes = len(axis_moments.first)
        return np.full(axes, _best_scalar(axis_moments, np.ones(axes)))
    a: np.ndarray = axis_moments.first / axis_moments.second
    return a


def scaled(direction: np.ndarray, data: DataConfig) -> np.ndarray:
    """The best multiple [D] of a diagonal A, such as that of the identity (gradient descent) or of the inverse of L."""
    return _best_scalar(moments(data), direction) * direction


def loss(a: np.ndarray, data: DataConfig) -> float:
    """Half the mean squared error of a step with the diagonal A = diag(a) on a run's data, with noiseless queries.

    The data may differ from those that A is of: pairs, covariance, tasks, queries. `ConfigError` where the axes are
    drawn for each context and A is no multiple of the identity.
    """
    turned = data.axes == "rotated" and data.spectrum != "isotropic"
    require(
        not turned or bool(np.allclose(a, a[0])),
        f"axes is {data.axes}; this preconditioner's loss has a closed form only where contexts share their axes",
    )
    axis_moments = moments(data)
    return float(0.5 * np.sum(axis_moments.second * a**2 - 2 * axis_moments.first * a + axis_moments.tasks))


def predict(batch: Batch, a: np.ndarray | Array) -> Array:
    """Predictions [B]: y^ = 1/N sum_i y_i x_i^T diag(a) x_query."""
    scale = jnp.asarray(a, batch.x.dtype) / batch.x.shape[1]
    return jnp.einsum("bn,bnd,d,bd->b", batch.y, batch.x, scale, batch.x_query)


def preconditioned_gd(batch: Batch, config: Contexts) -> Array:
    """One preconditioned gradient step, the best of one linear attention layer.

    `ConfigError` where that has no closed form, and where the run trains or is tested on corrupted pairs.
    """
    check_clean(config)
    return predict(batch, preconditioner(config.data))


def axes_alike(data: DataConfig) -> bool:
    """Whether all axes are alike on average, so that A is a multiple of the identity."""
    return data.axes == "rotated" or data.spectrum in ("isotropic", "log_uniform")


def _best_scalar(axis_moments: Moments, direction: np.ndarray) -> float:
    return float(np.sum(axis_moments.first * direction) / np.sum(axis_moments.second * direction**2))


def _kurtosis_term(data: DataConfig) -> float:
    """(k - 1)/n, k the kurtosis of a coordinate: how far E[S_ii^2] is above l_i^2, over l_i^2; 0 of an exact one."""
    if data.exact_covariance:
        return 0.0
    return (data.coordinate_fourth_moment / data.coordinate_variance**2 - 1) / data.num_pairs


def _of_fixed(data: DataConfig, eigenvalues: np.ndarray) -> Moments:
    inputs = data.coordinate_variance * eigenvalues
    queries = inputs if data.query_covariance == "inputs" else np.full(data.dim, data.coordinate_variance)
    task_variances = data.mean_task_variance * eigenvalues ** (2 * TASK_POWERS[data.task_covariance])
    tasks = task_variances + data.task_mean**2
    signal = tasks * inputs
    others = 0.0 if data.exact_covariance else (signal.sum() - signal) / data.num_pairs
    noise = data.noise_std**2 / data.num_pairs
    second = inputs * (signal * (1 + _kurtosis_term(data)) + others + noise)
    return Moments(queries * signal, queries * second, queries * tasks)


def _of_drawn(data: DataConfig) -> Moments:
    """The same where each context draws its eigenvalues, log-uniform on [1 / condition_number, 1]."""

    def mean(power: float) -> float:  # of l^power
        width = math.log(data.condition_number)
        return 1.0 if power * width == 0 else -math.expm1(-power * width) / (power * width)

    v, n, scale = data.coordinate_variance, data.num_pairs, data.mean_task_variance
    q, t, shift = float(data.query_covariance == "inputs"), 2 * TASK_POWERS[data.task_covariance], data.task_mean**2

    def with_task(power: float) -> float:  # of l^power times a task's variance
        return scale * mean(power + t) + shift * mean(power)

    others = 0.0 if data.exact_covariance else (data.dim - 1) / n * mean(q + 1) * with_task(1.0)
    noise = data.noise_std**2 / n * mean(q + 1)
    second = v**3 * ((1 + _kurtosis_term(data)) * with_task(q + 2) + others) + v**2 * noise
    ones = np.ones(data.dim)
    return Moments(v**2 * with_task(q + 1) * ones, second * ones, v * with_task(q) * ones)


ONE_STEP = ("loss", "zero_loss", "align_cos")  # what `losses` gives


def trained_step(data: DataConfig, context: ContextConfig, contexts: Callable[[], Batch]) -> np.ndarray:
    """The diagonal [D] of A that is best for these training contexts; `contexts` draws some where it must be fitted."""
    try:
        return closed_form(data, context)
    except ConfigError:
        return fitted(contexts(), axes_alike(data))


def closed_form(data: DataConfig, context: ContextConfig) -> np.ndarray:
    """The same in closed form; `ConfigError` where there is none: `baselines.preconditioned`, and other noise."""
    p = context.hit_rate
    if p == 0:
        return preconditioner(data)
    if context.noise_mode not in CORRUPTED:
        raise ConfigError(
            f"the closed form holds only for {', '.join(CORRUPTED)} and clean contexts, not for {context.noise_mode}"
        )
    return best_diagonal(CORRUPTED[context.noise_mode](data, context), axes_alike(data))


def _label_noise(data: DataConfig, context: ContextConfig) -> Moments:
    variance = data.noise_std**2 + context.noise_p * context.noise_sigma**2
    return moments(replace(data, noise_std=variance**0.5))


def _random_pairs(data: DataConfig, context: ContextConfig) -> Moments:
    p, clean = context.noise_p, moments(data)
    lost = (2 * p - p**2) * (1 - 1 / data.num_pairs) * data.coordinate_variance * clean.first
    return clean._replace(first=(1 - p) * clean.first, second=clean.second - lost)


CORRUPTED = {"label_noise": _label_noise, "random_pairs": _random_pairs}


def fitted(batch: Batch, alike: bool) -> np.ndarray:
    """The diagonal [D] of least squared error on these tasks; one number for all axes if they are alike."""
    moment, scatter = (np.asarray(part, np.float64) for part in _normal_equations(batch))
    if alike:
        return np.full(len(moment), moment.sum() / scatter.sum())
    return np.linalg.lstsq(scatter, moment)[0]


@jax.jit
def _normal_equations(batch: Batch) -> tuple[Array, Array]:
    """E[f y] [D] and E[f f^T] [D, D] of the features f = 1/N sum_i y_i x_i * x_query, whose sum is a step of size 1."""
    features = jnp.einsum("bn,bnd,bd->bd", batch.y, batch.x, batch.x_query) / batch.x.shape[1]
    tasks = len(features)
    return jnp.einsum("bd,b->d", features, batch.y_query) / tasks, jnp.einsum("bd,be->de", features, features) / tasks


def losses(batch: Batch, a: np.ndarray) -> dict[str, float]:
    """Half the mean squared error of predicting zero and of the step, and its cosine of sensitivities with A = I."""
    errors = {
        name: np.asarray(values, np.float64) for name, values in _errors(batch, jnp.asarray(a, jnp.float32)).items()
    }
    return {name: float(values.mean()) for name, values in errors.items()}


@jax.jit
def _errors(batch: Batch, a: Array) -> dict[str, Array]:
    gradient = jnp.einsum("bn,bnd->bd", batch.y, batch.x)
    step = predict(batch, a)
    return {
        "zero_loss": 0.5 * batch.y_query**2,
        "loss": 0.5 * (step - batch.y_query) ** 2,
        "align_cos": cosine(gradient * a[None, :], gradient),
    }
