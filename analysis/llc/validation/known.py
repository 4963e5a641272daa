"""Learning coefficients that are known: what an estimate of the local learning coefficient is compared with.

The coefficient lambda is the exponent of the volume of {w : L(w) < L(w*) + e} ~ e^lambda (log 1/e)^(m - 1) as e goes to
0, m its multiplicity (Watanabe 2009). At a finite nbeta the estimate's target is not lambda but nbeta E[L(w) - L(w*)],
which is exact here for quadratics and by quadrature for crossings of two parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from icl_lab.src.checks import require

POINTS = 1500  # of the quadrature, for each parameter
NARROWEST, WIDEST = -30.0, 3.0  # log of the smallest parameter that it resolves; of the widest in prior widths


class Coefficient(NamedTuple):
    """lambda and its multiplicity."""

    value: float
    multiplicity: int = 1


def regular(parameters: int) -> Coefficient:
    """d / 2: a minimum with a Hessian of full rank."""
    return Coefficient(parameters / 2)


def sum_of_powers(powers: Sequence[int]) -> Coefficient:
    """L = sum_i w_i^(2 k_i): sum_i 1 / (2 k_i)."""
    return Coefficient(sum(1 / (2 * k) for k in powers))


def normal_crossing(powers: Sequence[int]) -> Coefficient:
    """L = prod_i w_i^(2 k_i) at the origin: 1 / (2 max k); its multiplicity is the number of k_i that equal max k."""
    largest = max(powers)
    return Coefficient(1 / (2 * largest), list(powers).count(largest))


def reduced_rank(inputs: int, hidden: int, outputs: int, rank: int) -> Coefficient:
    """L = |B A - T|^2 of matrices A [H, M], B [N, H] and T of this rank; Aoyagi and Watanabe 2005, Main theorem."""
    m, h, n, r = inputs, hidden, outputs, rank
    require(0 <= r <= min(m, h, n), f"rank is {r}; it must be from 0 to {min(m, h, n)}")
    if m + h < n + r:
        return Coefficient((h * m - h * r + n * r) / 2)
    if n + h < m + r:
        return Coefficient((h * n - h * r + m * r) / 2)
    if m + n < h + r:
        return Coefficient(m * n / 2)
    odd = (m + h + n + r) % 2
    value = (-((h + r) ** 2) - m**2 - n**2 + 2 * (h + r) * (m + n) + 2 * m * n + odd) / 8
    return Coefficient(value, 1 + odd)


def deep_linear(widths: Sequence[int], rank: int) -> Coefficient:
    """L = |W_L ... W_1 - T|^2 of matrices between layers of these widths and T of this rank; Aoyagi 2024, Theorem 1."""
    require(len(widths) > 1, "a deep linear network has two widths or more")
    require(0 <= rank <= min(widths), f"rank is {rank}; it must be from 0 to {min(widths)}")
    excess = sorted(width - rank for width in widths)
    last = next(count for count in range(1, len(excess)) if _ends_at(excess, count))
    chosen = excess[: last + 1]
    total = sum(chosen)
    a = total - (math.ceil(total / last) - 1) * last
    pairs = sum(x * y for x, y in combinations(chosen, 2))
    mixed = a * (last - a) / (4 * last) - last * (last - 1) / 4 * (total / last) ** 2 + pairs / 2
    return Coefficient((rank * (widths[0] + widths[-1]) - rank**2) / 2 + mixed, a * (last - a) + 1)


def _ends_at(excess: Sequence[int], count: int) -> bool:
    """Whether the count + 1 smallest are Aoyagi's set: no smaller one is too large for it, no other belongs to it."""
    total, others = sum(excess[: count + 1]), excess[count + 1 :]
    return total >= count * excess[count] and (not others or total < count * others[0])


def quadratic(
    eigenvalues: np.ndarray, nbeta: float, gamma: float, eps: float = 0.0, slopes: np.ndarray | float = 0.0
) -> float:
    """nbeta E[L(w) - L(w*)] of L = L(w*) + sum_i g_i u_i + h_i u_i^2 / 2, u = w - w*, by full-batch SGLD of step eps.

    sum_i (1/2) (nbeta h_i / a_i) / (1 - eps a_i / 4), a_i = nbeta h_i + gamma; stable where eps a_i < 4. Slopes g, of a
    w* that is no minimum, move the mean of u to -nbeta g / a and add -nbeta^2 g^2 / a (1 - nbeta h / (2 a)): below 0.
    """
    pulls = nbeta * np.asarray(eigenvalues, float) + gamma
    require(bool((eps * pulls < 4).all()), f"eps is {eps:g}; above {4 / pulls.max():.3g} the chain diverges")
    share = nbeta * np.asarray(eigenvalues, float) / pulls
    spread = 0.5 * share / (1 - eps * pulls / 4)
    return float(np.sum(spread - (nbeta * np.asarray(slopes)) ** 2 / pulls * (1 - share / 2)))


def crossing(powers: tuple[int, int], nbeta: float, gamma: float) -> float:
    """nbeta E[L] of L = w1^(2 k1) w2^(2 k2) under exp(-nbeta L - gamma/2 |w|^2), by the trapezoid rule in log w."""
    logs = np.linspace(NARROWEST, WIDEST - 0.5 * math.log(gamma), POINTS)
    weight = logs - 0.5 * gamma * np.exp(2 * logs)  # log of the prior, and of dw / dlog w
    losses = np.exp(2 * (powers[0] * logs[:, None] + powers[1] * logs[None, :]))
    density = np.exp(weight[:, None] + weight[None, :] - nbeta * losses)
    return float(nbeta * np.sum(losses * density) / np.sum(density))
