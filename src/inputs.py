"""Distributions of the inputs: a sampler each, of the name under which `src.config.INPUT_LAWS` has its moments.

A sampler takes a key, `input_range`, which scales the inputs, and the shape; coordinates are independent.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import Array

from src import config
from src.checks import named
from src.config import LinearData, SineData

Sampler = Callable[[Array, float, tuple[int, ...]], Array]


def uniform(key: Array, input_range: float, shape: tuple[int, ...]) -> Array:
    """U(-input_range/2, input_range/2)."""
    half = input_range / 2
    return jax.random.uniform(key, shape, minval=-half, maxval=half)


def gaussian(key: Array, input_range: float, shape: tuple[int, ...]) -> Array:
    """N(0, input_range^2)."""
    return input_range * jax.random.normal(key, shape)


INPUT_LAWS: dict[str, Sampler] = named(config.INPUT_LAWS, globals())


def sample_inputs(key: Array, data: LinearData | SineData, shape: tuple[int, ...]) -> Array:
    """Inputs of any shape from the config's input distribution."""
    return INPUT_LAWS[data.input_law](key, data.input_range, shape)
