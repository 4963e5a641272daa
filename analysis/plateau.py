"""When a run leaves its initial plateau: read from its losses over training, and in closed form from its small weights.

A run has left the plateau at the first record from which its loss is, and stays, below halfway between that of
predicting zero and that of the algorithm it comes to be. On a plateau of exponential growth, where an overlap with
the solution grows as scale * exp(rate * step), that is at log(1 / scale) / rate plus a constant.

How small weights of one linear layer grow under gradient flow, and when that ends the plateau, is known in closed form.

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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.src.data_config import LinearData
from icl_lab.src.one_step import one_step_loss, one_step_size
from icl_lab.store.metrics import read_metrics

FIELDS = ("eval_gd_loss",)  # of the records, besides the loss
DIVERGED = 1e3  # times the initial weights: the little that is left to infinity is a millionth of the time


class Escape(NamedTuple):
    """An escape at `step`, give or take `half_width`: half the distance of the two records between which it is.

    Infinite, with no width, if there is none by the last record.
    """

    step: float
    half_width: float


NEVER = Escape(float("inf"), 0.0)


def halfway(zero_loss: float, learnt_loss: float, share: float = 0.5) -> float:
    """The loss at a share of the way from the plateau's, that of predicting zero, to the one that is learnt."""
    return zero_loss + share * (learnt_loss - zero_loss)


def escape(
    steps: Sequence[float] | np.ndarray, losses: Sequence[float] | np.ndarray, below: float, for_good: bool = True
) -> Escape:
    """The first step from which the losses [T] are below a bound: `for_good`, or at all; NEVER if there is none.

    It is halfway between the record before and the first one that is below; a loss that is not a number is not below.
    Below from the first record on, the escape is there, with no width. On a noiseless plateau that ends on another one,
    noise of the second makes "for good" late: there the first time is meant.
    """
    is_below = np.asarray(losses, float) < below
    if not is_below.any() or (for_good and not is_below[-1]):
        return NEVER
    first = int(np.flatnonzero(~is_below)[-1]) + 1 if for_good and not is_below.all() else int(np.argmax(is_below))
    if first == 0:
        return Escape(float(steps[0]), 0.0)
    low, high = float(steps[first - 1]), float(steps[first])
    return Escape((low + high) / 2, (high - low) / 2)


def escape_in(
    records: Sequence[Mapping[str, Any]], zero_loss: float, share: float = 0.5, for_good: bool = True
) -> Escape:
    """The same of a run's metrics, whose `eval_gd_loss` is what is learnt; non-finite values are null there."""
    losses = [float("nan") if record["eval_loss"] is None else float(record["eval_loss"]) for record in records]
    below = halfway(zero_loss, float(records[-1]["eval_gd_loss"]), share)
    return escape([float(record["step"]) for record in records], losses, below, for_good)


def escape_of(run: Path, zero_loss: float, share: float = 0.5, for_good: bool = True) -> Escape:
    """The escape of a run with a baseline of gradient descent from a plateau of this loss."""
    return escape_in(read_metrics(run, FIELDS), zero_loss, share, for_good)


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
