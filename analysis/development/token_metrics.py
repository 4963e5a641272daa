"""Behaviour of a decoder of symbols: which statistics of its source it has, and what later positions gain.

Log-probabilities [B, P, k] and losses [B, P] are of x_2 .. x_T of sequences x [B, T], P = T - 1, in nats. A row of a
table has kl_NAME, how far the model is from each predictor, from which its phase follows. Hoogland et al. 2024
(arXiv 2402.02364), Sec. 4; Edelman et al. 2024 (arXiv 2402.11004), Sec. 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, xlogy

from icl_lab.families.tokens.task import divergence

FEWEST_POSITIONS = 12  # of which the first twelfth to sixth is one at least
EARLY, LATE = (12, 6), 4  # from T / 12 to T / 6, and the last quarter
FEWEST_DISTINCT = 8  # symbols of a sequence that is repeated
FREQUENT = 1000  # n-grams
GRAMS = ("unigram", "bigram", "trigram")

# --- bigrams ---


def bigrams_of(pieces: Sequence[np.ndarray], num_symbols: int) -> np.ndarray:
    """q(b | a) [k, k] from counts in pieces of text; rows of symbols that nothing follows are 0."""
    counts = np.zeros(num_symbols**2)
    for piece in pieces:
        counts += np.bincount(piece[:-1].astype(np.int64) * num_symbols + piece[1:], minlength=num_symbols**2)
    square = counts.reshape(num_symbols, num_symbols)
    return np.asarray(square / np.maximum(square.sum(axis=1, keepdims=True), 1))


def bigram_divergences(q: np.ndarray, log_p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """sum_b -q(b | x_t) log p_t(b) - H(q(. | x_t)) at every position whose symbol has a q: [N].

    At least 0, and 0 for a model that is equal to q.
    """
    current = x[:, :-1]
    known = q.sum(axis=1)[current] > 0
    likely = q[current[known]]
    found: np.ndarray = (xlogy(likely, likely) - likely * log_p[known]).sum(axis=-1)
    return found


def least(steps: Sequence[int], values: Sequence[float]) -> tuple[float, int]:
    """The least of values over training, and its step."""
    place = int(np.argmin(values))
    return float(values[place]), int(steps[place])


# --- n-grams ---


def frequent(pieces: Sequence[np.ndarray], length: int, num_symbols: int, count: int = FREQUENT) -> np.ndarray:
    """The most frequent n-grams [N, n] in pieces of text, the most frequent first; of equals the first in order."""
    keys = []
    for piece in pieces:
        found = np.zeros(max(len(piece) - length + 1, 0), np.int64)
        for place in range(length):
            found = found * num_symbols + piece[place : place + len(found)]
        keys.append(found)
    distinct, times = np.unique(np.concatenate(keys), return_counts=True)
    most = distinct[np.argsort(-times, kind="stable")[:count]]
    return np.stack([most // num_symbols**place % num_symbols for place in reversed(range(length))], axis=1)


def ngram_score(losses: np.ndarray, alone: np.ndarray, length: int) -> float:
    """mean loss of x_n of windows [B, P] / mean loss [N] of the last symbol of frequent n-grams, given alone.

    1 for a model that knows nothing; higher for one that knows these n-grams.
    """
    return float(losses[:, length - 2].mean() / alone.mean())


# --- learning in context ---


def icl_scores(losses: np.ndarray) -> np.ndarray:
    """[B]: the mean loss over the last quarter of positions less that over P / 12 to P / 6, of each sequence.

    Negative where the context helps; its null is not 0, but what a predictor of few symbols has on the same sequences.
    """
    positions = losses.shape[1]
    early, late = (positions // part for part in EARLY), positions - positions // LATE
    found: np.ndarray = losses[:, late:].mean(axis=1) - losses[:, slice(*early)].mean(axis=1)
    return found


def distinct_repeats(seed: int, count: int, num_symbols: int, length: int) -> tuple[np.ndarray, int]:
    """Sequences [B, T] that begin with r r, r random and without a symbol twice, and |r|: T / 2, or k if it is less.

    Behind them r goes on.
    """
    half = min(length // 2, num_symbols)
    rng = np.random.default_rng(seed)
    r = np.stack([rng.permutation(num_symbols)[:half] for _ in range(count)])
    return np.tile(r, -(-length // half))[:, :length].astype(np.int32), half


def copy_weights(half: int, positions: int) -> np.ndarray:
    """Weights [P] of losses on r r whose sum is the copy loss: the mean over the second r less that over the first.

    Both are of the same symbols, all of r but its first.
    """
    weights = np.zeros(positions)
    weights[: half - 1], weights[half : 2 * half - 1] = -1, 1
    return weights / (half - 1)


def copy_scores(log_p: np.ndarray, x: np.ndarray, half: int) -> dict[str, float]:
    """copy_loss, and copy_accuracy: how often the most likely symbol in the second r is the right one; chance 1/k."""
    losses = -np.take_along_axis(log_p, x[:, 1:, None], axis=-1)[..., 0]
    second = slice(half, 2 * half - 1)
    right = log_p[:, second].argmax(axis=-1) == x[:, 1:][:, second]
    weights = copy_weights(half, losses.shape[1])
    return {"copy_loss": float(losses.mean(axis=0) @ weights), "copy_accuracy": float(right.mean())}


# --- phases ---


def tempered_divergence(of: np.ndarray, best: np.ndarray) -> float:
    """The least KL(of || p) on the path p ~ exp(a best), a from 0 to 1, from uniform to a predictor: [B, P, k].

    A model that only becomes surer of what Bayes says comes so near to the unigram rule without having it. The KL is
    convex in a.
    """

    def at(a: float) -> float:
        return divergence(of, log_softmax(a * best, axis=-1))

    return float(minimize_scalar(at, bounds=(0, 1), method="bounded", options={"xatol": 1e-4}).fun)


def gram(length: int) -> str:
    """The word for n symbols of which the last is predicted."""
    return GRAMS[length - 1] if length <= len(GRAMS) else f"{length}-gram"


def phases_of(source: str, chain_order: int, predictors: Sequence[str]) -> dict[str, str]:
    """The phase of a model that is nearest to each predictor."""
    if source == "text":
        return {name: name if name == "uniform" else gram(int(name.rsplit("_", 1)[1])) for name in predictors}
    same = {"pool_unigram": "pool's unigram", "pool": "pool"}
    if source == "markov":
        same |= dict.fromkeys(("induction", "induction_constant", "bayes"), gram(chain_order + 1))
    return {name: same.get(name, name) for name in predictors}


def phase(row: Mapping[str, Any], phases: Mapping[str, str]) -> str:
    """The phase of the predictor with the least kl_NAME.

    The one whose null_kl_NAME is not above its kl_NAME is left out: near to it is also what is on the way to another.
    """
    nearer = {name: row[f"kl_{name}"] for name in phases}
    counted = {name: far for name, far in nearer.items() if far < row.get(f"null_kl_{name}", np.inf)}
    return phases[min(counted, key=counted.__getitem__)]
