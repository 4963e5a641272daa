"""The exact posterior of random decision trees, by a recursion over the sub-cubes in which signs of inputs are fixed.

A tree of depth T tests the sign of a uniformly drawn coordinate at each node, and has leaf values N(0, 1). Given the
pairs in a cube c, the evidence of a subtree of depth t and the mean of its leaf at the query are

    Z_t(c) = (1/D) sum_j Z_{t-1}(c, x_j <= 0) Z_{t-1}(c, x_j > 0),   Z_0(c) = N(y_c; 0, 1 1^T + sigma^2 I),
    m_t(c) = sum_j p_j m_{t-1}(half of c in which the query is),     p_j the share of j in Z_t(c)

An empty half has Z = 1 and m = 0, so a coordinate that is tested twice changes nothing. Z is computed once a cube.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.posterior import NOISE_FREE, Posterior, before, in_blocks
from icl_lab.baselines.functions.prefixes import pairs
from icl_lab.src.checks import in_range, require, size

MOST_CUBES = 20_000  # D = 20 at depth 3, D = 10 at depth 5


class Cubes(NamedTuple):
    """The cubes of D signs of which at most T are fixed, in order of their number.

    fixed [C, D] is -1 or 1 where the sign is, else 0; low and high [C, D] are the cube's halves by each coordinate, the
    cube itself where it is fixed already; up_to [T + 1] is the number of cubes of at most t fixed signs.
    """

    fixed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    up_to: list[int]


def cubes_of(dim: int, depth: int) -> Cubes:
    """All cubes; `ConfigError` for more than 20 000 of them."""
    size("depth", depth, least=0)
    sizes = [comb(dim, fixed) * 2**fixed for fixed in range(depth + 1)]
    require(
        sum(sizes) <= MOST_CUBES,
        f"depth {depth} in {dim} dimensions has {sum(sizes)} sub-cubes; the posterior of decision trees is computed "
        f"for at most {MOST_CUBES}",
    )
    index: dict[tuple[int, ...], int] = {}
    for fixed in range(min(depth, dim) + 1):
        for places, signs in product(combinations(range(dim), fixed), product((-1, 1), repeat=fixed)):
            cube = [0] * dim
            for place, sign in zip(places, signs, strict=True):
                cube[place] = sign
            index[tuple(cube)] = len(index)

    def half(cube: tuple[int, ...], j: int, sign: int) -> int:
        return index.get(cube[:j] + (cube[j] or sign,) + cube[j + 1 :], 0)  # 0: of a leaf, which has none

    halves = [[[half(cube, j, sign) for j in range(dim)] for cube in index] for sign in (-1, 1)]
    return Cubes(np.array(list(index)), np.array(halves[0]), np.array(halves[1]), list(np.cumsum(sizes)))


def tree_posterior(x: ArrayLike, y: ArrayLike, depth: int, noise_variance: float = NOISE_FREE) -> Posterior:
    """The posterior of full binary trees of a depth; x [B, N, D], of which the signs count, and y [B, N].

    Right is x_j > 0. Cost: 1.3 s at D = 6, depth 3; 4 s at D = 6, depth 4; 40 s at D = 20, depth 3.
    """
    in_range("noise_variance", noise_variance, 0, open_low=True)
    inputs, labels = pairs(x, y)
    dim = inputs.shape[2]
    cubes = cubes_of(dim, depth)

    def of_block(inputs: np.ndarray, labels: np.ndarray) -> Posterior:
        right = np.moveaxis(inputs > 0, 2, 0)  # [D, B, N]
        log_z, mean = _leaves(cubes.fixed, np.where(right, 1.0, -1.0), labels, noise_variance)
        for left in reversed(range(depth)):
            low, high = (halves[: cubes.up_to[left]] for halves in (cubes.low, cubes.high))
            terms = log_z[low] + (low != high)[:, :, None, None] * log_z[high]
            top = terms.max(axis=1)
            shares = np.exp(terms - top[:, None])
            total = shares.sum(axis=1)
            mean = (shares * np.where(right[None], mean[high], mean[low])).sum(axis=1) / total
            log_z = top + np.log(total / dim)
        return Posterior(mean[0], log_z[0])

    return in_blocks(of_block, cubes.up_to[max(depth - 1, 0)] * dim * labels.shape[1], inputs, labels)


def _leaves(fixed: np.ndarray, signs: np.ndarray, labels: np.ndarray, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Z_0 and m_0 [C, B, N] of every cube as a leaf, given the pairs before each position; signs [D, B, N]."""
    inside = (
        np.einsum("cd,dbn->cbn", fixed.astype(float), signs, optimize=True) == np.abs(fixed).sum(axis=1)[:, None, None]
    )
    count, total, squares = (before(inside * power) for power in (np.ones_like(labels), labels, labels**2))
    apart = np.maximum(squares - total**2 / np.maximum(count, 1), 0)  # sum of squares about the mean
    square = apart / variance + total**2 / (np.maximum(count, 1) * (count + variance))
    determinant = count * np.log(2 * np.pi * variance) + np.log1p(count / variance)
    return -0.5 * (square + determinant), total / (count + variance)
