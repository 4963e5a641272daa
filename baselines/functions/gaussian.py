"""The exact posterior of functions that are a Gaussian process: linear in Gaussian weights, or of a given kernel.

With K the covariance of the labels at all inputs and L L^T = K + sigma^2 I one Cholesky factor serves all positions,
since row k of L knows the inputs up to k alone:

    mean_k = sum_{j<k} L_kj z_j,   z_k = (y_k - mean_k) / L_kk,   p(y_k | y_<k) = N(y_k; mean_k, L_kk^2)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.posterior import NOISE_FREE, Posterior, before, log_normal
from icl_lab.baselines.functions.prefixes import best_penalties, pairs
from icl_lab.src.checks import in_range

PENALTIES = (NOISE_FREE, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of ridge, among which the best is chosen


def kernel_posterior(kernel: np.ndarray, y: ArrayLike, noise_variance: float = NOISE_FREE) -> Posterior:
    """The posterior of labels y [B, N] with covariance kernel [B, N, N] and noise of a variance above 0.

    A variance below `NOISE_FREE` counts as that: it would be lost in the rounding of the kernel.
    """
    in_range("noise_variance", noise_variance, 0, open_low=True)
    labels = np.asarray(y, np.float64)
    factor = np.linalg.cholesky(kernel + max(noise_variance, NOISE_FREE) * np.eye(kernel.shape[-1]))
    deviations = np.einsum("bkk->bk", factor)
    mean, white = np.zeros_like(labels), np.zeros_like(labels)
    for k in range(labels.shape[1]):
        mean[:, k] = np.einsum("bj,bj->b", factor[:, k, :k], white[:, :k])
        white[:, k] = (labels[:, k] - mean[:, k]) / deviations[:, k]
    return Posterior(mean, before(log_normal(labels - mean, deviations**2)))


def linear_posterior(
    x: ArrayLike, y: ArrayLike, noise_variance: float = NOISE_FREE, weight_variance: float = 1.0
) -> Posterior:
    """The posterior of y = w.x + noise, w ~ N(0, weight_variance I): ridge of penalty noise / weight variance.

    x [B, N, D] may be features: of squares the quadratic class is Bayes', and the sine series of `fourier`.
    """
    inputs, labels = pairs(x, y)
    kernel = weight_variance * np.einsum("bid,bjd->bij", inputs, inputs, optimize=True)
    return kernel_posterior(kernel, labels, noise_variance)


def ridge(x: ArrayLike, y: ArrayLike, penalties: np.ndarray) -> np.ndarray:
    """Predictions [B, N]: x_k.(X^T X + penalty_k I)^-1 X^T y of the pairs before, a penalty for each position [N]."""
    found = np.empty(np.shape(y))
    for penalty in np.unique(penalties):
        at = penalties == penalty
        found[:, at] = linear_posterior(x, y, float(penalty)).mean[:, at]
    return found


def chosen_penalties(x: ArrayLike, y: ArrayLike, targets: ArrayLike) -> np.ndarray:
    """The penalty of `PENALTIES` with the least mean squared error at each position [N], on prompts not tested."""
    return best_penalties(lambda penalty: linear_posterior(x, y, penalty).mean, PENALTIES, targets)


def arc_cosine_kernel(x: ArrayLike) -> np.ndarray:
    """2 E[relu(u.x_i) relu(u.x_j)] for u ~ N(0, I) [B, N, N]: |x_i| |x_j| (sin t + (pi - t) cos t) / pi.

    t is the angle between inputs x [B, N, D]. It is the covariance of two-layer networks sqrt(2/r) sum_k a_k
    relu(u_k.x) of any width r. Cho and Saul 2009.
    """
    inputs = np.asarray(x, np.float64)
    norms = np.linalg.norm(inputs, axis=2)
    products = norms[:, :, None] * norms[:, None, :]
    cosine = np.einsum("bid,bjd->bij", inputs, inputs, optimize=True) / np.where(products > 0, products, 1)
    angle = np.arccos(np.clip(cosine, -1, 1))
    kernel: np.ndarray = products * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
    return kernel


def arc_cosine_regression(x: ArrayLike, y: ArrayLike, noise_variance: float = NOISE_FREE) -> np.ndarray:
    """Predictions [B, N] of least squared error among those linear in the labels of two-layer networks.

    As the width r grows the networks become Gaussian and it becomes Bayes. x [B, N, D], y [B, N].
    """
    return kernel_posterior(arc_cosine_kernel(x), y, noise_variance).mean
