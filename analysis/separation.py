"""How well a score separates clean pairs from corrupted ones: AUROC within positions, with intervals over contexts.

AUROC = P(score of a clean pair > score of a corrupted one) + P(equal)/2: above .5, corrupted pairs score lower. Pairs
of one context are not independent, so contexts are what is resampled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from icl_lab.src.checks import same_shape

BOOTSTRAPS = 200
NORMAL = 1.96  # standard errors to either side of a 95 % interval


def pair_counts(scores: np.ndarray, hit: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mann-Whitney counts at one position: (U, n_clean n_corrupted), each [K], for K weightings of the contexts.

    scores and hit [B], weights [B, K]: how often each context counts. U = sum over clean a and corrupted b of
    w_a w_b (1[s_a > s_b] + 1[s_a = s_b]/2).
    """
    same_shape(scores=scores, hit=hit)
    order = np.argsort(scores)
    clean, corrupted = order[~hit[order]], order[hit[order]]
    upto = np.concatenate([np.zeros((1, weights.shape[1])), np.cumsum(weights[corrupted], axis=0)])
    below, not_above = (np.searchsorted(scores[corrupted], scores[clean], side) for side in ("left", "right"))
    counts = np.einsum("ak,ak->k", weights[clean], upto[below] + upto[not_above]) / 2
    return counts, weights[clean].sum(axis=0) * upto[-1]


def matched_auroc(scores: np.ndarray, hit: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Position-matched AUROC [K]: sum_j U_j / sum_j n_j,clean n_j,corrupted over positions j; nan if that is 0.

    scores and hit [B, N], weights [B, K]. Scores that are not all finite have none, here and below.
    """
    same_shape(scores=scores, hit=hit)
    if not np.isfinite(scores).all():
        return np.full(weights.shape[1], np.nan)
    counts = np.array([pair_counts(scores[:, j], hit[:, j], weights) for j in range(scores.shape[1])]).sum(axis=0)
    shares: np.ndarray = np.divide(counts[0], counts[1], out=np.full(weights.shape[1], np.nan), where=counts[1] > 0)
    return shares


def raw_auroc(scores: np.ndarray, hit: np.ndarray) -> float:
    """AUROC [ ] over all pairs, whatever their position; nan if all are clean or all corrupted."""
    same_shape(scores=scores, hit=hit)
    if hit.all() or not hit.any() or not np.isfinite(scores).all():
        return float("nan")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(~hit.ravel(), scores.ravel()))


def position_auroc(scores: np.ndarray, hit: np.ndarray) -> float:
    """The control that knows the position alone: each pair's score is the mean at its position on the other half."""
    half = len(scores) // 2
    means = np.broadcast_to(scores[half:].mean(axis=0), scores[:half].shape)
    return raw_auroc(means, hit[:half])


@np.errstate(over="ignore", invalid="ignore")  # non-finite values are null in the file
def separation(scores: np.ndarray, hit: np.ndarray, clean: np.ndarray, seed: int) -> dict[str, Any]:
    """Summary statistics of a score [B, N]: means, AUROCs, and what corruption itself changes.

    `auroc` is the position-matched one, 1.96 bootstrap standard errors over contexts to either side its interval (200
    resamples give a standard error to a twentieth, but not the ends of a distribution); `twin_change_noisy` and
    `twin_change_clean` are the mean change of the score against `clean`, that of the same contexts without noise, over
    corrupted and over clean pairs, with standard errors over contexts.
    """
    counts = np.random.default_rng(seed).multinomial(len(scores), np.full(len(scores), 1 / len(scores)), BOOTSTRAPS)
    resampled = matched_auroc(scores, hit, np.ascontiguousarray(counts.T, float))
    auroc = matched_auroc(scores, hit, np.ones((len(scores), 1)))[0]
    half = NORMAL * resampled.std(ddof=1)
    change = scores - clean
    result: dict[str, Any] = {
        "clean_mean": _mean(scores, ~hit),
        "noisy_mean": _mean(scores, hit),
        "auroc": auroc,
        "auroc_interval": [auroc - half, auroc + half],
        "auroc_raw": raw_auroc(scores, hit),
        "auroc_position": position_auroc(scores, hit),
    }
    for name, chosen in (("noisy", hit), ("clean", ~hit)):
        result[f"twin_change_{name}"], result[f"twin_change_{name}_se"] = _mean_and_error(change, chosen)
    return result


def _mean(values: np.ndarray, chosen: np.ndarray) -> float:
    return float(values[chosen].mean()) if chosen.any() else float("nan")


def _mean_and_error(values: np.ndarray, chosen: np.ndarray) -> tuple[float, float]:
    """The mean over chosen pairs, and its standard error with contexts as the unit (ratio estimator)."""
    if not chosen.any():
        return float("nan"), float("nan")
    mean = values[chosen].mean()
    residual = np.where(chosen, values - mean, 0.0).sum(axis=1)
    return float(mean), float(residual.std(ddof=1) * np.sqrt(len(values)) / chosen.sum())
