"""Why GD++ helps: what one of its steps does to the spectrum of a context's scatter matrix S = sum_i x_i x_i^T."""

from __future__ import annotations

import numpy as np


def eigenvalues(x: np.ndarray) -> np.ndarray:
    """The eigenvalues [B, D] of the scatter matrices of inputs x [B, N, D], ascending."""
    return np.linalg.eigvalsh(np.einsum("bnd,bne->bde", x, x))


def after_a_step(values: np.ndarray, gamma: float) -> np.ndarray:
    """The eigenvalues once inputs have moved, x <- x - gamma S x: each l becomes l (1 - gamma l)^2.

    Von Oswald et al. 2023, App. A.10. Values in [0, 1/gamma] stay there, and the largest shrink most.
    """
    return values * (1 - gamma * values) ** 2


def condition_number(values: np.ndarray) -> np.ndarray:
    """The largest eigenvalue over the smallest, of each task: [B, D] -> [B]."""
    return np.asarray(values.max(axis=-1) / values.min(axis=-1))
