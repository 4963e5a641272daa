"""Predictions at each position of a prompt, by a method that is fitted anew to the pairs before it; its penalties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.src.checks import require

# (x [B, k, D], y [B, k], the next input [B, D]) -> predictions [B], for k of at least 1
Fitted = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def at_positions(fitted: Fitted, x: ArrayLike, y: ArrayLike, positions: Sequence[int] | None = None) -> np.ndarray:
    """Predictions [B, P] at these positions, all N if none are given: of fitted(x[:, :k], y[:, :k], x[:, k]).

    Position 0, where there is nothing to fit, predicts 0.
    """
    x, y = pairs(x, y)
    return np.stack(
        [fitted(x[:, :k], y[:, :k], x[:, k]) if k else np.zeros(len(x)) for k in checked(positions, x)], axis=1
    )


def best_penalties(
    of_penalty: Callable[[float], np.ndarray], penalties: Sequence[float], targets: ArrayLike
) -> np.ndarray:
    """The penalty for each position [P] whose predictions [B, P] have the least mean squared error to targets."""
    errors = [np.mean((of_penalty(each) - np.asarray(targets, np.float64)) ** 2, axis=0) for each in penalties]
    chosen: np.ndarray = np.asarray(penalties)[np.argmin(errors, axis=0)]
    return chosen


def pairs(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """x [B, N, D] and y [B, N] in float64; `ConfigError` for other shapes."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    fits = x.ndim == 3 and y.shape == x.shape[:2]
    require(fits, f"x has shape {x.shape} and y {y.shape}; they must be [B, N, D] and [B, N]")
    return x, y


def checked(positions: Sequence[int] | None, x: np.ndarray) -> list[int]:
    """The positions, or all N of x [B, N, D]; `ConfigError` for one that is not from 0 to N - 1."""
    count = x.shape[1]
    found = list(range(count) if positions is None else positions)
    require(
        all(0 <= k < count for k in found), f"positions are {found}; they must be from 0 to {count - 1}, as of N pairs"
    )
    return found
