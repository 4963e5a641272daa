"""What an exact Bayes method gives at each position: the posterior mean of the label, and the evidence so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NOISE_FREE = 1e-9  # the variance of noise that labels without noise are taken to have; float32 rounds to 1e-14
ELEMENTS = 2**20  # of the arrays of a block of prompts: 8 MiB each


class Posterior(NamedTuple):
    """The mean [B, N] of label k given all that entry k has seen, and the logarithm of the density of what it has seen.

    log_evidence [B, N] is of the labels before k given the inputs; where the inputs depend on the function, of the
    inputs up to k too, relative to their density under no function. It compares classes in `mixture`.
    """

    mean: np.ndarray
    log_evidence: np.ndarray


class Sampled(NamedTuple):
    """A posterior by sampling: as `Posterior`, and the Monte Carlo standard error [B, N] of the mean."""

    mean: np.ndarray
    log_evidence: np.ndarray
    standard_error: np.ndarray


def before(terms: np.ndarray) -> np.ndarray:
    """sum_{j<k} terms[..., j] [..., N]: entry 0 is 0."""
    summed = np.cumsum(terms, axis=-1)
    return np.concatenate([np.zeros_like(summed[..., :1]), summed[..., :-1]], axis=-1)


def log_normal(value: np.ndarray, variance: np.ndarray | float) -> np.ndarray:
    """log N(value; 0, variance)."""
    density: np.ndarray = -0.5 * (value**2 / variance + np.log(2 * np.pi * variance))
    return density


def weighted(log_weights: np.ndarray, values: np.ndarray) -> Posterior:
    """The mean of values [B, M, N] under weights exp(log_weights) [B, M, N], and the logarithm of the weights' sum."""
    top = log_weights.max(axis=1)
    weights = np.exp(log_weights - top[:, None])
    total = weights.sum(axis=1)
    return Posterior((weights * values).sum(axis=1) / total, top + np.log(total))


def in_blocks(of_block: Callable[..., Posterior], elements: int, *arrays: np.ndarray) -> Posterior:
    """The posterior of arrays [B, ...], some prompts at a time, whose largest arrays have so many elements a prompt."""
    size = max(1, ELEMENTS // max(1, elements))
    starts = range(0, len(arrays[0]), size)
    found = [of_block(*(array[start : start + size] for array in arrays)) for start in starts]
    return Posterior(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
