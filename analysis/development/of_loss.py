"""The LLC as a function of the loss, fitted to runs of other seeds: what it is where it says nothing but the loss.

    LLC(t) ~ f(log L(t)) + scatter,   f a Gaussian process with a squared-exponential kernel

f need not be monotone: where all seeds pass through the same LLCs at the same losses, a rise and a fall are one
function of a loss that only falls. A change over training is told from this null if another seed's loss does not give
it away. The scatter is between checkpoints and between seeds, and is counted at both ends of a change.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np

FEWEST = 6  # estimates
LENGTHS, HEIGHTS, SCATTERS = (0.1, 1e2), (1e-2, 1e3), (1e-6, 1e1)  # in standard deviations of log loss and of LLC


class OfLoss(NamedTuple):
    """A fitted function of the loss: scikit-learn's process on standardised log losses, with the units of both axes."""

    process: Any
    middle: float
    width: float
    level: float
    height: float
    scatter: float

    def at(self, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f at losses [T], and its covariance [T, T] without the scatter; of no losses both are empty."""
        if not len(losses):
            return np.zeros(0), np.zeros((0, 0))
        places = (np.log(np.asarray(losses, float)) - self.middle) / self.width
        mean, covariance = self.process.predict(places[:, None], return_cov=True)
        covariance = covariance - (self.scatter / self.height) ** 2 * np.eye(len(places))
        return self.level + self.height * mean, self.height**2 * covariance

    def change(self, start: float, end: float) -> tuple[float, float]:
        """f at one loss less that at another, and the variance with the scatter at both ends; nan for no loss."""
        if not (start > 0 and end > 0 and math.isfinite(start) and math.isfinite(end)):
            return math.nan, math.nan
        mean, covariance = self.at(np.array([start, end]))
        own = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
        return float(mean[1] - mean[0]), max(own, 0.0) + 2 * self.scatter**2


def fit(losses: np.ndarray, llcs: np.ndarray) -> OfLoss:
    """f through estimates [K] at losses [K], of other runs than those that it is a null of.

    `ValueError` for fewer than six, losses that are not positive, and values that are not finite.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from threadpoolctl import threadpool_limits

    losses, llcs = np.asarray(losses, float), np.asarray(llcs, float)
    if losses.shape != llcs.shape or losses.ndim != 1 or len(losses) < FEWEST:
        raise ValueError(f"a function of the loss needs {FEWEST} estimates or more, not {losses.shape}, {llcs.shape}")
    if not (np.isfinite(llcs).all() and np.isfinite(losses).all() and (losses > 0).all()):
        raise ValueError("LLCs must be finite, and losses above 0")
    at = np.log(losses)
    middle, width = float(at.mean()), float(at.std()) or 1.0
    level, height = float(llcs.mean()), float(llcs.std()) or 1.0
    kernel = ConstantKernel(1.0, HEIGHTS) * RBF(1.0, LENGTHS) + WhiteKernel(1e-2, SCATTERS)
    with threadpool_limits(1), warnings.catch_warnings():  # a bound is an answer: a line, or no scatter
        warnings.simplefilter("ignore", ConvergenceWarning)
        process = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0)
        process.fit(((at - middle) / width)[:, None], (llcs - level) / height)
    return OfLoss(process, middle, width, level, height, height * math.sqrt(process.kernel_.k2.noise_level))
