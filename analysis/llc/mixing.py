"""Whether chains have mixed, in numbers: their trend, R-hat, effective sample size, and where one diverged."""

from __future__ import annotations

import math

import numpy as np

STILL = 1e-6  # of the losses' size: draws whose losses differ by no more have not moved, as far as float32 can tell
QUARTERS = 4
NO_MOVEMENT = "the losses of the draws differ by rounding alone, so that R-hat is not computed"


def trend(excess: np.ndarray, since: int = 0) -> float:
    """Last less first quarter of the draws [C, T], mean over chains, over its standard error.

    Without a spread between chains it is infinite, or nan if nothing changes either. In chains that do not move it is
    as a t variable of C - 1 degrees of freedom. since: another quarter than the first; -2 is the last but one.
    """
    quarters = np.array_split(excess, QUARTERS, axis=1)
    change = quarters[-1].mean(axis=1) - quarters[since].mean(axis=1)
    error = change.std(ddof=1) / math.sqrt(len(change))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(change.mean() / error)


def divergence(excess: np.ndarray) -> str:
    """Which chain of [C, T] became non-finite first, and at which draw; "" if none did."""
    gone = ~np.isfinite(excess)
    if not gone.any():
        return ""
    draw = int(np.argmax(gone.any(axis=0)))
    chain = int(np.argmax(gone[:, draw]))
    return f"chain {chain} diverged at draw {draw}, as eps is too large for these nbeta and gamma"


def is_still(losses: np.ndarray) -> bool:
    """Whether the losses [C, K] of draws differ by rounding alone."""
    return bool(np.isfinite(losses).all() and np.ptp(losses) <= STILL * np.abs(losses).max())


def mixing(values: np.ndarray) -> dict[str, float]:
    """r_hat and ess of [C, K] values: rank-normalised split R-hat and bulk effective sample size (Vehtari et al. 2021).

    In NumPy, whose first call compiles nothing. nan where nothing moves or K is below 4.
    """
    if values.shape[1] < 2 * 2 or not np.isfinite(values).all() or is_still(values):
        return {"r_hat": math.nan, "ess": math.nan}
    halves = _halves(values)
    return {"r_hat": max(_r_hat(_ranked(part)) for part in (halves, _folded(halves))), "ess": _ess(_ranked(halves))}


def _halves(values: np.ndarray) -> np.ndarray:
    """Chains cut into halves [2 C, K // 2]; of an odd number the middle one is left out."""
    length = values.shape[1] // 2
    return np.concatenate([values[:, :length], values[:, -length:]])


def _folded(values: np.ndarray) -> np.ndarray:
    """Distances from the median, by which chains of another width are found."""
    distances: np.ndarray = np.abs(values - np.median(values))
    return distances


def _ranked(values: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks of all values."""
    from scipy.special import ndtri

    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place].reshape(values.shape)  # of equal values the mean
    scores: np.ndarray = ndtri((ranks - 3 / 8) / (values.size + 1 / 4))
    return scores


def _r_hat(values: np.ndarray) -> float:
    """sqrt of the variance of all draws over that within chains (Gelman and Rubin 1992)."""
    length = values.shape[1]
    within = values.var(axis=1, ddof=1).mean()
    between = length * values.mean(axis=1).var(ddof=1)
    return float(np.sqrt((between / within + length - 1) / length))


def _ess(values: np.ndarray) -> float:
    """Draws over their integrated autocorrelation, cut by Geyer's initial monotone sequence (Stan's estimator)."""
    chains, length = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * length, axis=1)) ** 2
    covariances = np.fft.irfft(spectrum, axis=1)[:, :length].mean(axis=0) / length
    within = covariances[0] * length / (length - 1)
    total = covariances[0] + values.mean(axis=1).var(ddof=1)
    correlations = 1 - (within - covariances) / total
    correlations[0] = 1.0
    pairs = correlations[: length // 2 * 2].reshape(-1, 2).sum(axis=1)
    positive = len(pairs) if (pairs > 0).all() else int(np.argmin(pairs > 0))
    kept = np.minimum.accumulate(pairs[:positive])
    time = -1 + 2 * kept.sum()
    draws = chains * length
    return float(min(draws / max(time, 1 / math.log10(draws)), draws * math.log10(draws)))
