"""How small weights of one linear layer grow under gradient flow, and when that ends the plateau: closed forms.

Tokens are e = (x, y), the query's (x_q, 0); M = W_Q W_K^T and c, the label's column of W_V P, for rows, give the
prediction -x_q^T M S c with S = sum_i e_i e_i^T. Only the product of the prediction with the target is of the lowest
order. With N pairs, y = w.x, w ~ N(0, s^2 I), coordinates of x independent with mean 0 and variance v, E[w_a S] has x_a
times y alone, so

    loss = v s^2 D / 2 + kappa (c_y tr M_xx + c_x . m_y) + higher orders,   kappa = N v^2 s^2,

M_xx the first D columns of M's first D rows, m_y the next column. What follows is derived here from this:

- Merged matrices: the flow is linear, t = tr M_xx / sqrt(D) and c_y drive each other, and u = (t - c_y) / sqrt(2) grows
  as exp(lambda t) with lambda = kappa sqrt(D), the largest of the rates. The time is log(1 / scale) / lambda + const.
- Four factors: the loss is of fourth order, the flow of third, and time scales as scale^-2 exactly; the constant is
  the time at which the flow from given weights diverges. It may do so in c_x . m_y instead, of rank one: then the layer
  predicts along one direction of the inputs alone, which makes 1/D of the way, and stays on a second plateau.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from icl_lab.src.data_config import LinearData
from icl_lab.src.one_step import one_step_loss, one_step_size

DIVERGED = 1e3  # times the initial weights: the little that is left to infinity is a millionth of the time


def coupling(data: LinearData) -> float:
    """kappa = N v^2 s^2."""
    return data.num_pairs * data.input_variance**2 * data.task_variance


def growth_rate(data: LinearData) -> float:
    """lambda = kappa sqrt(D), of merged matrices: the largest singular value of the loss's bilinear form in M and c."""
    return coupling(data) * math.sqrt(data.dim)


def growing_part(merged: Mapping[str, np.ndarray], dim: int) -> float:
    """u = (t - c_y) / sqrt(2) of merged matrices of one head: their component where growth is fastest."""
    kq, pv = (np.asarray(merged[name], np.float64)[0] for name in ("key_query", "projection_value"))
    return float(np.trace(kq[:dim, :dim]) / math.sqrt(dim) - pv[dim, dim]) / math.sqrt(2)


def merged_escape(merged: Mapping[str, np.ndarray], data: LinearData, lr: float, share: float = 0.5) -> float:
    """The step at which gradient descent from these merged matrices has made a share of the way to one tuned step.

    Along the growing direction p = u^2 / (2 sqrt(D)) is the step size of gradient descent that the layer takes, c* that
    which is best, and the loss is quadratic in p: p' = 2 lambda p (1 - p / c*), the logistic equation. A share f of the
    fall in loss is made at p / c* = 1 - sqrt(1 - f). A step multiplies u by 1 + lr lambda.
    """
    best = one_step_size(data)
    start = growing_part(merged, data.dim) ** 2 / (2 * math.sqrt(data.dim)) / best
    reached = 1 - math.sqrt(1 - share)
    odds = reached / (1 - reached) * (1 - start) / start
    return math.log(odds) / (2 * math.log1p(lr * growth_rate(data)))


class Divergence(NamedTuple):
    """The step at which a flow diverges, and whether in a part of rank one, which leads to the second plateau."""

    step: float
    rank_one: bool


def factors_escape(factors: Mapping[str, np.ndarray], data: LinearData, lr: float) -> Divergence:
    """Where the flow of the fourth-order loss, from these factors of one head, diverges.

    The step scales as weights^-2. What higher orders of the loss add at the end is not in it: it matters less, the
    smaller the weights.
    """
    weights = [np.asarray(factors[name], np.float64)[:, 0] for name in ("query", "key", "value")]
    weights.append(np.asarray(factors["projection"], np.float64)[0][:, data.dim])
    scale = math.sqrt(np.mean([np.mean(part**2) for part in weights]))
    time, rank_one = _divergence([part / scale for part in weights], data.dim)
    return Divergence(time / (coupling(data) * lr * scale**2), rank_one)


def _divergence(weights: list[np.ndarray], dim: int) -> tuple[float, bool]:
    """The time at which theta' = -grad f diverges, f = c_y tr M_xx + c_x . m_y, M = Q K^T, c = V p; and whether the
    second term is then the larger.
    """
    from scipy.integrate import solve_ivp

    shapes, ends = [part.shape for part in weights], np.cumsum([part.size for part in weights])

    def parts_of(flat: np.ndarray) -> list[np.ndarray]:
        return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]

    def flow(_: float, flat: np.ndarray) -> np.ndarray:
        query, key, value, column = parts_of(flat)
        scores, pooled = query @ key.T, value @ column
        of_scores, of_pooled = np.zeros_like(scores), np.zeros_like(pooled)
        of_scores[:dim, :dim], of_scores[:dim, dim] = pooled[dim] * np.eye(dim), pooled[:dim]
        of_pooled[dim], of_pooled[:dim] = np.trace(scores[:dim, :dim]), scores[:dim, dim]
        parts = (of_scores @ key, of_scores.T @ query, np.outer(of_pooled, column), value.T @ of_pooled)
        return -np.concatenate([part.ravel() for part in parts])

    def far(_: float, flat: np.ndarray) -> float:
        return float(np.abs(flat).max() - DIVERGED)

    far.terminal = True  # type: ignore[attr-defined]
    start = np.concatenate([part.ravel() for part in weights])
    solved = solve_ivp(flow, (0.0, np.inf), start, "DOP853", events=far, rtol=1e-8, atol=1e-10)
    query, key, value, column = parts_of(solved.y[:, -1])
    scores, pooled = query @ key.T, value @ column
    of_trace, of_rank_one = pooled[dim] * np.trace(scores[:dim, :dim]), pooled[:dim] @ scores[:dim, dim]
    return float(solved.t[-1]), bool(abs(of_rank_one) > abs(of_trace))


def least_loss(data: LinearData) -> float:
    """The loss of one tuned step of gradient descent, which one layer comes to have."""
    return one_step_loss(data, one_step_size(data))
