"""The posterior on a corrupted context, of the query's label and of which pairs are clean: all masks are tried.

Given the mask m of hit pairs, labels and weights are jointly Gaussian, so the posterior mean of the query's label is a
mixture over masks, each weighed by its prior p^|m| (1 - p)^(N - |m|) and the density of the labels under it. The 2^N
masks form a tree: pair by pair, every prefix branches into clean and hit. A prefix carries the covariance of the pairs
to come and of the query, given the labels so far; it shrinks as the prefixes multiply, so all levels together cost
O(2^N) for a task and not O(2^N N^3).

`HITS` gives the update for a hit pair in each noise mode for which this holds; others are not supported.

Shapes: R pairs to come, P = 2^(N - R) prefixes, C tasks in a chunk; float64 NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from icl_lab.baselines.linear_mmse import linear_mmse
from icl_lab.baselines.registry import Contexts
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.config import ContextConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import NOISE_MODES
from icl_lab.src.registry import Functions

MAX_PAIRS = 16  # 65 536 masks: a millisecond or two a task
CELLS = 2**16  # masks times tasks of a chunk: a few MiB, whatever N is
LEAST_PIVOT = 1e-15  # of a label's variance: rounding, where a pair follows from the others
LEAST_VARIANCE = 1e-200  # of a label whose input is 0


class MaskPosterior(NamedTuple):
    """What is expected given the pairs: prediction [B], the query's label; clean [B, N], whether a pair was not hit."""

    prediction: np.ndarray
    clean: np.ndarray


class NextPair(NamedTuple):
    """The next pair to condition on, under every prefix of masks: its label and the label's distribution.

    table [R + 1, R + 1, P, C], whose first row and column are the pair's, the last column the labels less what is
    expected of them; pivot and surprise [P, C], the clean label's variance and the label less its mean; label and
    variance [C], the label and its variance given nothing.
    """

    table: np.ndarray
    pivot: np.ndarray
    surprise: np.ndarray
    label: np.ndarray
    variance: np.ndarray


def condition(table: np.ndarray, pivot: np.ndarray, out: np.ndarray) -> None:
    """One step of Cholesky's elimination: out_ij = table_ij - table_i0 table_0j / pivot for i, j > 0."""
    np.multiply(table[1:, :1], table[:1, 1:] / pivot, out=out)
    np.subtract(table[1:, 1:], out, out=out)


