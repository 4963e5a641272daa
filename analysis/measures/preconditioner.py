"""The preconditioner that linear layers have learnt: the input block of W_K^T W_Q, compared with theoretical matrices.

Only the direction of the block is free of the scale that can move into P W_V, so distances are after the best scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from icl_lab.analysis.measures.weights import products
from icl_lab.src.checks import same_shape


def learnt_preconditioners(config: Any, params: dict[str, dict[str, np.ndarray]]) -> np.ndarray:
    """The input blocks [L, H, D, D] of W_K^T W_Q, transposed: x_i^T A x_query is key times query."""
    kq, _ = products(config, params)
    dim = config.data.dim
    return np.asarray(kq[:, :, :dim, :dim])


def relative_distance(matrix: np.ndarray, target: np.ndarray) -> float:
    """min_c |c matrix - target| / |target| in the Frobenius norm; 1 for a matrix of zeros or one orthogonal to it."""
    same_shape(matrix=matrix, target=target)
    norm = float(np.sum(matrix * matrix))
    if norm == 0:
        return 1.0
    c = float(np.sum(matrix * target)) / norm
    return float(np.linalg.norm(c * matrix - target) / np.linalg.norm(target))
