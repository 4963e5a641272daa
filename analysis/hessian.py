"""The Hessian of the loss at a model's parameters: its trace with a standard error, and its extreme eigenvalues.

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

from icl_lab.src.checks import require
from icl_lab.src.model import Batch, Model, Params
from icl_lab.src.prng import key
from icl_lab.src.statistics import mean_and_error

TOLERANCE = 1e-2  # relative, of the largest eigenvalue: a step size needs no more digits
SMALL = 3  # parameters: too few for Lanczos


def largest_eigenvalue(model: Model, params: Params, tasks: Batch) -> float:
    """The largest eigenvalue of the mean loss's Hessian."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    size = len(ravel_pytree(params)[0])

    def product(vector: np.ndarray) -> np.ndarray:
        return np.asarray(_hessian_times(model, params, tasks, vector.ravel()), np.float64)

    if size <= SMALL:
        return float(np.linalg.eigvalsh(np.stack([product(unit) for unit in np.eye(size)]))[-1])
    operator, start = LinearOperator((size, size), product, dtype=np.float64), np.ones(size)
    return float(eigsh(operator, 1, which="LA", v0=start, tol=TOLERANCE, return_eigenvectors=False)[0])


def _product(model: Model, params: Params, tasks: Batch, vector: Array) -> Array:
    weights, restore = ravel_pytree(params)
    vector = vector.astype(weights.dtype)

    def loss(flat: Array) -> Array:
        return jnp.mean(model.losses(restore(flat), tasks))

    product: Array = jax.jvp(jax.grad(loss), (weights,), (vector,))[1]
    return product


_hessian_times = jax.jit(_product, static_argnums=0)


def check_probes(probes: int) -> None:
    """`ConfigError` for fewer than two probes, which have no standard error."""
    require(probes >= 2, f"probes is {probes}; it must be 2 or more, because the trace has a standard error")


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

    Hutchinson 1990; the largest eigenvalue is Lanczos's, of `analysis.hessian`.
    """
    forms = np.asarray(quadratic_forms(model, params, tasks, probes), np.float64)
    trace, error = mean_and_error(forms)
    return {
        "hessian_trace": trace,
        "hessian_trace_se": error,
        "hessian_top": largest_eigenvalue(model, params, tasks),
    }
