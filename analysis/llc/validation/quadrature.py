"""nbeta E[L(w) - L(w*)] under exp(-nbeta L - gamma/2 |w - w*|^2) by quadrature, in NumPy: of few dimensions.

Each answer comes with its error: what it changes by where every second point is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.llc.validation.models import KnownLoss, mean_loss
from icl_lab.src.checks import require

WIDE = 9.0  # prior widths that an axis reaches to
SMALLEST = 1e-13  # size of a weight down to which an axis around 0 is spaced by its logarithm
AT_ONCE = 2**22  # points of a grid


class Answer(NamedTuple):
    """nbeta E[L(w) - L(w*)], its error, and what it is by."""

    value: float
    error: float
    by: str = "quadrature"


class Axis(NamedTuple):
    """Points of one weight [P] and the log of their share of the integral [P]."""

    points: np.ndarray
    log_weights: np.ndarray


def even_axis(centre: float, gamma: float, points: int = 4001) -> Axis:
    """Points at equal distances, to both sides of a weight's w*."""
    offsets = np.linspace(-WIDE, WIDE, points) / math.sqrt(gamma)
    return Axis(centre + offsets, -0.5 * gamma * offsets**2)


def log_axis(centre: float, gamma: float, points: int = 2001) -> Axis:
    """Points at equal distances in asinh(w / tiny), of both signs: for losses that are narrow around w = 0.

    As many more as a prior needs that is narrow around w* off 0.
    """
    widest = math.asinh((abs(centre) + WIDE / math.sqrt(gamma)) / SMALLEST)
    needed = 2 * widest * abs(centre) * math.sqrt(gamma) / 0.5
    scaled = np.linspace(-widest, widest, max(points, 2 * math.ceil(needed / 2) + 1))
    w = SMALLEST * np.sinh(scaled)
    return Axis(w, np.log(np.cosh(scaled)) - 0.5 * gamma * (w - centre) ** 2)


def integrated(model: KnownLoss, nbeta: float, gamma: float, axis_of: Callable[[float, float], Axis]) -> Answer:
    """The answer for a loss of one or two weights, each on the axis that axis_of(its w*, gamma) makes."""
    axes = [axis_of(centre, gamma) for centre in model.point]
    require(len(axes) <= 2, f"{model.name} has {len(axes)} weights; quadrature is for one or two")
    first, rest = axes[0], axes[1] if len(axes) == 2 else Axis(np.zeros(1), np.zeros(1))
    base = float(mean_loss(model, model.point))
    sums = np.zeros((2, 2))  # of all points and of every second: weights, and weights times losses
    chunk = 2 * max(1, AT_ONCE // (2 * len(rest.points) * len(np.asarray(model.losses(model.point, model.data)))))
    for begin in range(0, len(first.points), chunk):
        part = slice(begin, begin + chunk)
        grid = np.stack(np.meshgrid(first.points[part], rest.points, indexing="ij"), axis=-1)
        excess = mean_loss(model, grid[..., : len(axes)]) - base
        weights = np.exp(first.log_weights[part, None] + rest.log_weights - nbeta * excess)
        for row, step in enumerate((1, 2)):
            kept = weights[::step, ::step]
            sums[row] += kept.sum(), (kept * excess[::step, ::step]).sum()
    fine, coarse = nbeta * sums[:, 1] / sums[:, 0]
    return Answer(float(fine), abs(float(fine - coarse)))


def radial(model: KnownLoss, nbeta: float, gamma: float, points: int = 20001) -> Answer:
    """The answer for a loss of |w| alone around 0: one integral, of weight r^(d - 1)."""
    parameters = len(model.point)
    require(not model.point.any(), f"{model.name} has w* {model.at}; this quadrature is for the origin")
    axis = log_axis(0.0, gamma / 4, points)  # twice as wide: many dimensions lie farther out
    r = axis.points[axis.points > 0]
    logs = np.log(np.cosh(np.arcsinh(r / SMALLEST))) + (parameters - 1) * np.log(r) - 0.5 * gamma * r**2
    excess = mean_loss(model, r[:, None] * np.eye(1, parameters))
    logs = logs - nbeta * excess
    density = np.exp(logs - logs.max())
    fine, coarse = (nbeta * np.average(excess[::step], weights=density[::step]) for step in (1, 2))
    return Answer(float(fine), abs(float(fine - coarse)))


def rank_regression(inputs: int, hidden: int, outputs: int, nbeta: float, gamma: float, points: int = 241) -> Answer:
    """The answer for L = |B A|^2 at the origin, by the eigenvalues s_i of B^T B, of which there may be three.

    A is normal given B, which leaves sum_i (M/2) 2 nbeta s_i / (gamma + 2 nbeta s_i) under the density (Wishart)
    prod_i s_i^((|N - H| - 1)/2) e^(-gamma s_i / 2) (gamma + 2 nbeta s_i)^(-M/2) prod_(i<j) |s_i - s_j|.
    The kinks of the last factor leave an error in the square of the spacing, which is extrapolated to 0.
    """
    m, n = max(inputs, outputs), min(inputs, outputs)
    count = min(hidden, n)
    require(count <= 3, f"{count} eigenvalues; this quadrature is for three at most")
    low, high = SMALLEST * gamma / nbeta, 20 * (m + n + hidden) / gamma
    logs = np.linspace(math.log(low), math.log(high), points)
    s = np.exp(logs)
    log_weights = (abs(n - hidden) + 1) / 2 * logs - gamma * s / 2 - m / 2 * np.log(gamma + 2 * nbeta * s)
    weights, values = np.exp(log_weights - log_weights.max()), m / 2 * 2 * nbeta * s / (gamma + 2 * nbeta * s)
    fine, coarse = (_over_eigenvalues(s[::step], weights[::step], values[::step], count) for step in (1, 2))
    value = fine + (fine - coarse) / 3
    return Answer(value, abs(value - fine))


def _over_eigenvalues(s: np.ndarray, weights: np.ndarray, values: np.ndarray, count: int) -> float:
    """The mean of the sum of `values` over `count` eigenvalues, by symmetry that of one times their number."""
    apart = np.abs(s[:, None] - s)
    if count == 1:
        others = np.ones_like(s)
    elif count == 2:
        others = apart @ weights
    else:  # sum_jk |s_i - s_j| |s_i - s_k| |s_j - s_k| w_j w_k
        weighted = apart * weights
        others = np.einsum("ij,ij->i", weighted @ apart, weighted)
    return float(count * np.average(values, weights=weights * others))
