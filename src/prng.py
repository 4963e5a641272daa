"""Threefry-2x32 with 20 rounds, unrolled, as a JAX PRNG implementation; and one named key per purpose.

JAX's own Threefry runs a rolled loop on CPU, which costs more than a training step of one small layer. The same
cipher unrolled vectorises, and using both words of every block halves the work. The stream is part of the results:
it is the same on every backend and does not depend on JAX's `threefry_partitionable` flag.

Counters. Threefry encrypts a block of two words (high, low) under a key of two words. Here the high word is a domain:
random bits, `split` and `fold_in` never share a block, so a child key is never also a random number of its parent,
and `split(key)[i]` is never `fold_in(key, i)`.

    random_bits(key)   block i = (0, i)                    32-bit words: first words of all blocks, then the second ones
    split(key)[i]      block   = (2^30, i)                 both words are the new key
    fold_in(key, d)    block   = (2^31, d)                 both words are the new key

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), Threefry-2x32-20.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.random import define_prng_impl

from icl_lab.src.checks import ConfigError

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA  # the constant that closes the key schedule
ROUNDS_OF_FOUR = 5  # 20 rounds

DOMAIN_BITS = 0
DOMAIN_SPLIT = 1 << 30
DOMAIN_FOLD_IN = 1 << 31


def threefry_2x32(key0: Array, key1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Encrypts blocks (x0, x1) under the key (key0, key1).

    All arguments are uint32 and broadcast against each other; the result is the two encrypted words.
    """
    schedule = (key0, key1, key0 ^ key1 ^ jnp.uint32(PARITY))
    x0, x1 = x0 + schedule[0], x1 + schedule[1]
    for group in range(ROUNDS_OF_FOUR):
        for rotation in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << rotation) | (x1 >> (32 - rotation))
            x1 = x0 ^ x1
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return x0, x1


def _blocks(key: Array, domain: int, low: Array) -> tuple[Array, Array]:
    high = jnp.full(low.shape, domain, jnp.uint32)
    return threefry_2x32(key[0], key[1], high, low)


def _seed(seed: Array) -> Array:
    """A key [2] uint32 from an integer: its high word (zero below 64 bits), then its low word."""
    wide = seed.dtype.itemsize == 8
    low = (seed & 0xFFFFFFFF).astype(jnp.uint32) if wide else seed.astype(jnp.uint32)
    high = lax.shift_right_logical(seed, jnp.array(32, seed.dtype)).astype(jnp.uint32) if wide else jnp.uint32(0)
    return jnp.stack([jnp.asarray(high, jnp.uint32), low])


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    index = lax.iota(jnp.uint32, math.prod(shape))
    return jnp.stack(_blocks(key, DOMAIN_SPLIT, index), axis=-1).reshape(*shape, 2)


def _fold_in(key: Array, data: int) -> Array:
    return jnp.stack(_blocks(key, DOMAIN_FOLD_IN, jnp.asarray(data, jnp.uint32)))


def _pairs_of_words(key: Array, count: int) -> tuple[Array, Array]:
    """The first and the second words of as many blocks as hold `count` random 32-bit words."""
    if count >= 1 << 32:
        raise ConfigError(
            f"{count} random words are needed, but one key gives fewer than 2^32; use fewer or smaller tasks"
        )
    return _blocks(key, DOMAIN_BITS, lax.iota(jnp.uint32, (count + 1) // 2))


def _words(key: Array, count: int) -> Array:
    """`count` random 32-bit words, two from each block."""
    return jnp.concatenate(_pairs_of_words(key, count))[:count]


def random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    """Random bits of a key [2] uint32, in words of this width."""
    size = math.prod(shape)
    if bit_width == 32:
        return _words(key, size).reshape(shape)
    if bit_width == 64:
        first, second = _pairs_of_words(key, 2 * size)
        bits = (first.astype(jnp.uint64) << jnp.array(32, jnp.uint64)) | second.astype(jnp.uint64)
        return bits.reshape(shape)
    if bit_width in (8, 16):
        per_word = 32 // bit_width
        shifts = jnp.arange(per_word, dtype=jnp.uint32) * jnp.uint32(bit_width)
        narrow: Array = (_words(key, -(-size // per_word))[:, None] >> shifts[None, :]).astype(f"uint{bit_width}")
        return narrow.reshape(-1)[:size].reshape(shape)
    raise ValueError(f"random bits come 8, 16, 32 or 64 wide, not {bit_width}")


def implementation(name: str, tag: str, bits: Callable[[Array, int, tuple[int, ...]], Array]) -> Any:
    """The cipher's keys for JAX, with this function of their bits."""
    return define_prng_impl(
        key_shape=(2,), seed=_seed, split=_split, random_bits=bits, fold_in=_fold_in, name=name, tag=tag
    )


THREEFRY: Any = implementation("threefry2x32_unrolled", "tfu", random_bits)
Drawn = Callable[[Array, tuple[int, ...]], Array]  # of a key [2] uint32 and a shape
UNITS: dict[str, Drawn] = {}  # implementation -> its own numbers in [0, 1)


def key(seed: int | Array) -> Array:
    """A key of this implementation from an integer seed."""
    return jax.random.key(seed, impl=THREEFRY)


def uniform(key: Array, shape: tuple[int, ...], minval: float, maxval: float) -> Array:
    """U(minval, maxval) of float32, as jax.random.uniform gives it to the bit.

    An implementation's own numbers are taken where the range is a power of two: their product with it is exact, and
    rounds alike in every program.
    """
    unit, width = UNITS.get(repr(jax.random.key_impl(key))), maxval - minval
    if unit is None or width <= 0 or math.frexp(width)[0] != 0.5 or math.prod(shape) < 2:
        return jax.random.uniform(key, shape, minval=minval, maxval=maxval)
    low = jnp.float32(minval)
    return lax.max(jnp.broadcast_to(low, shape), unit(jax.random.key_data(key), shape) * jnp.float32(width) + low)


class Purpose(IntEnum):
    """What a key is for. The numbers are part of the stream: add to them, never renumber."""

    # of a run
    INIT = 0
    TRAIN = 1
    EVAL = 2
    TEST_SET = 3
    STEP_SIZE = 4
    CORRUPTED_STEP_SIZE = 5
    POOL = 6
    LATENT = 7
    ROOT = 8
    LATENT_TEST_SET = 9
    PATH = 10
    IDEALISED = 11
    POSITION_STEPS = 12
    LLC_TASKS = 13
    LLC_CHAIN = 14
    SAMPLE = 15
    # of a batch
    TASK = 16
    INPUT = 17
    QUERY = 18
    OBSERVATION = 19
    DISTRACTOR = 20
    NOISE_MASK = 21
    NOISE_VALUE = 22
    INPUT_DISTRIBUTION = 23
    DISTRACTOR_PLACE = 24
    CHOICE = 25
    AXES = 26
    EIGENVALUES = 27
    # of a run that starts from given parameters
    TRAIN_FROM = 28
    # of a run's baselines
    FITTED = 29
    # of a branch of a run
    ANNEALED = 30


def purpose_key(key: Array, purpose: int) -> Array:
    """The key of a `Purpose`, or of a plugin's: fold_in(key, purpose). Each purpose of a key is drawn from once."""
    return jax.random.fold_in(key, int(purpose))
