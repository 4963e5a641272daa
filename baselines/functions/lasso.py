"""The lasso at each position: of given penalties, or of one chosen for each position on other prompts."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.prefixes import best_penalties, checked, pairs
from icl_lab.baselines.sparse import lasso_weights
from icl_lab.src.batch import Batch
from icl_lab.src.checks import in_range, require

PUBLISHED = (1.0, 0.1, 0.01, 0.001, 0.0001)  # the penalties of Garg et al. 2022


def lasso(
    x: ArrayLike, y: ArrayLike, penalty: float | Sequence[float], positions: Sequence[int] | None = None
) -> np.ndarray:
    """Predictions [B, P]: w.x_k, w least in |y - X w|^2 / (2 k) + penalty |w|_1 of the k pairs before; 0 at k = 0.

    A penalty, or one for each position [P]. x [B, N, D], y [B, N]. Feature-sign search in float64 (`sparse.lasso`),
    compiled once: pairs from k on are 0, which leaves the minimum alone at the penalty k / N times as large. nan where
    it has not converged. Cost at D = 20: 12 s at penalty .0001, 8 s at .01, 3 s at 1.
    """
    inputs, labels = pairs(x, y)
    found = checked(positions, inputs)
    penalties = np.full(len(found), penalty) if np.ndim(penalty) == 0 else np.asarray(penalty, np.float64)
    require(
        len(penalties) == len(found), f"there are {len(penalties)} penalties for {len(found)} positions; give one each"
    )
    for each in penalties:
        in_range("penalty", float(each), 0, open_low=True)
    columns = [_at(inputs, labels, k, float(each)) for k, each in zip(found, penalties, strict=True)]
    return np.stack(columns, axis=1)


def chosen_penalties(
    x: ArrayLike,
    y: ArrayLike,
    positions: Sequence[int] | None = None,
    targets: ArrayLike | None = None,
    grid: Sequence[float] = PUBLISHED,
) -> np.ndarray:
    """The penalty of the grid with the least mean squared error at each position [P], on prompts that are not tested.

    The errors are those to targets [B, N], the labels if not given. At position 0, where all predict 0, it is the
    first. Cost at D = 20: 50 s.
    """
    inputs, labels = pairs(x, y)
    found = checked(positions, inputs)
    wanted = (labels if targets is None else np.asarray(targets, np.float64))[:, found]
    return best_penalties(lambda penalty: lasso(inputs, labels, penalty, found), grid, wanted)


def _at(x: np.ndarray, y: np.ndarray, k: int, penalty: float) -> np.ndarray:
    """Predictions [B] at one position."""
    if k == 0:
        return np.zeros(len(x))
    known = np.arange(x.shape[1]) < k
    with jax.enable_x64(True):
        weights = np.asarray(_weights(x * known[None, :, None], y * known, penalty * k / x.shape[1]))
    predicted: np.ndarray = np.einsum("bd,bd->b", weights, x[:, k])
    return predicted


@jax.jit
def _weights(x: Array, y: Array, penalty: float) -> Array:
    return lasso_weights(Batch(x, y, x[:, 0], y[:, 0], x[:, 0]), penalty)
