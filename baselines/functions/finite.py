"""The posterior over a finite pool of functions: dMMSE of any class, Bayes of a class with finitely many functions.

    mean_k = sum_m p_mk E[y_k | f_m(x_k)],   p_mk ~ pi_m prod_{j<k} p(y_j | f_m(x_j)) prod_{j<=k} p(x_j | f_m)

The last factor counts where the inputs depend on the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.posterior import Posterior, before, in_blocks, log_normal, weighted
from icl_lab.src.checks import in_range, require


class Likelihood(NamedTuple):
    """How labels follow from what a function gives: log p(y | f), and E[y | f]."""

    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]
    expected: Callable[[np.ndarray], np.ndarray]


def gaussian(variance: float) -> Likelihood:
    """Labels have Gaussian noise. A small variance is the limit of no noise, in which the nearest function counts."""
    in_range("variance", variance, 0, open_low=True)
    return Likelihood(lambda f, y: log_normal(y - f, variance), lambda f: f)


def bernoulli() -> Likelihood:
    """Labels are 1 with probability sigma(f), else -1; the prediction is the mean label, from -1 to 1."""
    return Likelihood(lambda f, y: -np.logaddexp(0, -y * f), lambda f: np.tanh(f / 2))


def pool_posterior(
    labels: ArrayLike,
    y: ArrayLike,
    likelihood: Likelihood,
    log_prior: ArrayLike | None = None,
    log_inputs: ArrayLike | None = None,
) -> Posterior:
    """The posterior over M functions, from what each gives at a prompt's inputs: labels [B, M, N]; y [B, N].

    log_prior [M] is uniform if not given; log_inputs [B, M, N] is log p(x_k | f_m), for inputs that depend on the
    function. For linear functions and `gaussian` it is `bayes.dmmse`. Cost: 2 s of 1024 functions.
    """
    values, targets = np.asarray(labels), np.asarray(y, np.float64)
    fits = values.ndim == 3 and (len(values), values.shape[2]) == targets.shape and values.shape[1] > 0
    require(fits, f"labels has shape {values.shape} and y {targets.shape}; they must be [B, M, N] and [B, N]")
    prior = np.full(values.shape[1], -np.log(values.shape[1])) if log_prior is None else np.asarray(log_prior)

    def of_block(values: np.ndarray, targets: np.ndarray, *inputs: np.ndarray) -> Posterior:
        f = values.astype(np.float64)
        scores = prior[None, :, None] + before(likelihood.log_density(f, targets[:, None]))
        for given in inputs:
            scores += np.cumsum(given, axis=2)
        return weighted(scores, likelihood.expected(f))

    inputs = () if log_inputs is None else (np.asarray(log_inputs),)
    return in_blocks(of_block, values.shape[1] * values.shape[2], values, targets, *inputs)
