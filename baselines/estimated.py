"""What baselines have to know of contexts whose distribution nobody says, estimated from their pairs.

The model is the one that ridge regression is Bayes under: y = X w + e with w ~ N(0, s^2 I) and e ~ N(0, v I). Then
y ~ N(0, s^2 (X X^T + p I)) with the penalty p = v / s^2, and s^2 and p are those of largest likelihood.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icl_lab.src.checks import require

LEAST, MOST = 1e-8, 1e8  # of the penalty, relative to the mean square of an input's length
RANK = 1e-6  # of an eigenvalue of X X^T, relative to the same, below which there is no direction in float32


class Estimated(NamedTuple):
    """Root mean square of a coordinate of inputs; standard deviations of a coordinate of tasks, and of label noise."""

    input_scale: float
    weight_scale: float
    noise_std: float


def estimate(x: np.ndarray, y: np.ndarray) -> Estimated:
    """The estimates of contexts x [B, N, D] with labels y [B, N]; noise below 1e-4 of the labels' signal reads 0.

    `ConfigError` where labels or inputs are all zero.
    """
    from scipy.optimize import minimize_scalar

    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    scale = float(np.sqrt(np.mean(x**2)))
    require(scale > 0 and bool(np.any(y)), "inputs or labels are all zero, so nothing can be estimated from them")
    values, vectors = np.linalg.eigh(np.einsum("bid,bjd->bij", x, x))
    squares = np.einsum("bij,bi->bj", vectors, y) ** 2  # of the labels along the eigenvectors
    values, mean = np.maximum(values, 0), x.shape[2] * scale**2

    def surprise(log_penalty: float) -> float:
        variances = values + np.exp(log_penalty) * mean
        return float(np.log(np.mean(squares / variances)) + np.mean(np.log(variances)))

    found = minimize_scalar(surprise, bounds=(np.log(LEAST), np.log(MOST)), method="bounded", options={"xatol": 1e-6})
    penalty = float(np.exp(found.x)) * mean
    if penalty > 10 * LEAST * mean:
        task_variance = float(np.mean(squares / (values + penalty)))
        return Estimated(scale, task_variance**0.5, (penalty * task_variance) ** 0.5)
    seen = values > RANK * mean  # labels are those of a task to the last digits: there is none along the others
    return Estimated(scale, float(np.mean(squares[seen] / values[seen])) ** 0.5, 0.0)
