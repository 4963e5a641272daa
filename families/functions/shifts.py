"""Shifts of prompts at evaluation: other inputs, or other labels, than in training. Garg et al. 2022, Sec. 4.

A shift changes the inputs x [B, K, D] of prompts whose functions stay, from which labels follow anew. Those `of_query`
make a prompt for each position k: its inputs before k are the context, input k is the query, the others mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from icl_lab.families.functions.function_class import NUMBER, FunctionClass

Random = np.random.Generator
Inputs = Callable[[np.ndarray, int, Random], np.ndarray]  # x [B, K, D], the position k -> x [B, K, D]


def _same(x: np.ndarray, k: int, random: Random) -> np.ndarray:
    return x


class Shift(NamedTuple):
    """A shift: what it does in words, to inputs, to labels, and which positions it is defined at.

    least, below: positions from `least` on, and below so many times D. scale: of labels, shown and targets. noise: of
    labels that are shown, a standard deviation, after which labels are rescaled to their former variance. permuted:
    labels of the context change places. of_gaussians: only for inputs N(0, I); of_numbers: for labels that are numbers.
    """

    text: str
    inputs: Inputs = _same
    of_query: bool = False
    least: int = 0
    below: float = math.inf
    scale: float = 1.0
    noise: float = 0.0
    permuted: bool = False
    of_gaussians: bool = True
    of_numbers: bool = False

    def why_not(self, function: FunctionClass) -> str:
        """Why a class has no such shift; "" if it has."""
        if self.of_gaussians and any(type(each).inputs is not FunctionClass.inputs for each in function.members):
            return "inputs of this class are not N(0, I)"
        if self.of_numbers and {member.target for member in function.members} != {NUMBER}:
            return "labels of this class are not numbers"
        return ""

    def has(self, k: int, dim: int) -> bool:
        """Whether it is defined at a position."""
        return self.least <= k < self.below * dim


def _with_query(context: np.ndarray, x: np.ndarray, k: int, query: np.ndarray) -> np.ndarray:
    """These inputs before k, and this query [B, D] at k."""
    found = np.where(np.arange(x.shape[1])[None, :, None] < k, context, x)
    found[:, k] = query
    return found


def _signs(x: np.ndarray, random: Random) -> np.ndarray:
    """A sign for each coordinate of a prompt [B, 1, D]."""
    return random.choice([-1.0, 1.0], (len(x), 1, x.shape[2]))


def random_quadrants(x: np.ndarray, k: int, random: Random) -> np.ndarray:
    """The context's inputs lie in one random orthant, the query anywhere."""
    return _with_query(np.abs(x) * _signs(x, random), x, k, x[:, k])


def opposite_quadrants(x: np.ndarray, k: int, random: Random) -> np.ndarray:
    """The context's inputs lie in one random orthant, the query in the opposite one."""
    signs = _signs(x, random)
    return _with_query(np.abs(x) * signs, x, k, -np.abs(x[:, k]) * signs[:, 0])


def orthogonal_query(x: np.ndarray, k: int, random: Random) -> np.ndarray:
    """The query is projected on the complement of the context's span, and has its former norm."""
    query = x[:, k]
    if k == 0:
        return x
    basis = np.linalg.qr(np.swapaxes(x[:, :k], 1, 2).astype(np.float64))[0]
    left = query - np.einsum("bdi,bei,be->bd", basis, basis, query)
    former, now = (np.linalg.norm(part, axis=1, keepdims=True) for part in (query, left))
    return _with_query(x, x, k, left * former / now)


def repeated_query(x: np.ndarray, k: int, random: Random) -> np.ndarray:
    """The query is a random input of the context."""
    chosen = random.integers(0, k, len(x))
    return _with_query(x, x, k, x[np.arange(len(x)), chosen])


def _rotation(dim: int, random: Random) -> np.ndarray:
    """A random orthogonal matrix [D, D]."""
    found: np.ndarray = np.linalg.qr(random.standard_normal((dim, dim)))[0]
    return found


def half_subspace(x: np.ndarray, k: int, random: Random) -> np.ndarray:
    """Inputs lie in a random subspace of half the dimension, D rounded down, one for all prompts; E |x|^2 stays D."""
    dim = x.shape[2]
    basis = _rotation(dim, random)[:, : max(dim // 2, 1)]
    found: np.ndarray = math.sqrt(dim / basis.shape[1]) * x @ basis @ basis.T
    return found


def skewed_covariance(x: np.ndarray, k: int, random: Random) -> np.ndarray:
    """x = A z, A's eigenvalues as 1/i in a random basis, one for all prompts; E |x|^2 stays D."""
    dim = x.shape[2]
    basis, values = _rotation(dim, random), 1 / np.arange(1, dim + 1)
    values = values * math.sqrt(dim / (values**2).sum())
    found: np.ndarray = x @ (basis * values) @ basis.T
    return found


def _scaled(factor: float) -> Inputs:
    return lambda x, k, random: factor * x


FACTORS: Mapping[str, float] = {"a_third": 1 / 3, "half": 1 / 2, "twice": 2.0, "three_times": 3.0}
NONE = "none"
SHIFTS: Mapping[str, Shift] = {
    NONE: Shift("as in training", of_gaussians=False),
    "random_quadrants": Shift("the context's inputs in one random orthant, the query anywhere", random_quadrants, True),
    "opposite_quadrants": Shift(
        "the context in one random orthant, the query in the opposite", opposite_quadrants, True
    ),
    "orthogonal_query": Shift("the query orthogonal to the context, k < D", orthogonal_query, True, below=1.0),
    "repeated_query": Shift("the query equal to an input of the context", repeated_query, True, 1, of_gaussians=False),
    "half_subspace": Shift("inputs in a subspace of half the dimension", half_subspace),
    "skewed_covariance": Shift("inputs of a covariance with eigenvalues as 1 / i^2", skewed_covariance),
    **{f"x_{name}": Shift(f"inputs times {factor:.3g}", _scaled(factor)) for name, factor in FACTORS.items()},
    **{
        f"y_{name}": Shift(f"labels times {factor:.3g}", scale=factor, of_gaussians=False, of_numbers=True)
        for name, factor in FACTORS.items()
    },
    "noisy_labels": Shift("noise N(0, 1) in the context's labels", noise=1.0, of_gaussians=False, of_numbers=True),
    "permuted_labels": Shift(
        "labels of the context in random places", of_query=True, permuted=True, of_gaussians=False
    ),
}
