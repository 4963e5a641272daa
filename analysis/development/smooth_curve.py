"""A Gaussian process through a curve over training: LLC(u) at u = log(step + 1), with its slope and their errors.

    LLC(u) ~ line + GP(0, a k),   k(u, v) = exp(-(u - v)^2 / (2 l^2)),   values with variance error^2 + jitter^2

The hyperparameters a, l and jitter maximise the likelihood. jitter is the scatter of checkpoints beyond their
errors: while the learning rate is high w* jumps about, which chains at a single w* cannot show. The line has a flat
prior, and the curve's errors include its own; about a constant the curve would revert to the mean at both ends and
where checkpoints are far apart.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

LEAST = 6  # checkpoints: two for each of a rise, a plateau and a rise
LENGTHS = (0.5, 1e3)  # of the kernel, in log step: Hoogland et al. 2024
HEIGHTS = (1e-4, 1e4)  # a, in variances of the values
JITTERS = (1e-8, 1e1)  # jitter^2, in the same
RESTARTS = 10
GRID = 400  # places at which the fitted curve is read, evenly spaced in log step
FLAT = 1e-9  # of the values' size: a spread that is rounding


class Fit(NamedTuple):
    """A fitted curve. T checkpoints, G places of the grid, from the first checkpoint to the last.

    steps, llc, errors [T]: what was fitted; errors are 0 where none were given. grid [G]: log(step + 1).
    mean, slope [G]: the posterior means of LLC and d LLC / d log step; covariance, slope_covariance [G, G]: of them.
    height, length, jitter: sqrt(a), l and jitter; height and jitter in the unit of the LLC.
    evidence: log likelihood less that of the line with jitter alone, which is then line_jitter. Below log T, which is
    what two more numbers cost by BIC, the curve has no shape that its checkpoints show.
    """

    steps: np.ndarray
    llc: np.ndarray
    errors: np.ndarray
    grid: np.ndarray
    mean: np.ndarray
    slope: np.ndarray
    covariance: np.ndarray
    slope_covariance: np.ndarray
    height: float
    length: float
    jitter: float
    evidence: float
    line_jitter: float

    @property
    def has_shape(self) -> bool:
        """Whether the checkpoints show more than a line and noise."""
        return bool(self.evidence > np.log(len(self.steps)))

    @property
    def noise(self) -> np.ndarray:
        """The standard deviation of each value [T] about the curve, or about the line if there is no more."""
        noise: np.ndarray = np.hypot(self.errors, self.jitter if self.has_shape else self.line_jitter)
        return noise


def log_step(steps: np.ndarray) -> np.ndarray:
    """log(step + 1), in which step 0 has a place."""
    return np.asarray(np.log1p(np.asarray(steps, float)))


def step_of(places: np.ndarray | float) -> np.ndarray:
    """The step at a log step."""
    return np.asarray(np.expm1(places))


def fit(steps: np.ndarray, llc: np.ndarray, errors: np.ndarray | None = None, length: float | None = None) -> Fit:
    """The posterior of a curve [T] over steps [T], of standard errors [T] if they are known; l is given or fitted.

    `ValueError` for fewer than six checkpoints, steps that do not increase, and non-finite values.
    """
    steps, llc = np.asarray(steps, float), np.asarray(llc, float)
    errors = np.zeros(len(llc)) if errors is None else np.asarray(errors, float)
    _check(steps, llc, errors)
    at = log_step(steps)
    trend = np.polyfit(at, llc, 1)
    rest = llc - np.polyval(trend, at)
    size = float(rest.std())
    if size <= FLAT * float(np.abs(llc).max()):
        size = float(errors.max()) or 1.0  # a line: any unit will do
    a, length_scale, jitter, evidence, line_jitter = _hyperparameters(at, rest / size, errors / size, length)
    grid = np.linspace(at[0], at[-1], GRID)
    noise = np.diag((errors / size) ** 2 + jitter)
    mean, slope, covariance, slope_covariance = posterior(at, rest / size, noise, grid, a, length_scale)
    return Fit(
        steps,
        llc,
        errors,
        grid,
        np.polyval(trend, grid) + size * mean,
        trend[0] + size * slope,
        size**2 * covariance,
        size**2 * slope_covariance,
        size * float(np.sqrt(a)),
        length_scale,
        size * float(np.sqrt(jitter)),
        evidence,
        size * float(np.sqrt(line_jitter)),
    )


def _check(steps: np.ndarray, llc: np.ndarray, errors: np.ndarray) -> None:
    if not steps.shape == llc.shape == errors.shape or steps.ndim != 1:
        raise ValueError(f"steps {steps.shape}, values {llc.shape} and errors {errors.shape} are not of one length")
    if len(steps) < LEAST:
        raise ValueError(f"stages need {LEAST} checkpoints or more, not {len(steps)}")
    if not (np.diff(steps) > 0).all() or steps[0] < 0:
        raise ValueError("steps must rise from 0 or above")
    if not (np.isfinite(llc).all() and np.isfinite(errors).all() and (errors >= 0).all()):
        raise ValueError("values must be finite, and errors not negative")


def _hyperparameters(
    at: np.ndarray, values: np.ndarray, errors: np.ndarray, length: float | None
) -> tuple[float, float, float, float, float]:
    """a, l and jitter^2 at which values [T] of unit variance are the likeliest, l the given one if any.

    Then the evidence, and the jitter^2 at which they are the likeliest as noise alone.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from threadpoolctl import threadpool_limits

    jitter = WhiteKernel(1e-2, JITTERS)
    shape = RBF(3.0, LENGTHS) if length is None else RBF(length, "fixed")
    fitted = []
    # matrices of some hundred rows are slower on several threads, and much slower beside other processes
    with (
        threadpool_limits(1),
        warnings.catch_warnings(),
    ):  # a hyperparameter at its bound is an answer: no jitter, or a straight line
        warnings.simplefilter("ignore", ConvergenceWarning)
        for kernel in (ConstantKernel(1.0, HEIGHTS) * shape + jitter, jitter):
            process = GaussianProcessRegressor(kernel, alpha=errors**2, n_restarts_optimizer=RESTARTS, random_state=0)
            fitted.append(process.fit(at[:, None], values))
    fitted_kernel = fitted[0].kernel_
    evidence = fitted[0].log_marginal_likelihood_value_ - fitted[1].log_marginal_likelihood_value_
    a, length_scale = float(fitted_kernel.k1.k1.constant_value), float(fitted_kernel.k1.k2.length_scale)
    return a, length_scale, float(fitted_kernel.k2.noise_level), float(evidence), float(fitted[1].kernel_.noise_level)


