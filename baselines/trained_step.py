"""One step of gradient descent whose size is the best for the contexts of a training.

y^ = 1/N sum_i y_i x_i^T A x_query. A = c I where the axes of the inputs are alike, else a diagonal. In closed form
(`baselines.preconditioned`) for linear labels in clean contexts and under the built-in noise; elsewhere fitted on
contexts of that training. Label noise adds p sigma^2 to the variance of a label. Of random pairs a share (1 - p) of the
gradient agrees with the task, and (1 - p)^2 of the products of two different pairs: E[(1/N sum_i y_i x_i)^2] loses
(2p - p^2) (1 - 1/N) w l^2 in the notation there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.baselines import preconditioned
from icl_lab.baselines.comparison import cosine
from icl_lab.baselines.preconditioned import Moments
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig
from icl_lab.src.data_config import DataConfig

ONE_STEP = ("loss", "zero_loss", "align_cos")  # what `losses` gives


def trained_step(data: DataConfig, context: ContextConfig, contexts: Callable[[], Batch]) -> np.ndarray:
    """The diagonal [D] of A that is best for these training contexts; `contexts` draws some where it must be fitted."""
    try:
        return closed_form(data, context)
    except ConfigError:
        return fitted(contexts(), preconditioned.axes_alike(data))


def closed_form(data: DataConfig, context: ContextConfig) -> np.ndarray:
    """The same in closed form; `ConfigError` where there is none: `baselines.preconditioned`, and other noise."""
    p = context.hit_rate
    if p == 0:
        return preconditioned.preconditioner(data)
    if context.noise_mode not in CORRUPTED:
        raise ConfigError(
            f"the closed form is of {', '.join(CORRUPTED)} and clean contexts, not of {context.noise_mode}"
        )
    return preconditioned.best_diagonal(CORRUPTED[context.noise_mode](data, context), preconditioned.axes_alike(data))


def _label_noise(data: DataConfig, context: ContextConfig) -> Moments:
    variance = data.noise_std**2 + context.noise_p * context.noise_sigma**2
    return preconditioned.moments(replace(data, noise_std=variance**0.5))


def _random_pairs(data: DataConfig, context: ContextConfig) -> Moments:
    p, clean = context.noise_p, preconditioned.moments(data)
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
    step = preconditioned.predict(batch, a)
    return {
        "zero_loss": 0.5 * batch.y_query**2,
        "loss": 0.5 * (step - batch.y_query) ** 2,
        "align_cos": cosine(gradient * a[None, :], gradient),
    }
