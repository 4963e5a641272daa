"""The exact posteriors of Boolean classes of D bits: conjunctions, disjunctions, sparse parities, majorities.

Bits are the signs of the inputs x [B, N, D]; labels y [B, N] are -1 and 1, and the mean is 2 P(y = 1) - 1.
Where no function fits all labels, those with the fewest errors count.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.enumerated import MOST_FUNCTIONS, Inputs, posterior_over, vectors
from icl_lab.baselines.functions.finite import exact
from icl_lab.baselines.functions.posterior import Posterior
from icl_lab.src.checks import in_range, require, size


class Literals(NamedTuple):
    """The probabilities that a bit is absent from a function, plain or negated."""

    absent: float
    plain: float
    negated: float


def conjunction_posterior(x: ArrayLike, y: ArrayLike, literals: Literals, planted: float = 0.0) -> Posterior:
    """The posterior of conjunctions: 1 where all literals hold, else -1; over all 3^D, for D up to 10.

    A share rho = `planted` of the inputs is made to satisfy the function, so that they tell of it: with l literals,

        p(x | f) = 2^-D (1 - rho + rho 2^l [f(x) = 1]),   to which the evidence of inputs is relative as 2^-D

    Cost: 11 s at D = 8, 130 s at D = 10.
    """
    table, log_prior = _functions(np.shape(x)[-1], literals)
    count = np.abs(table).sum(axis=1)

    def labels_of(products: np.ndarray) -> np.ndarray:
        return np.where(products == count[:, None], 1.0, -1.0)

    return posterior_over(table, bits(x), y, labels_of, exact(), log_prior, _planted(count, planted))


def disjunction_posterior(x: ArrayLike, y: ArrayLike, literals: Literals, planted: float = 0.0) -> Posterior:
    """The posterior of disjunctions: 1 where any literal holds, else -1; of no literal always -1.

    As the negation is a conjunction of the literals' negations, it is `conjunction_posterior` of -x and -y, negated;
    a share `planted` of the inputs is made to have the label -1.
    """
    found = conjunction_posterior(-bits(x), -np.asarray(y), literals, planted)
    return Posterior(-found.mean, found.log_evidence)


def parity_posterior(x: ArrayLike, y: ArrayLike, sparsity: int) -> Posterior:
    """The posterior of products of `sparsity` of the D bits, over all C(D, sparsity)."""
    dim = np.shape(x)[-1]
    size("sparsity", sparsity)
    require(sparsity <= dim, f"sparsity is {sparsity}; it must be at most the {dim} dimensions of the inputs")
    count = comb(dim, sparsity)
    require(count <= MOST_FUNCTIONS, f"there are {count} parities; at most {MOST_FUNCTIONS} are enumerated")
    table = np.array([np.isin(np.arange(dim), chosen) for chosen in combinations(range(dim), sparsity)], float)

    def labels_of(products: np.ndarray) -> np.ndarray:
        return 1 - (sparsity - products) % 4  # which is twice the number of bits -1

    return posterior_over(table, bits(x), y, labels_of, exact())


def majority_posterior(x: ArrayLike, y: ArrayLike) -> Posterior:
    """The posterior of the majority of a subset of the bits, uniform over all 2^(D-1) subsets of odd size."""
    table = vectors(np.shape(x)[-1], (0, 1))
    return posterior_over(table[table.sum(axis=1) % 2 == 1], bits(x), y, np.sign, exact())


def bits(x: ArrayLike) -> np.ndarray:
    """1 where an input is above 0, else -1."""
    return np.where(np.asarray(x) > 0, 1.0, -1.0)


def _functions(dim: int, literals: Literals) -> tuple[np.ndarray, np.ndarray]:
    """Literals 0, 1 or -1 [M, D] of positive probability, and their log probabilities [M]."""
    chances = np.array([literals.negated, literals.absent, literals.plain])
    fits = bool(np.all(chances >= 0)) and abs(chances.sum() - 1) < 1e-6
    require(fits, f"{literals} are the probabilities of literals; they must be at least 0 and sum to 1")
    table = vectors(dim, (-1, 0, 1))
    prior = np.prod(chances[table.astype(int) + 1], axis=1)
    return table[prior > 0], np.log(prior[prior > 0])


def _planted(count: np.ndarray, share: float) -> Inputs | None:
    """log p(x | f) + D log 2, of functions of so many literals [M]."""
    in_range("planted", share, 0, 0.999)
    if share == 0:
        return None
    gained = share * 2.0**count
    return lambda labels: np.log(1 - share + gained[:, None] * (labels == 1))