def posterior(
    at: np.ndarray, values: np.ndarray, noise: np.ndarray, grid: np.ndarray, a: float, length: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and slope [G] on a grid, and their covariances [G, G], of values [T] with noise covariance [T, T].

    With K = a k(at, at) + noise, H = (1, at)' and R = (1, grid)' - H K^-1 a k(at, grid), and a flat prior of the line:

        mean = a k(grid, at) K^-1 values + R' b,   b = (H K^-1 H')^-1 H K^-1 values,
        covariance = a k(grid, grid) - a k(grid, at) K^-1 a k(at, grid) + R' (H K^-1 H')^-1 R

    (Rasmussen and Williams 2006, Eqs. 2.41 and 2.42), slope the same of dk/du = -(u - v) / l^2 k and of (0, 1)'.
    """
    from scipy.linalg import cho_factor, cho_solve

    def kernel(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        apart = left[:, None] - right[None, :]
        return apart / length, np.asarray(a * np.exp(-0.5 * (apart / length) ** 2))

    factor = cho_factor(kernel(at, at)[1] + noise)
    line = np.stack([np.ones_like(at), at])
    known = cho_factor(line @ cho_solve(factor, line.T))
    trend = cho_solve(known, line @ cho_solve(factor, values))
    weights = cho_solve(factor, values - trend @ line)
    apart, across = kernel(grid, at)
    sloped = -apart / length * across
    between, prior = kernel(grid, grid)
    sloped_prior = (1 - between**2) / length**2 * prior
    left = np.stack([np.ones_like(grid), grid]) - line @ cho_solve(factor, across.T)
    sloped_left = np.array([[0.0], [1.0]]) - line @ cho_solve(factor, sloped.T)
    return (
        across @ weights + trend @ np.stack([np.ones_like(grid), grid]),
        sloped @ weights + trend[1],
        prior - across @ cho_solve(factor, across.T) + left.T @ cho_solve(known, left),
        sloped_prior - sloped @ cho_solve(factor, sloped.T) + sloped_left.T @ cho_solve(known, sloped_left),
    )


def draws(fitted: Fit, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Curves and their slopes [count, G] from the posterior: slopes by central differences of each curve."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        squares, axes = np.linalg.eigh(fitted.covariance)
        root = axes * np.sqrt(np.clip(squares, 0, None))
        curves = fitted.mean + rng.standard_normal((count, len(fitted.grid))) @ root.T
    return curves, np.gradient(curves, fitted.grid, axis=1)


def change_error(fitted: Fit, start: int, end: int) -> float:
    """The standard error of LLC at one place of the grid less that at another."""
    variance = fitted.covariance[start, start] + fitted.covariance[end, end] - 2 * fitted.covariance[start, end]
    return float(np.sqrt(max(variance, 0.0)))
