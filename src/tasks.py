"""Distributions of tasks: a sampler each, named as in `src.registries.TASK_DISTRIBUTIONS`.

A sampler takes a key and the dimension and gives one task [D], before it is scaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from src import registries
from src.checks import named
from src.registry import Functions


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


TASK_DISTRIBUTIONS: Functions[Callable[[Array, int], Array]] = Functions(
    registries.TASK_DISTRIBUTIONS, "sample", named(registries.TASK_DISTRIBUTIONS.built_in, globals())
)
