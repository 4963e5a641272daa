"""Keys whose random bits are made by compiled C++: the same bits as `src.prng`'s, several times faster."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.src import prng
from icl_lab.src.native.library import Library


@cache
def native_keys(library: Library) -> Callable[[Array], Array]:
    """Turns a key of `prng.key` into one that gives the same numbers, and whose children do."""
    implementation = _implementation(library)

    def keys(key: Array) -> Array:
        wrapped: Array = jax.random.wrap_key_data(jax.random.key_data(key), impl=implementation)
        return wrapped

    return keys


def _implementation(library: Library) -> Any:
    def filled(function: str, dtype: Any) -> Callable[[Array, tuple[int, ...]], Array]:
        def made(key: Array, shape: tuple[int, ...]) -> Array:
            size = math.prod(shape)
            like = jax.ShapeDtypeStruct((size,), dtype)
            numbers: Array = jax.ffi.ffi_call(library.named(function), like, vmap_method="broadcast_all")(key)
            return numbers.reshape(shape)

        return made

    words = filled("icl_bits", jnp.uint32)

    def bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
        alone = bit_width != 32 or math.prod(shape) < 2  # a scalar's arithmetic rounds as in one program with its bits
        return prng.random_bits(key, bit_width, shape) if alone else words(key, shape)

    made = prng.implementation(f"threefry2x32_native_{library.tag}", "tfn", bits)
    prng.UNITS[repr(made)] = filled("icl_units", jnp.float32)
    return made
