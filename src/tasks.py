"""Distributions of tasks: a sampler each, named as in `src.registries.TASK_DISTRIBUTIONS`.

A sampler takes a key and the dimension and gives one task [D], before it is scaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.src import registries
from icl_lab.src.checks import named
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.registry import Functions

MIXTURE_STD = 1 / 8  # of a coordinate, about the centre of its component
NONZERO = 0.3  # the probability that a coordinate of a sparse task is not 0


def gaussian(key: Array, dim: int) -> Array:
    """N(0, I)."""
    return jax.random.normal(key, (dim,))


def laplace(key: Array, dim: int) -> Array:
    """Independent Laplace coordinates of variance 1, hence of scale 1/sqrt(2)."""
    w: Array = jax.random.laplace(key, (dim,)) / math.sqrt(2)
    return w


def sphere(key: Array, dim: int) -> Array:
    """Uniform on the unit sphere."""
    w = jax.random.normal(key, (dim,))
    unit: Array = w / jnp.linalg.norm(w)
    return unit


def mixture(key: Array, dim: int) -> Array:
    """N(mu, I/64), mu one of `centres` with probability 1/4 each. Lin and Lee 2024 have such priors."""
    choice_key, key = purpose_key(key, Purpose.CHOICE), purpose_key(key, Purpose.TASK)
    component = jax.random.randint(choice_key, (), 0, 4)
    return centres(dim)[component] + MIXTURE_STD * jax.random.normal(key, (dim,))


def centres(dim: int) -> Array:
    """The centres [4, D] of `mixture`: e_1, -e_1, e_2, -e_2; D at least 2."""
    axes = jnp.eye(2, dim)
    return jnp.stack([axes, -axes], axis=1).reshape(4, dim)


def sparse(key: Array, dim: int) -> Array:
    """Spike and slab: a coordinate is N(0, 1/p) with probability p = .3, else 0; of variance 1."""
    nonzero = jax.random.bernoulli(purpose_key(key, Purpose.CHOICE), NONZERO, (dim,))
    slab = jax.random.normal(purpose_key(key, Purpose.TASK), (dim,)) / math.sqrt(NONZERO)
    return jnp.where(nonzero, slab, 0)


TASK_DISTRIBUTIONS: Functions[Callable[[Array, int], Array]] = Functions(
    registries.TASK_DISTRIBUTIONS, "sample", named(registries.TASK_DISTRIBUTIONS.built_in, globals())
)
