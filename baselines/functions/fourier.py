"""Fourier series with Gaussian coefficients: their features, and regression on them, which is Bayes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.gaussian import linear_posterior
from icl_lab.baselines.functions.posterior import NOISE_FREE, Posterior
from icl_lab.baselines.functions.prefixes import pairs
from icl_lab.src.checks import size


def fourier_features(x: ArrayLike, order: int, half_period: float = 5.0) -> np.ndarray:
    """1, cos(n pi x_d / L) and sin(n pi x_d / L) for n = 1 to K = `order` [B, N, 2 D K + 1], L = `half_period`."""
    size("order", order)
    angles = np.pi / half_period * np.asarray(x, np.float64)[..., None] * np.arange(1, order + 1)
    angles = angles.reshape(*angles.shape[:2], -1)
    return np.concatenate([np.ones_like(angles[..., :1]), np.cos(angles), np.sin(angles)], axis=2)


def fourier_posterior(
    x: ArrayLike,
    y: ArrayLike,
    order: int,
    half_period: float = 5.0,
    noise_variance: float = NOISE_FREE,
    weight_variance: float = 1.0,
) -> Posterior:
    """The posterior of a Fourier series with coefficients N(0, weight_variance) each; x [B, N, D], y [B, N].

    Fourier regression is its mean. Of an unknown order it is a `mixture` of these.
    """
    inputs, labels = pairs(x, y)
    return linear_posterior(fourier_features(inputs, order, half_period), labels, noise_variance, weight_variance)
