"""Least squares of least norm, on inputs and on their squares; and averaging."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.prefixes import at_positions

RCOND = 1e-6  # of the largest singular value: inputs in float32 that lie in a subspace leave it by 1e-7


def least_squares(x: ArrayLike, y: ArrayLike, positions: Sequence[int] | None = None) -> np.ndarray:
    """Predictions [B, P]: x_k.X^+ y, X [k, D] the inputs before position k; the weights of least norm.

    For noise-free linear functions with w ~ N(0, I) it is Bayes. With noise its error has no mean at k = D - 1 to
    D + 1. x [B, N, D], y [B, N]; `linear_mmse.ridge` at penalty 0 has one query.
    """

    def fitted(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.einsum("bdn,bn,bd->b", np.linalg.pinv(x, rcond=RCOND), y, query, optimize=True)
        return found

    return at_positions(fitted, x, y, positions)


def least_squares_on_squares(x: ArrayLike, y: ArrayLike, positions: Sequence[int] | None = None) -> np.ndarray:
    """Predictions [B, P] of `least_squares` from x^2: Bayes for noise-free labels sum_j w_j x_j^2, w ~ N(0, c I)."""
    return least_squares(np.asarray(x, np.float64) ** 2, y, positions)


def averaging(x: ArrayLike, y: ArrayLike, positions: Sequence[int] | None = None) -> np.ndarray:
    """Predictions [B, P]: w.x_k with w = (1/k) sum_{j<k} y_j x_j, unbiased for x ~ N(0, I). Garg et al. 2022."""

    def fitted(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        weights = np.einsum("bn,bnd->bd", y, x) / x.shape[1]
        found: np.ndarray = np.einsum("bd,bd->b", weights, query)
        return found

    return at_positions(fitted, x, y, positions)
