"""How far two predictors of prompts of functions are from one another, in the units of the losses.

Of numbers the squared difference over the variance of the class's labels; of labels -1 and 1 and of C classes the
Jensen-Shannon divergence of the probabilities in nats, which is symmetric and at most log 2.
"""

from __future__ import annotations

import numpy as np
from scipy.special import rel_entr, softmax

from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.function_class import NUMBER, SIGN, FunctionClass


def distances(function: FunctionClass, first: np.ndarray, second: np.ndarray, batch: FunctionBatch) -> np.ndarray:
    """The distances [B, K] of two predictors' predictions [B, K], or logits [B, K, C], each by its prompt's member."""
    dim = batch.x.shape[-1]
    every = np.stack([_distance(member, first, second, dim) for member in function.members])
    chosen: np.ndarray = every[np.asarray(batch.member), np.arange(len(first))]
    return chosen


def _distance(function: FunctionClass, first: np.ndarray, second: np.ndarray, dim: int) -> np.ndarray:
    squared: np.ndarray = (first - second) ** 2
    if function.target == NUMBER:
        return squared / function.variance(dim)
    if function.target == SIGN:
        first, second = (np.stack([np.zeros_like(logit), logit], axis=-1) for logit in (first, second))
    return jensen_shannon(softmax(first, axis=-1), softmax(second, axis=-1))


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL(p | m) / 2 + KL(q | m) / 2 in nats, with m = (p + q) / 2, of probabilities p and q [..., C]. Lin 1991."""
    middle = (p + q) / 2
    divergence: np.ndarray = (rel_entr(p, middle) + rel_entr(q, middle)).sum(axis=-1) / 2
    return divergence
