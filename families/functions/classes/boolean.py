"""Boolean functions of inputs -1 and 1, of which there are finitely many. Bhattamishra et al. 2023, Sec. 3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.families.functions.classes.linear import bits, some_of
from icl_lab.families.functions.function_class import SIGN, FunctionClass
from icl_lab.src.checks import require
from icl_lab.src.fields import field
from icl_lab.src.lazy import jax, jnp

if TYPE_CHECKING:
    from jax import Array

MOST = 600  # inputs up to which functions are counted: 3^600 is a number of float64


@dataclass(frozen=True)
class Boolean(FunctionClass):
    """A class of functions of inputs that are -1 or 1, uniform; labels are -1 (false) and 1 (true)."""

    target = SIGN
    baselines = ("nearest_neighbours",)

    def inputs(self, key: Array, parameters: Array, shape: tuple[int, int]) -> Array:
        """-1 or 1."""
        return jax.random.rademacher(key, shape, "float32")


@dataclass(frozen=True)
class Conjunctions(Boolean):
    """True if all literals hold; each input is absent, plain or negated.

    A share of the inputs is made to satisfy the function, so that about half of the labels are true: inputs then tell
    of the function. Literals [D] are 1, -1, or 0 where an input is absent.
    """

    kind: str = "conjunctions"
    absent: float = field(0.7, "probability that an input is absent; plain and negated are as likely", low=0, high=1)
    planted_share: float = field(0.3, "share of the inputs that are made to decide the function", low=0, high=0.99)
    planted = True

    def sample(self, key: Array, active: Array) -> Array:
        """The literals [D]."""
        absent_key, sign_key = jax.random.split(key)
        used = (jax.random.uniform(absent_key, active.shape) >= self.absent) & active
        return jnp.where(used, jax.random.rademacher(sign_key, active.shape, "float32"), 0)

    def inputs(self, key: Array, parameters: Array, shape: tuple[int, int]) -> Array:
        """-1 or 1; of a share the inputs that have literals are those that make all literals hold."""
        plain_key, share_key = jax.random.split(key)
        plain = super().inputs(plain_key, parameters, shape)
        made = jax.random.uniform(share_key, (shape[0], 1)) < self.planted_share
        return jnp.where(made & (parameters != 0)[None], self._deciding(parameters)[None], plain)

    def label(self, parameters: Array, x: Array) -> Array:
        """1 where all literals hold."""
        return jnp.where(self._decided(parameters, x), 1.0, -1.0)

    def log_density(self, parameters: Array, x: Array) -> Array:
        """log p(x) + D log 2: a share p of inputs of s literals is uniform among 2^(D - s), the others among all."""
        literals = jnp.abs(parameters).sum()
        planted = self.planted_share * self._decided(parameters, x) * 2**literals
        return jnp.log(planted + 1 - self.planted_share)

    def _deciding(self, parameters: Array) -> Array:
        """The inputs that decide the function, where it has literals."""
        return parameters

    def _decided(self, parameters: Array, x: Array) -> Array:
        """Where [N] inputs decide it."""
        deciding = self._deciding(parameters)[None]
        return jnp.all((deciding == 0) | (x == deciding), axis=1)

    def count(self, dim: int) -> float:
        """3^D."""
        return 3.0 ** min(dim, MOST)

    def every(self, dim: int) -> np.ndarray:
        """All literals [3^D, D]."""
        return ((np.arange(3**dim)[:, None] // 3 ** np.arange(dim)) % 3 - 1).astype(np.float32)

    def log_prior(self, dim: int) -> np.ndarray:
        """Of the number of literals."""
        literals = np.abs(self.every(dim)).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            used, absent = np.log((1 - self.absent) / 2), np.log(self.absent)
            of_used = np.where(literals > 0, literals * used, 0)
            log_prior: np.ndarray = of_used + np.where(literals < dim, (dim - literals) * absent, 0)
        return log_prior


@dataclass(frozen=True)
class Disjunctions(Conjunctions):
    """True if any literal holds; a share of the inputs is made to satisfy none."""

    kind: str = "disjunctions"

    def label(self, parameters: Array, x: Array) -> Array:
        """1 where any literal holds."""
        return -super().label(parameters, x)

    def _deciding(self, parameters: Array) -> Array:
        """The inputs at which no literal holds."""
        return -parameters


@dataclass(frozen=True)
class Parities(Boolean):
    """The product of k inputs, a random subset of this size."""

    kind: str = "parities"
    parity_size: int = field(2, "inputs whose product a parity is, k", least=1)

    def check(self, dim: int, num_pairs: int) -> None:
        """k is at most D."""
        require(self.parity_size <= dim, f"parity_size is {self.parity_size}; it must be at most dim, {dim}")

    @property
    def least_inputs(self) -> int:
        """k."""
        return self.parity_size

    def sample(self, key: Array, active: Array) -> Array:
        """The subset [D]."""
        return some_of(key, active, self.parity_size)

    def label(self, parameters: Array, x: Array) -> Array:
        """The product."""
        return jnp.where(parameters[None], x, 1).prod(axis=1)

    def count(self, dim: int) -> float:
        """D over k."""
        return float(math.comb(dim, self.parity_size))

    def every(self, dim: int) -> np.ndarray:
        """All subsets [M, D]."""
        chosen = np.array([*combinations(range(dim), self.parity_size)])
        subsets: np.ndarray = (chosen[:, :, None] == np.arange(dim)).any(axis=1)
        return subsets


@dataclass(frozen=True)
class Majority(Boolean):
    """The sign of the sum of the inputs of a random subset of odd size."""

    kind: str = "majority"

    def sample(self, key: Array, active: Array) -> Array:
        """The subset [D]: any of all but one active input, and the last one where needed to make the size odd."""
        chosen = jax.random.bernoulli(key, 0.5, active.shape) & active
        last = jnp.arange(active.shape[0]) == active.sum() - 1
        others = chosen & ~last
        return others | (last & (others.sum() % 2 == 0))

    def label(self, parameters: Array, x: Array) -> Array:
        """The sign of the sum."""
        return jnp.where(jnp.where(parameters[None], x, 0).sum(axis=1) > 0, 1.0, -1.0)

    def count(self, dim: int) -> float:
        """2^(D - 1)."""
        return 2.0 ** min(dim - 1, MOST)

    def every(self, dim: int) -> np.ndarray:
        """All subsets of odd size [M, D]."""
        subsets = bits(dim)
        odd: np.ndarray = subsets[subsets.sum(axis=1) % 2 == 1]
        return odd
