"""Ends of the spectrum of a loss's Hessian at given parameters, by Lanczos on Hessian-vector products."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from icl_lab.src.model import Batch, Model, Params

TOLERANCE = 1e-2  # relative, of the largest eigenvalue: a step size needs no more digits
SMALL = 3  # parameters: too few for Lanczos


def largest_eigenvalue(model: Model, params: Params, tasks: Batch, mask: Params | None = None) -> float:
    """The largest eigenvalue of the mean loss's Hessian, of the parameters that the mask lets move."""
    return _ends(model, params, tasks, mask, ("LA",))[0]


def eigenvalue_ends(model: Model, params: Params, tasks: Batch, mask: Params | None = None) -> tuple[float, float]:
    """The smallest and the largest eigenvalue."""
    low, high = _ends(model, params, tasks, mask, ("SA", "LA"))
    return low, high


def _ends(model: Model, params: Params, tasks: Batch, mask: Params | None, which: tuple[str, ...]) -> list[float]:
    from scipy.sparse.linalg import LinearOperator, eigsh

    weights = ravel_pytree(params)[0]
    moves = np.flatnonzero(np.ones(len(weights)) if mask is None else np.asarray(ravel_pytree(mask)[0]))
    size = len(moves)

    def product(vector: np.ndarray) -> np.ndarray:
        whole = np.zeros(len(weights), weights.dtype)
        whole[moves] = vector.ravel()
        return np.asarray(_hessian_times(model, params, tasks, whole), np.float64)[moves]

    if size <= SMALL:
        spectrum = np.linalg.eigvalsh(np.stack([product(unit) for unit in np.eye(size)]))
        return [float(spectrum[0 if end == "SA" else -1]) for end in which]
    operator, start = LinearOperator((size, size), product, dtype=np.float64), np.ones(size)
    eigenvalues = (eigsh(operator, 1, which=end, v0=start, tol=TOLERANCE, return_eigenvectors=False) for end in which)
    return [float(values[0]) for values in eigenvalues]


def _product(model: Model, params: Params, tasks: Batch, vector: Array) -> Array:
    weights, restore = ravel_pytree(params)

    def loss(flat: Array) -> Array:
        return jnp.mean(model.losses(restore(flat), tasks))

    product: Array = jax.jvp(jax.grad(loss), (weights,), (vector,))[1]
    return product


_hessian_times = jax.jit(_product, static_argnums=0)
