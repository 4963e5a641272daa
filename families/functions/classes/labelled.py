"""Classification: labels -1 and 1, or one of C classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.families.functions.function_class import CLASSES, SIGN, FunctionClass
from icl_lab.src.checks import require
from icl_lab.src.fields import field
from icl_lab.src.lazy import jax, jnp

if TYPE_CHECKING:
    from jax import Array

    from icl_lab.baselines.functions.finite import Likelihood
    from icl_lab.baselines.functions.posterior import Posterior, Sampled

CERTAIN = 1e-3  # below 1 is the largest mean label of some hundred samples
SAMPLED = 500  # prompts of which a posterior is sampled
OF_SIGNS = ("nearest_neighbours",)


def _of_samples(found: Sampled) -> Sampled:
    """A posterior by sampling, which is never more certain than its samples are."""
    return found._replace(mean=np.clip(found.mean, CERTAIN - 1, 1 - CERTAIN))


@dataclass(frozen=True)
class LinearClassification(FunctionClass):
    """y = sign(w.x), w ~ N(0, I). Garg et al. 2022, App. B."""

    kind: str = "linear_classification"
    target = SIGN
    baselines = OF_SIGNS
    posterior_prompts = SAMPLED
    is_sampled = True

    def sample(self, key: Array, active: Array) -> Array:
        """The weights w [D]."""
        return jax.random.normal(key, active.shape)

    def label(self, parameters: Array, x: Array) -> Array:
        """sign(w.x)."""
        return jnp.where(x @ parameters >= 0, 1.0, -1.0)

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Sampled:
        """By sampling."""
        from icl_lab.baselines.functions.sign_sampling import sign_posterior

        return _of_samples(sign_posterior(x, y))


@dataclass(frozen=True)
class LogisticRegression(LinearClassification):
    """y = 1 with probability sigma(w.x), else -1; w ~ N(0, weight_std^2 I)."""

    kind: str = "logistic_regression"
    weight_std: float = field(1.0, "standard deviation of a function's weights", low=0, high=1e3, open_low=True)
    observed_target = True
    baselines = OF_SIGNS

    def sample(self, key: Array, active: Array) -> Array:
        """The weights w [D]."""
        return self.weight_std * jax.random.normal(key, active.shape)

    def label(self, parameters: Array, x: Array) -> Array:
        """The logits w.x."""
        return x @ parameters

    def observe(self, key: Array, y: Array) -> Array:
        """Labels of these logits."""
        return jnp.where(jax.random.uniform(key, y.shape) < jax.nn.sigmoid(y), 1.0, -1.0)

    def likelihood(self, dim: int) -> Likelihood:
        """Of labels that are drawn."""
        from icl_lab.baselines.functions import finite

        return finite.bernoulli()

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Sampled:
        """By sampling."""
        from icl_lab.baselines.functions.logistic_sampling import logistic_posterior

        return _of_samples(logistic_posterior(x, y, self.weight_std))


@dataclass(frozen=True)
class NearestNeighbour(FunctionClass):
    """The first n labels are -1 or 1 at random; a later input has the label of the nearest of the first n inputs.

    Bhattamishra et al. 2023, Sec. 3.
    """

    kind: str = "nearest_neighbour"
    landmarks: int = field(8, "inputs at the beginning whose labels are random, n", least=1)
    target = SIGN
    baselines = OF_SIGNS

    def check(self, dim: int, num_pairs: int) -> None:
        """Some labels follow."""
        require(self.landmarks < num_pairs, f"landmarks is {self.landmarks}; it must be below num_pairs, {num_pairs}")

    def points(self, dim: int) -> int:
        """As many as landmarks, and one, or more in many dimensions."""
        return max(2 * self.landmarks, 2 * dim) + 1

    def sample(self, key: Array, active: Array) -> Array:
        """The labels of the first n inputs [n]."""
        return jax.random.rademacher(key, (self.landmarks,), "float32")

    def label(self, parameters: Array, x: Array) -> Array:
        """The labels, of the whole context."""
        near = ((x[:, None] - x[None, : self.landmarks]) ** 2).sum(axis=2).argmin(axis=1)
        first = jnp.arange(len(x)) < self.landmarks
        return parameters[jnp.where(first, jnp.minimum(jnp.arange(len(x)), self.landmarks - 1), near)]

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior:
        """The label of the nearest of the first n inputs; among these nothing is known."""
        from icl_lab.baselines.functions.posterior import Posterior

        x, y = np.asarray(x), np.asarray(y)
        near = ((x[:, :, None] - x[:, None, : self.landmarks]) ** 2).sum(axis=3).argmin(axis=2)
        mean = np.take_along_axis(y, near, axis=1)
        mean[:, : self.landmarks] = 0
        told = np.minimum(np.arange(y.shape[1]), self.landmarks)
        return Posterior(mean, np.broadcast_to(-np.log(2) * told, y.shape))


@dataclass(frozen=True)
class Prototypes(FunctionClass):
    """C classes, each with a centre N(0, spread^2 I); x is N(centre, I) of a random class, which is its label."""

    kind: str = "prototypes"
    prototypes: int = field(3, "classes, C", low=2, high=1000)
    spread: float = field(2.0, "standard deviation of the classes' centres", low=0, high=1e3, open_low=True)
    target = CLASSES
    observed_target = True
    planted = True

    @property
    def num_classes(self) -> int:
        """C."""
        return self.prototypes

    def sample(self, key: Array, active: Array) -> Array:
        """The centres [C, D]."""
        centres = self.spread * jax.random.normal(key, (self.prototypes, *active.shape))
        return jnp.where(active[None], centres, 0)

    def inputs(self, key: Array, parameters: Array, shape: tuple[int, int]) -> Array:
        """Inputs of random classes."""
        class_key, noise_key = jax.random.split(key)
        chosen = jax.random.randint(class_key, shape[:1], 0, self.prototypes)
        return parameters[chosen] + jax.random.normal(noise_key, shape)

    def label(self, parameters: Array, x: Array) -> Array:
        """The logits [N, C] of the class that an input is of: -|x - centre|^2 / 2."""
        return -0.5 * ((x[:, None] - parameters[None]) ** 2).sum(axis=2)

    def observe(self, key: Array, y: Array) -> Array:
        """The classes [N], by Bayes' rule from the inputs: the same joint distribution."""
        return jax.random.categorical(key, y)

    def log_density(self, parameters: Array, x: Array) -> Array:
        """log p(x), up to a constant."""
        return jax.nn.logsumexp(self.label(parameters, x), axis=1) - jnp.log(self.prototypes)

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior:
        """Of Gaussian centres; the mean is the probability of each class [B, N, C]."""
        from icl_lab.baselines.functions.posterior import Posterior
        from icl_lab.baselines.functions.prototypes import prototype_posterior

        found = prototype_posterior(x, y, self.prototypes, self.spread**2)
        return Posterior(np.exp(found.log_probabilities), found.log_evidence)
