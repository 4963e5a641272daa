"""How an estimate changes with nbeta and gamma, and its degree, from the draws that it is of.

With X = nbeta (L(w) - L(w*)), u = w - w*, V = nbeta u.grad L(w) and LLC = E X (differentiate log Z twice):

    d LLC / d ln nbeta = LLC - Var X
    d LLC / d ln gamma = -Cov(X, gamma |u|^2 / 2) = -(E V - Cov(X, V)) / 2

The two forms of the second are equal, for E[gamma |u|^2 phi] = E[d phi + u.grad phi - V phi] of any phi (Stein 1981).
The last one has no noise of directions that the loss does not see, and more of the bias of the step size. Each divided
by LLC is a logarithmic derivative.

    degree D = E V / E X

2 for a quadratic loss at any gamma, k for one that is homogeneous of degree k; it says nothing off a minimum.

A draw's losses on a batch have the noise of the batch, which a variance would count: every covariance here is of a
draw's two independent batches, which is unbiased for that of all data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

PREFERRED = 2  # times: by how much the error of the second form has to be smaller


class Slopes(NamedTuple):
    """Logarithmic derivatives and the degree, each with a standard error by leaving out one chain at a time."""

    d_nbeta: float
    d_nbeta_error: float
    d_gamma: float
    d_gamma_error: float
    degree: float
    degree_error: float


UNKNOWN = Slopes(*[math.nan] * 6)


def slopes(
    checks: Mapping[str, np.ndarray], draws: Mapping[str, np.ndarray], nbeta: float, gamma: float, forgets: bool
) -> Slopes:
    """The derivatives of chains, without their burn-in.

    checks: first and second [C, K] of the excess loss, first_slope and second_slope [C, K] of u.grad L, distance [C,
    K]; draws: excess and slope [C, T] (slope may be missing, as may those above but first, second and distance).
    forgets: whether w* is forgotten within the burn-in, without which |u|^2 is not that of the posterior.
    """
    if not np.isfinite(draws["excess"]).all():
        return UNKNOWN
    x, y = (nbeta * checks[name] for name in ("first", "second"))
    own = nbeta * draws["excess"].mean(axis=1)
    mean = _over_chains(lambda kept: own[kept].mean(), len(x))
    growth = _over_chains(lambda kept: 1 - _covariance(x, y, kept) / own[kept].mean(), len(x))
    pulls = []
    if "distance" in checks and forgets:
        pull = gamma * checks["distance"] ** 2 / 2
        both = (x + y) / 2
        pulls.append(_over_chains(lambda kept: -_covariance(both, pull, kept) / own[kept].mean(), len(x)))
    degree = math.nan, math.nan
    if "slope" in draws:
        inner = nbeta * draws["slope"].mean(axis=1)
        degree = _over_chains(lambda kept: inner[kept].mean() / own[kept].mean(), len(x))
        first, second = (nbeta * checks[name] for name in ("first_slope", "second_slope"))

        def stein(kept: np.ndarray) -> float:
            crossed = (_covariance(x, second, kept) + _covariance(y, first, kept)) / 2
            return float(-0.5 * (inner[kept].mean() - crossed) / own[kept].mean())

        pulls.append(_over_chains(stein, len(x)))
    best = _preferred(pulls)
    if mean[0] == 0:
        return UNKNOWN
    return Slopes(*growth, *best, *degree)


def _preferred(pulls: list[tuple[float, float]]) -> tuple[float, float]:
    """The first form, unless the error of the second is clearly smaller: that one has the bias of the step size."""
    if not pulls:
        return math.nan, math.nan
    return pulls[-1] if PREFERRED * pulls[-1][1] < pulls[0][1] else pulls[0]


def _covariance(x: np.ndarray, y: np.ndarray, kept: np.ndarray) -> float:
    """Over the draws of the chains that are kept, all of which have one mean."""
    some, others = x[kept].ravel(), y[kept].ravel()
    return float(np.mean((some - some.mean()) * (others - others.mean())) * len(some) / max(len(some) - 1, 1))


def _over_chains(of: Callable[[np.ndarray], float], chains: int) -> tuple[float, float]:
    """A number of all chains and its standard error by the jackknife."""
    with np.errstate(divide="ignore", invalid="ignore"):
        everything = float(of(np.arange(chains)))
        left_out = np.array([of(np.delete(np.arange(chains), i)) for i in range(chains)])
    return everything, float(math.sqrt((chains - 1) / chains * np.sum((left_out - left_out.mean()) ** 2)))
