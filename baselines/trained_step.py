"""One step of gradient descent whose size is the best for the contexts of a training.

y^ = 1/N sum_i y_i x_i^T A x_query. A = c I where the axes of the inputs are alike, else a diagonal. In closed form
(`baselines.preconditioned`) for linear labels, clean or with label noise, whose hits add p sigma^2 to the variance of a
label; elsewhere fitted on contexts of that training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from baselines import preconditioned
from baselines.comparison import cosine
from src.batch import Batch
from src.checks import ConfigError
from src.config import ContextConfig
from src.data_config import DataConfig

LABEL_NOISE = "label_noise"
ONE_STEP = ("loss", "zero_loss", "align_cos")  # what `losses` gives


def trained_step(data: DataConfig, context: ContextConfig, contexts: Callable[[], Batch]) -> np.ndarray:
    """The diagonal [D] of A that is best for these training contexts; `contexts` draws some where it must be fitted."""
    try:
        return closed_form(data, context)
    except ConfigError:
        return fitted(contexts(), preconditioned.axes_alike(data))


def closed_form(data: DataConfig, context: ContextConfig) -> np.ndarray:
    """The same in closed form; `ConfigError` where there is none: `baselines.preconditioned`, and other noise."""
    if context.hit_rate == 0:
        return preconditioned.preconditioner(data)
    if context.noise_mode != LABEL_NOISE:
        raise ConfigError(f"the closed form is of clean contexts and of label noise, not of {context.noise_mode}")
    variance = data.noise_std**2 + context.noise_p * context.noise_sigma**2
    return preconditioned.preconditioner(replace(data, noise_std=variance**0.5))


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
