"""The exact posterior of sparse linear functions, by enumeration of the supports."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.posterior import NOISE_FREE, Posterior, before, in_blocks, log_normal, weighted
from icl_lab.baselines.functions.prefixes import pairs
from icl_lab.src.checks import in_range, require, size

MOST_SUPPORTS = 5000


def sparse_posterior(x: ArrayLike, y: ArrayLike, sparsity: int, noise_variance: float = NOISE_FREE) -> Posterior:
    """The posterior of y = w.x + noise, s = `sparsity` coordinates of w being N(0, 1) and the others 0.

    All C(D, s) supports S are equally probable at first; each is weighed by N(y; 0, X_S X_S^T + sigma^2 I) and predicts
    as ridge does. Without noise the support is known after s + 1 pairs. x [B, N, D], y [B, N]; `sparse.predict` is for
    supports of random size. Cost: 1 s at D = 10, s = 2; 24 s at D = 20, s = 3.
    """
    in_range("noise_variance", noise_variance, 0, open_low=True)
    inputs, labels = pairs(x, y)
    dim = inputs.shape[2]
    size("sparsity", sparsity)
    require(sparsity <= dim, f"sparsity is {sparsity}; it must be at most the {dim} dimensions of the inputs")
    count = comb(dim, sparsity)
    require(
        count <= MOST_SUPPORTS, f"there are {count} supports; their posterior is a sum over at most {MOST_SUPPORTS}"
    )
    supports = np.array(list(combinations(range(dim), sparsity)))

    def of_block(inputs: np.ndarray, labels: np.ndarray) -> Posterior:
        return _posterior(inputs[:, :, supports], labels, noise_variance)

    return in_blocks(of_block, count * max(labels.shape[1], sparsity**2), inputs, labels)


def _posterior(inputs: np.ndarray, labels: np.ndarray, noise_variance: float) -> Posterior:
    """Of inputs [B, N, M, s] in M supports: a Kalman filter for each, weighed by its densities of the labels."""
    batch, length, count, sparsity = inputs.shape
    mean = np.zeros((batch, count, sparsity))
    covariance = np.zeros((batch, count, sparsity, sparsity)) + np.eye(sparsity)
    predictions, densities = np.empty((batch, count, length)), np.empty((batch, count, length))
    for k in range(length):
        gain = np.einsum("bmij,bmj->bmi", covariance, inputs[:, k])
        variance = (gain * inputs[:, k]).sum(axis=2) + noise_variance
        predictions[..., k] = (mean * inputs[:, k]).sum(axis=2)
        surprise = labels[:, k, None] - predictions[..., k]
        densities[..., k] = log_normal(surprise, variance)
        mean = mean + gain * (surprise / variance)[..., None]
        covariance = covariance - gain[..., None] * (gain / variance[..., None])[..., None, :]
    return weighted(before(densities) - np.log(count), predictions)
