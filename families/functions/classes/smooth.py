"""Functions that are not linear in their inputs: two-layer networks and Fourier series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icl_lab.families.functions.classes.linear import OF_NUMBERS
from icl_lab.families.functions.function_class import FunctionClass
from icl_lab.src.fields import field
from icl_lab.src.lazy import jax, jnp

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

    from icl_lab.baselines.functions.posterior import Posterior

HALF_PERIOD = 5.0  # of a Fourier series' first wave


@dataclass(frozen=True)
class ReluNetwork(FunctionClass):
    """y = sqrt(2/r) sum_k a_k relu(u_k.x), all weights N(0, 1): of variance D. Garg et al. 2022, Sec. 5.

    No posterior is known in closed form; the best predictor that is linear in the labels is regression with the
    arc-cosine kernel.
    """

    kind: str = "relu_network"
    hidden: int = field(20, "hidden units of a network, r", low=1, high=2**16)
    baselines = (*OF_NUMBERS, "arc_cosine_regression", "adam_network")
    best_known = "arc_cosine_regression"

    def points(self, dim: int) -> int:
        """5 D + 1."""
        return 5 * dim + 1

    def sample(self, key: Array, active: Array) -> tuple[Array, Array]:
        """u [r, D] and a [r]."""
        first, second = jax.random.split(key)
        return jax.random.normal(first, (self.hidden, *active.shape)), jax.random.normal(second, (self.hidden,))

    def label(self, parameters: tuple[Array, Array], x: Array) -> Array:
        """sqrt(2/r) sum_k a_k relu(u_k.x)."""
        into, out = parameters
        return math.sqrt(2 / self.hidden) * (jax.nn.relu(x @ into.T) @ out)

    def variance(self, dim: int) -> float:
        """D."""
        return float(dim)


@dataclass(frozen=True)
class Fourier(FunctionClass):
    """y = a_0 + sum_d sum_{n <= K} a_dn cos(n pi x_d / 5) + b_dn sin(n pi x_d / 5), all coefficients N(0, 1)."""

    kind: str = "fourier"
    order: int = field(3, "waves of a Fourier series in each input, K", low=1, high=1000)
    baselines = OF_NUMBERS

    def points(self, dim: int) -> int:
        """Twice as many as coefficients, and one."""
        return 2 * (2 * dim * self.order + 1) + 1

    def sample(self, key: Array, active: Array) -> Array:
        """The coefficients [1 + 2 D K]: of the constant, of cosines, of sines."""
        return jax.random.normal(key, (1 + 2 * active.shape[0] * self.order,))

    def label(self, parameters: Array, x: Array) -> Array:
        """The series."""
        angles = (math.pi / HALF_PERIOD * x[:, :, None] * jnp.arange(1, self.order + 1)[None, None]).reshape(len(x), -1)
        features = jnp.concatenate([jnp.ones((len(x), 1)), jnp.cos(angles), jnp.sin(angles)], axis=1)
        return features @ parameters

    def variance(self, dim: int) -> float:
        """1 + D K, as cos^2 + sin^2 = 1."""
        return 1.0 + dim * self.order

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior:
        """Of a Gaussian prior."""
        from icl_lab.baselines.functions.fourier import fourier_posterior

        return fourier_posterior(x, y, self.order, HALF_PERIOD)
