"""Functions that are linear in their parameters, of which Bayes has a closed form. Garg et al. 2022, Sec. 3 and 4."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.families.functions.function_class import FunctionClass
from icl_lab.src.checks import require
from icl_lab.src.fields import field
from icl_lab.src.lazy import jax, jnp

if TYPE_CHECKING:
    from jax import Array

    from icl_lab.baselines.functions.finite import Likelihood
    from icl_lab.baselines.functions.posterior import Posterior

COSTLY = 4096  # prompts of which a costly posterior is computed
OF_NUMBERS: tuple[str, ...] = ("least_squares", "ridge", "averaging", "nearest_neighbours")


def some_of(key: Array, active: Array, count: int) -> Array:
    """A random subset [D], as truth values, of so many of the active inputs."""
    places = jnp.where(active, jax.random.uniform(key, active.shape), 2.0)
    return jnp.argsort(jnp.argsort(places)) < count


@dataclass(frozen=True)
class Linear(FunctionClass):
    """y = w.x, w ~ N(0, I). Bayes is least squares of least norm."""

    kind: str = "linear"
    baselines = OF_NUMBERS

    def sample(self, key: Array, active: Array) -> Array:
        """The weights w [D]."""
        return jax.random.normal(key, active.shape)

    def label(self, parameters: Array, x: Array) -> Array:
        """w.x."""
        return x @ parameters

    def variance(self, dim: int) -> float:
        """D."""
        return float(dim)

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior:
        """Of a Gaussian prior."""
        from icl_lab.baselines.functions.gaussian import linear_posterior

        return linear_posterior(x, y)


@dataclass(frozen=True)
class NoisyLinear(Linear):
    """y = w.x + noise_std N(0, 1). Bayes is ridge regression of penalty noise_std^2."""

    kind: str = "noisy_linear"
    noise_std: float = field(0.5, "standard deviation of the labels' noise", low=0, high=1e3, open_low=True)
    baselines = OF_NUMBERS
    observed_target = True

    def observe(self, key: Array, y: Array) -> Array:
        """With noise."""
        return y + self.noise_std * jax.random.normal(key, y.shape)

    def likelihood(self, dim: int) -> Likelihood:
        """Of the noise."""
        from icl_lab.baselines.functions import finite

        return finite.gaussian(self.noise_std**2)

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior:
        """Of a Gaussian prior."""
        from icl_lab.baselines.functions.gaussian import linear_posterior

        return linear_posterior(x, y, self.noise_std**2)


@dataclass(frozen=True)
class SparseLinear(Linear):
    """y = w.x, where s random coordinates of w are N(0, 1) and the others 0."""

    kind: str = "sparse_linear"
    sparsity: int = field(3, "coordinates of a function's weights that are not 0, s", least=1)
    baselines = (*OF_NUMBERS, "lasso")
    posterior_prompts = COSTLY

    def check(self, dim: int, num_pairs: int) -> None:
        """s is at most D."""
        require(self.sparsity <= dim, f"sparsity is {self.sparsity}; it must be at most dim, {dim}")

    @property
    def least_inputs(self) -> int:
        """s."""
        return self.sparsity

    def sample(self, key: Array, active: Array) -> Array:
        """The weights w [D], those that are not 0 among active inputs."""
        place_key, weight_key = jax.random.split(key)
        chosen = some_of(place_key, active, self.sparsity)
        return jnp.where(chosen, jax.random.normal(weight_key, active.shape), 0)

    def variance(self, dim: int) -> float:
        """s."""
        return float(self.sparsity)

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior:
        """Over all supports."""
        from icl_lab.baselines.functions.sparse_linear import sparse_posterior

        return sparse_posterior(x, y, self.sparsity)


@dataclass(frozen=True)
class SignVector(FunctionClass):
    """y = w.x, w uniform among the 2^D vectors of -1 and 1."""

    kind: str = "sign_vector"
    baselines = OF_NUMBERS

    def sample(self, key: Array, active: Array) -> Array:
        """The weights w [D]."""
        return jax.random.rademacher(key, active.shape, "float32")

    def count(self, dim: int) -> float:
        """2^D."""
        return 2.0 ** min(dim, 1000)

    def every(self, dim: int) -> np.ndarray:
        """All sign vectors [2^D, D]."""
        return 1 - 2 * bits(dim).astype(np.float32)

    def label(self, parameters: Array, x: Array) -> Array:
        """w.x."""
        return x @ parameters

    def variance(self, dim: int) -> float:
        """D."""
        return float(dim)


@dataclass(frozen=True)
class Quadratic(Linear):
    """y = sum_j w_j x_j^2 / sqrt 3, w ~ N(0, I): of variance D, as E x^4 = 3. Bayes is least squares on squares."""

    kind: str = "quadratic"
    baselines = (*OF_NUMBERS, "least_squares_on_squares")

    def label(self, parameters: Array, x: Array) -> Array:
        """sum_j w_j x_j^2 / sqrt 3."""
        return (x**2 @ parameters) / math.sqrt(3)

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior:
        """Of a Gaussian prior."""
        from icl_lab.baselines.functions.gaussian import linear_posterior

        return linear_posterior(np.asarray(x) ** 2 / math.sqrt(3), y)


def bits(count: int) -> np.ndarray:
    """All truth values of so many variables [2^count, count]."""
    numbers = np.arange(2**count)[:, None]
    found: np.ndarray = (numbers >> np.arange(count)) % 2 == 1
    return found
