"""Covariances of inputs and of tasks: a spectrum, and the axes that it stands on in each context.

In the basis of its axes a context's covariance is L = diag(l_1, ..., l_D), and a task's is a function of it. Inputs are
x = U L^(1/2) z with z of the input distribution; U is the identity, or Haar-distributed anew for each context.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.checks import named
from icl_lab.src.data_config import SPECTRA, DataConfig
from icl_lab.src.prng import Purpose, purpose_key


class Covariance(NamedTuple):
    """Covariances of B contexts: eigenvalues [B, D] and axes [B, D, D], one a column; None for the coordinates."""

    eigenvalues: Array
    axes: Array | None

    def times_power(self, power: float, z: Array) -> Array:
        """U L^power z for each z [B, N, D] or [B, D]: coordinates z along the axes, scaled."""
        scales = self.eigenvalues**power
        scaled = z * (scales[:, None, :] if z.ndim == 3 else scales)
        if self.axes is None:
            return scaled
        turned: Array = jnp.einsum("bij,b...j->b...i", self.axes, scaled)
        return turned


def isotropic(data: DataConfig) -> np.ndarray:
    """1, ..., 1."""
    return np.ones(data.dim)


def power_law(data: DataConfig) -> np.ndarray:
    """i^-exponent for i = 1, ..., D."""
    return np.arange(1, data.dim + 1, dtype=float) ** -data.spectrum_exponent


def log_spaced(data: DataConfig) -> np.ndarray:
    """From 1 down to 1 / condition_number, in equal ratios."""
    return np.geomspace(1, 1 / data.condition_number, data.dim)


def given(data: DataConfig) -> np.ndarray:
    """The config's eigenvalues."""
    return np.array(data.eigenvalues)


FIXED_SPECTRA: dict[str, Callable[[DataConfig], np.ndarray]] = named(
    [name for name in SPECTRA if name != "log_uniform"], globals()
)


def fixed_eigenvalues(data: DataConfig) -> np.ndarray | None:
    """The eigenvalues [D] that all contexts share; None where each draws its own."""
    make = FIXED_SPECTRA.get(data.spectrum)
    return None if make is None else make(data)


def sample_covariance(key: Array, data: DataConfig, batch_size: int) -> Covariance:
    """The covariances of B contexts. `log_uniform` eigenvalues are log-uniform on [1 / condition_number, 1]."""
    shape, fixed = (batch_size, data.dim), fixed_eigenvalues(data)
    if fixed is None:
        lowest = -math.log(data.condition_number)
        exponents = jax.random.uniform(purpose_key(key, Purpose.EIGENVALUES), shape, minval=lowest, maxval=0.0)
        eigenvalues = jnp.exp(exponents)
    else:
        eigenvalues = jnp.broadcast_to(jnp.asarray(fixed, jnp.result_type(float))[None], shape)
    axes = haar(purpose_key(key, Purpose.AXES), batch_size, data.dim) if data.axes == "rotated" else None
    return Covariance(eigenvalues, axes)


def haar(key: Array, count: int, dim: int) -> Array:
    """Haar-distributed orthogonal matrices [B, D, D]."""
    return orthonormal(jax.random.normal(key, (count, dim, dim)))


def orthonormal(z: Array) -> Array:
    """Orthonormal columns [B, N, D] that span those of z, N >= D, by Gram-Schmidt, each orthogonalised twice.

    Of Gaussian z they are uniform on the Stiefel manifold: Q of the QR factorisation with a positive diagonal of R
    (Mezzadri 2007). LAPACK's QR inside a compiled loop has been seen to hang on two CPU cores.
    """
    columns: list[Array] = []
    for place in range(z.shape[2]):
        column = z[:, :, place]
        for _ in range(2 * bool(columns)):
            basis = jnp.stack(columns, axis=2)
            shares = jnp.einsum("bnk,bn->bk", basis, column)
            column = column - jnp.einsum("bnk,bk->bn", basis, shares)
        columns.append(column / jnp.linalg.norm(column, axis=1, keepdims=True))
    return jnp.stack(columns, axis=2)
