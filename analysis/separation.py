"""How well a score separates clean pairs from corrupted ones, and what a detector of corruption could reach.

AUROC within positions, with intervals over contexts: AUROC = P(score of a clean pair > score of a corrupted one) +
P(equal)/2: above .5, corrupted pairs score lower. Pairs of one context are not independent, so contexts are what is
resampled.

Detectors are positive controls for the AUROC of a model's scores. A random pair alone has the distribution of a clean
one, so a score that looks at one pair has AUROC .5 by construction, and so has one that does not look at labels under
label noise. Only the agreement between pairs tells:

    mask_bayes  the posterior probability that a pair is clean; knows p, sigma and the tasks: no score does better
    loo_gd      minus the leave-one-out error of gradient descent, -|y_i - c sum_(j != i) y_j x_j.x_i| with the step c
                that is best on N - 1 clean pairs; knows nothing of the corruption

Higher scores mean cleaner, as everywhere: above .5 a corrupted pair is recognised by a lower posterior, or by a larger
error. Neither depends on a model.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from icl_lab.baselines.registry import score_of_pairs
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.table import DETECTORS
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, same_shape
from icl_lab.src.context import Context

BOOTSTRAPS = 200
NORMAL = 1.96  # standard errors to either side of a 95 % interval
MOST_MASKS = 2**23  # masks times contexts that are tried: a quarter of a second; all 2048 contexts up to 12 pairs


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


def most_contexts(name: str, pairs: int) -> int:
    """How many contexts of so many pairs a detector is measured on at most."""
    return max(2, MOST_MASKS >> pairs) if name == "mask_bayes" else MOST_MASKS


@np.errstate(over="ignore", invalid="ignore")  # non-finite values are null in the file
def detectors(config: RegressionConfig, context: Context, twin: Batch, seed: int) -> dict[str, dict[str, Any]]:
    """Each detector in numbers, as `separation` has them, with `tasks`, the first contexts that it is measured on.

    `twin` is the same context without noise. Where a detector is not defined its numbers are nan; `reason` says why.
    """
    hit, pairs = np.asarray(context.hit), context.batch.y.shape[1]
    separations = {}
    for name in DETECTORS:
        score, tasks = score_of_pairs(name), min(len(hit), most_contexts(name, pairs))
        parts = [_first(batch, tasks) for batch in (context.batch, twin)]
        try:
            scores, reason = [score(part, config) for part in parts], {}
        except ConfigError as error:
            scores, reason = [np.full((tasks, pairs), np.nan)] * 2, {"reason": str(error)}
        separations[name] = {"tasks": tasks, **separation(scores[0], hit[:tasks], scores[1], seed), **reason}
    return separations


def _first(batch: Batch, tasks: int) -> Batch:
    return Batch(*(jax.device_get(part)[:tasks] for part in batch))
