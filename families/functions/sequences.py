"""Prompts of functions of a class: fresh ones, or of a pool; pure functions of keys.

Function number m of a pool is a function of the pool's key and m alone, so pools are nested. Those of a finite class,
which has pools only if it can be listed, are different ones: all functions are put in order by log p_m + g_m,
g_m standard Gumbel, which is sampling from the prior without replacement, and a pool is the first M.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.config import Curriculum
from icl_lab.families.functions.function_class import FunctionClass, Parameters
from icl_lab.src.prng import Purpose, purpose_key

FUNCTIONS, PROMPTS = 0, 1  # parts of a pool's key


class Size(NamedTuple):
    """The size of prompts: D inputs and K pairs."""

    dim: int
    num_pairs: int


class Pool(NamedTuple):
    """A pool as programs take it: its key, M and the number of prompts, 0 for infinity, and the order of functions.

    order [M_all] of a class of which all functions are listed, else empty.
    """

    key: Array
    num_functions: Array | np.uint32
    num_prompts: Array | np.uint32
    order: Array | np.ndarray


def order_of(key: Array, function: FunctionClass, dim: int) -> np.ndarray:
    """The order [M_all] of a pool's functions; empty for a class that is not listed."""
    if not function.is_listed(dim):
        return np.zeros(0, np.int32)
    shape = (int(function.count(dim)),)
    gumbel = np.asarray(jax.random.gumbel(jax.random.fold_in(key, FUNCTIONS), shape), np.float64)
    return np.argsort(-(np.asarray(function.log_prior(dim)) + gumbel), kind="stable").astype(np.int32)


def listed(function: FunctionClass, dim: int, numbers: Array | np.ndarray) -> Parameters:
    """The parameters of functions by their numbers in `every`."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[numbers], function.every(dim))


def pool_functions(function: FunctionClass, dim: int, pool: Pool, count: int) -> Parameters:
    """The parameters of the first functions of a pool, with a leading axis [M]."""
    if len(pool.order):
        return listed(function, dim, pool.order[:count])
    return jax.vmap(lambda number: _by_number(function, dim, pool, number))(jnp.arange(count))


def _by_number(function: FunctionClass, dim: int, pool: Pool, number: Array) -> Parameters:
    """The parameters of function number m of a pool."""
    if len(pool.order):
        return listed(function, dim, jnp.asarray(pool.order)[number])
    key = jax.random.fold_in(jax.random.fold_in(pool.key, FUNCTIONS), number)
    return function.sample(key, jnp.ones(dim, bool))


def active_inputs(curriculum: Curriculum, dim: int, step: Array) -> Array:
    """Which inputs [D] a step uses."""
    return jnp.arange(dim) < _grown(curriculum.start_dims, curriculum.dims_by, curriculum.dims_every, dim, step)


def counted_points(curriculum: Curriculum, num_pairs: int, step: Array) -> Array:
    """Which predictions [K] a step's loss counts, as 1 and 0."""
    part = (curriculum.start_points, curriculum.points_by, curriculum.points_every)
    return (jnp.arange(num_pairs) < _grown(*part, num_pairs, step)).astype(jnp.float32)


def _grown(start: int, by: int, every: int, end: int, step: Array) -> Array:
    return jnp.minimum(end, start + by * (step // every)) if start else jnp.asarray(end)


def sample_prompts(
    key: Array,
    function: FunctionClass,
    size: Size,
    count: int,
    pool: Pool,
    active: Array,
    counted: Array,
    outside: bool = False,
) -> FunctionBatch:
    """B prompts, fresh or of a pool; with `outside`, fresh ones of functions that the pool has not.

    active [D]: inputs in use; counted [K]: predictions that count.
    """
    drawn = sample_functions(key, function, size, count, pool, active, outside)
    return labelled(function, drawn, counted)


class Drawn(NamedTuple):
    """B functions, each with the inputs x [B, K, D] of a prompt and the key of its labels."""

    keys: Array
    parameters: Parameters
    x: Array


def sample_functions(
    key: Array, function: FunctionClass, size: Size, count: int, pool: Pool, active: Array, outside: bool = False
) -> Drawn:
    """The functions and the inputs of prompts."""

    def prompt(number: Array) -> Drawn:
        own = _prompt_key(key, number, pool, outside)
        parameters = _parameters(own, function, size.dim, pool, active, outside)
        x = function.inputs(purpose_key(own, Purpose.INPUT), parameters, (size.num_pairs, size.dim))
        return Drawn(purpose_key(own, Purpose.OBSERVATION), parameters, jnp.where(active[None], x, 0))

    return jax.vmap(prompt)(jnp.arange(count))


def labelled(function: FunctionClass, drawn: Drawn, counted: Array) -> FunctionBatch:
    """The prompts of functions at these inputs."""
    y, target = jax.vmap(function.labels)(*drawn)
    member = jax.vmap(function.member_of)(drawn.parameters)
    return FunctionBatch(drawn.x, y, drawn.x, target, member, jnp.broadcast_to(counted[None], y.shape))


def _prompt_key(key: Array, number: Array, pool: Pool, outside: bool) -> Array:
    """The key of a prompt: its own, or that of one of the pool's prompts."""
    own = jax.random.fold_in(purpose_key(key, Purpose.TASK), number)
    if outside:
        return own
    most = jnp.maximum(jnp.asarray(pool.num_prompts), 1).astype(jnp.int32)
    chosen = jax.random.randint(jax.random.fold_in(purpose_key(key, Purpose.CHOICE), number), (), 0, most)
    stored = jax.random.fold_in(jax.random.fold_in(pool.key, PROMPTS), chosen)
    return jnp.where(pool.num_prompts == 0, own, stored)


def _parameters(key: Array, function: FunctionClass, dim: int, pool: Pool, active: Array, outside: bool) -> Parameters:
    """The parameters of a prompt's function."""
    own = function.sample(purpose_key(key, Purpose.TASK), active)
    choice, size = purpose_key(key, Purpose.CHOICE), pool.num_functions
    if outside:
        if not len(pool.order):
            return own  # two draws of a continuum are different
        order = jnp.asarray(pool.order)
        ranked = jnp.asarray(function.log_prior(dim), jnp.float32)[order]
        left = jnp.where(jnp.arange(len(ranked)) < size.astype(jnp.int32), -jnp.inf, ranked)
        return listed(function, dim, order[jax.random.categorical(choice, left)])
    number = jax.random.randint(choice, (), 0, jnp.maximum(size, 1).astype(jnp.int32))
    return jax.tree.map(
        lambda fresh, pooled: jnp.where(size == 0, fresh, pooled.astype(fresh.dtype)),
        own,
        _by_number(function, dim, pool, number),
    )


def traced_size(size: float) -> np.uint32:
    """A pool's size as programs take it, as a value: 0 stands for infinity."""
    return np.uint32(0 if size == math.inf else size)