def log_density(value: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """log N(value; 0, variance) + log(2 pi)/2."""
    density: np.ndarray = -0.5 * (np.log(variance) + value**2 / variance)
    return density


def _label_noise(pair: NextPair, context: ContextConfig, out: np.ndarray) -> np.ndarray:
    """A hit label has sigma^2 more variance."""
    noisy = pair.pivot + context.noise_sigma**2
    condition(pair.table, noisy, out=out)
    return log_density(pair.surprise, noisy)


def _random_pairs(pair: NextPair, context: ContextConfig, out: np.ndarray) -> np.ndarray:
    """A random pair carries no information about the task."""
    out[...] = pair.table[1:, 1:]
    return log_density(pair.label, pair.variance)


# noise mode -> what a hit pair tells: writes the table without the pair to out [R, R, P, C], gives the label's log
# density, [P, C] or [C]
HITS: Functions[Callable[[NextPair, ContextConfig, np.ndarray], np.ndarray]] = Functions(
    NOISE_MODES, "mask_bayes", {"label_noise": _label_noise, "random_pairs": _random_pairs}
)


def check_masks(data: DataConfig, context: ContextConfig) -> None:
    """Raises `ConfigError`, a `ValueError`, where `mask_bayes` is undefined or intractable."""
    require(data.num_distractors == 0, "the posterior over masks is not defined for distractor labels")
    gaussian = data.equal_tasks and data.task_distribution == "gaussian"
    require(
        gaussian, "the posterior over masks is defined only for linear labels and isotropic Gaussian tasks of mean 0"
    )
    if context.hit_rate == 0:
        return
    require(
        context.noise_mode in HITS,
        f"the noise mode {context.noise_mode!r} is registered without its mask_bayes",
    )
    if context.hit_rate == 1:
        return
    require(
        data.num_pairs <= MAX_PAIRS,
        f"num_pairs is {data.num_pairs}; the posterior over masks tries all 2^{data.num_pairs} of them, so it must be "
        f"at most {MAX_PAIRS}",
    )
    require(
        data.noise_std > 0 or data.num_pairs <= data.dim,
        f"num_pairs is {data.num_pairs} with dim {data.dim} and no observation noise; the labels of more clean pairs "
        "than dimensions have no density, so the posterior over masks needs noise_std above 0 or num_pairs at most dim",
    )


def mask_bayes(batch: Batch, data: DataConfig, context: ContextConfig) -> np.ndarray:
    """Predictions [B], float64: the posterior mean over the weights and all 2^N masks of hit pairs.

    No predictor has a smaller expected squared error, unless it knows the placement. At p = 0 and p = 1 only one mask
    is left and it is `linear_mmse`. What it knows, and where it raises `ConfigError`: `mask_posterior`.
    """
    return mask_posterior(batch, data, context).prediction


def clean_posterior(batch: Batch, config: Contexts) -> np.ndarray:
    """P(pair j is clean | the context's pairs) [B, N], summed over all 2^N masks of hit pairs."""
    return mask_posterior(batch, config.data, config.eval).clean


def mask_posterior(batch: Batch, data: DataConfig, context: ContextConfig) -> MaskPosterior:
    """The posterior mean of the query's label [B] and the probability that a pair is clean [B, N], float64.

    Knows the corruption, its p and sigma, and the distribution of tasks; not which pairs were hit, nor the placement.
    With s = weight_scale and K = X X^T,

        prediction = sum_m P(m | X, y) E[w | X, y, m].x_query,   clean_j = sum over m with m_j = 0 of P(m | X, y),
        P(m | X, y) ~ p^|m| (1 - p)^(N - |m|) p(y | X, m),
        label noise    y | m ~ N(0, s^2 K + noise_std^2 I + sigma^2 diag(m))
        random pairs   the same without sigma for the clean pairs; y_j ~ N(0, s^2 |x_j|^2 + noise_std^2), on its own,
                       for a hit one

    Of all scores of pairs, clean_j orders clean before hit pairs best (Neyman and Pearson), unless one knows the
    placement; at p = 0 it is 1 and at p = 1 it is 0. Raises `ConfigError` for more than 16 pairs, for a noise mode that
    `HITS` does not have, and for more pairs than dimensions without observation noise, where a clean mask has a
    singular covariance.
    """
    _, pairs, dim = batch.x.shape
    check_masks(replace(data, num_pairs=pairs, dim=dim), context)
    if context.hit_rate in (0, 1):
        prediction = np.asarray(linear_mmse(batch, data, context), np.float64)
        return MaskPosterior(prediction, np.full(batch.y.shape, 1.0 - context.hit_rate))
    x, y, x_query = (np.asarray(part, np.float64) for part in (batch.x, batch.y, batch.x_query))
    size = max(1, CELLS >> pairs)
    chunks = [slice(start, start + size) for start in range(0, len(y), size)]
    parts = [_mixture(x[part], y[part], x_query[part], data, context) for part in chunks]
    return MaskPosterior(*map(np.concatenate, zip(*parts, strict=True)))


def _mixture(
    x: np.ndarray, y: np.ndarray, x_query: np.ndarray, data: DataConfig, context: ContextConfig
) -> MaskPosterior:
    """The posterior of a chunk: the leaves' predictions, and each pair's clean ones, weighed by their masks'."""
    table, variances = _first_table(x, y, x_query, data)
    log_weights = np.zeros((1, len(y)))
    for label, variance in zip(y.T, variances, strict=True):
        table, log_weights = _branch(table, log_weights, label, variance, context)
    weights = np.exp(log_weights - log_weights.max(axis=0))
    predictions: np.ndarray = -(weights * table[0, 0]).sum(axis=0) / weights.sum(axis=0)
    return MaskPosterior(predictions, _clean_shares(weights, y.shape[1]))


def _clean_shares(weights: np.ndarray, pairs: int) -> np.ndarray:
    """The share [C, N] of the leaves' weights [2^N, C] in which a pair is clean.

    The last pair is clean in the first half of the leaves; added up, the halves are the leaves of the pairs before it.
    """
    shares = np.empty((weights.shape[1], pairs))
    for pair in reversed(range(pairs)):
        clean, hit = np.split(weights, 2)
        shares[:, pair] = clean.sum(axis=0) / (clean.sum(axis=0) + hit.sum(axis=0))
        weights = clean + hit
    return shares


def _first_table(x: np.ndarray, y: np.ndarray, x_query: np.ndarray, data: DataConfig) -> tuple[np.ndarray, np.ndarray]:
    """The table [N + 1, N + 1, 1, C] before any label is known, and each label's own variance [N, C].

    Rows are the pairs and the query, columns the pairs and the labels: covariances, then labels less what is expected
    of them; in the corner the query's, as its label is unknown and counts as 0.
    """
    size, pairs, _ = x.shape
    rows = np.concatenate([x, x_query[:, None]], axis=1)
    table = np.zeros((pairs + 1, pairs + 1, 1, size))
    table[:, :-1, 0] = np.einsum("brd,bnd->rnb", data.weight_scale * rows, data.weight_scale * x)
    table[:-1, -1, 0] = y.T
    diagonal = np.arange(pairs)
    table[diagonal, diagonal] += data.noise_std**2
    return table, np.maximum(table[diagonal, diagonal, 0], LEAST_VARIANCE)


def _branch(
    table: np.ndarray, log_weights: np.ndarray, label: np.ndarray, variance: np.ndarray, context: ContextConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Conditions on the next pair: table [R + 1, R + 1, P, C] -> [R, R, 2P, C], log weights [P, C] -> [2P, C].

    In the first half of the prefixes the pair is clean, in the second it is hit. `label` [C] is its label and
    `variance` [C] the label's variance, given nothing.
    """
    size, _, prefixes, tasks = table.shape
    pivot, surprise = np.maximum(table[0, 0], LEAST_PIVOT * variance), table[0, -1]
    after = np.empty((size - 1, size - 1, 2 * prefixes, tasks))
    condition(table, pivot, out=after[:, :, :prefixes])
    pair = NextPair(table, pivot, surprise, label, variance)
    hit = HITS[context.noise_mode](pair, context, after[:, :, prefixes:])
    clean = np.log1p(-context.noise_p) + log_density(surprise, pivot)
    return after, np.concatenate([log_weights + clean, log_weights + (np.log(context.noise_p) + hit)])
