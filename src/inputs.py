"""Distributions of the inputs: a sampler each, named as in `src.registries.INPUT_DISTRIBUTIONS`, with the moments.

A sampler takes a key, `input_range`, which scales the inputs, and the shape; coordinates are independent.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import Array

from icl_lab.src import prng, registries
from icl_lab.src.checks import named
from icl_lab.src.data_config import LinearData, SineData
from icl_lab.src.registry import Functions

Sampler = Callable[[Array, float, tuple[int, ...]], Array]


def uniform(key: Array, input_range: float, shape: tuple[int, ...]) -> Array:
    """U(-input_range/2, input_range/2)."""
    half = input_range / 2
    return prng.uniform(key, shape, -half, half)


def gaussian(key: Array, input_range: float, shape: tuple[int, ...]) -> Array:
    """N(0, input_range^2)."""
    return input_range * jax.random.normal(key, shape)


INPUT_DISTRIBUTIONS: Functions[Sampler] = Functions(
    registries.INPUT_DISTRIBUTIONS, "sample", named(registries.INPUT_DISTRIBUTIONS.built_in, globals())
)


def sample_inputs(key: Array, data: LinearData | SineData, shape: tuple[int, ...]) -> Array:
    """Inputs of any shape from the config's input distribution."""
    return INPUT_DISTRIBUTIONS[data.input_distribution](key, data.input_range, shape)
