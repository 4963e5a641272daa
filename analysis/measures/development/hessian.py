"""The Hessian of the loss: its trace by Hutchinson's estimator, with a standard error, and its largest eigenvalue.

The loss is the model's own, half the mean squared error of a regression: published values of the mean squared error's
Hessian are twice these.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from icl_lab.analysis.measures.curvature import largest_eigenvalue
from icl_lab.src.checks import require
from icl_lab.src.model import Batch, Model, Params
from icl_lab.src.prng import key
from icl_lab.src.statistics import mean_and_error


def check_probes(probes: int) -> None:
    """`ConfigError` for fewer than two probes, which have no standard error."""
    require(probes >= 2, f"probes is {probes}; it must be 2 or more, for the trace has a standard error")


def probes_of(seed: int, probes: int, size: int) -> Array:
    """Rademacher probes [P, size], entries +1 and -1: the same for all checkpoints, whose errors then go together."""
    return jax.random.rademacher(key(seed), (probes, size), jnp.float32)


@partial(jax.jit, static_argnums=0)
def quadratic_forms(model: Model, params: Params, tasks: Batch, probes: Array) -> Array:
    """v.H v [P] for each probe v, H the Hessian of the mean loss in all parameters."""
    weights, restore = ravel_pytree(params)

    def loss(flat: Array) -> Array:
        return jnp.mean(model.losses(restore(flat), tasks))

    _, product = jax.linearize(jax.grad(loss), weights)
    forms: Array = lax.map(lambda probe: jnp.sum(probe * product(probe)), probes.astype(weights.dtype))
    return forms


def hessian(model: Model, params: Params, tasks: Batch, probes: Array) -> dict[str, float]:
    """hessian_trace = mean over Rademacher probes of v.H v, whose mean is tr H, its standard error, and hessian_top.

    Hutchinson 1990; the largest eigenvalue is Lanczos's, of `analysis.measures.curvature`.
    """
    forms = np.asarray(quadratic_forms(model, params, tasks, probes), np.float64)
    trace, error = mean_and_error(forms)
    return {
        "hessian_trace": trace,
        "hessian_trace_se": error,
        "hessian_top": largest_eigenvalue(model, params, tasks),
    }
