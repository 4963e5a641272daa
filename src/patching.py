"""Reads and replaces activations: pure functions of parameters, a batch and values, for `jit`, `grad` and `vmap`.

An activation is `src.activations`'s, by its address. Values and sites are arguments of a program: a table over all
heads, or all positions, is one program that is mapped over sites.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from icl_lab.src.activations import HEAD, POSITION, address, axes_of, matching
from icl_lab.src.checks import require
from icl_lab.src.model import Batch, Model, Params

Value = ArrayLike | Callable[[Array], Array]  # of an activation's shape, or one that is broadcast to it; or a function
Names = str | list[str] | tuple[str, ...]


class Site(NamedTuple):
    """Where an activation is replaced: in a block, for a head, at a position; None: in all of them.

    Whole numbers, which may be traced. A position counts rows of tokens, from 0 or, below 0, from the end.
    """

    layer: ArrayLike | None = None
    head: ArrayLike | None = None
    position: ArrayLike | None = None


EVERYWHERE = Site()


def shapes_of(model: Model, params: Params, batch: Batch) -> dict[str, jax.ShapeDtypeStruct]:
    """The shape of each activation, by address, in the order of the pass; nothing is computed."""
    return {**_shapes(model, _of_shapes(params), _of_shapes(batch))}


def present(model: Model, params: Params, batch: Batch) -> list[str]:
    """The addresses of a model's activations."""
    return [*shapes_of(model, params, batch)]


def capture(model: Model, params: Params, batch: Batch, names: Names = "*") -> dict[str, Array]:
    """The activations whose addresses match, by address; `ConfigError` for a name that matches none.

    Under `jit` what none of them needs is not computed.
    """
    return run(model, params, batch, names)[1]


def patch(model: Model, params: Params, batch: Batch, values: Mapping[str, Value], site: Site = EVERYWHERE) -> Array:
    """The predictions when activations are replaced at a site: by arrays, or by what functions make of them."""
    return run(model, params, batch, (), values, site)[0]


def run(
    model: Model,
    params: Params,
    batch: Batch,
    names: Names = (),
    values: Mapping[str, Value] | None = None,
    site: Site = EVERYWHERE,
) -> tuple[Array, dict[str, Array]]:
    """The predictions, and activations by address, of a pass in which some are replaced at a site.

    An activation is read after it was replaced. `ConfigError` for addresses that the model has not, for values whose
    shapes do not fit, and for a site at which nothing would be replaced.
    """
    shapes = shapes_of(model, params, batch)
    wanted = {*(matching(names, [*shapes]) if names else ())}
    given = {at: value for name, value in (values or {}).items() for at in matching(name, [*shapes])}
    for at, value in given.items():
        check(at, shapes[at].shape, value, site)
    seen: dict[str, Array] = {}

    def hook(name: str, layer: int | None, value: Array) -> Array:
        at = address(name, layer)
        if at in given:
            value = replaced(at, layer, value, given[at], site)
        if at in wanted:
            seen[at] = value
        return value

    return model.watch(params, batch, hook), seen


def replaced(at: str, layer: int | None, activation: Array, value: Value, site: Site = EVERYWHERE) -> Array:
    """The activation at an address with a value in its place, or a function's of it, at the site."""
    new = value(activation) if callable(value) else jnp.asarray(value, activation.dtype)
    new = jnp.broadcast_to(new, activation.shape)
    where = _where(axes_of(at), layer, activation.shape, site)
    return new if where is None else jnp.where(where, new, activation)


def _where(axes: Sequence[str], layer: int | None, shape: tuple[int, ...], site: Site) -> Array | None:
    """Where in an activation a site is, of its shape; None: everywhere."""
    hits = [] if site.layer is None or layer is None else [jnp.broadcast_to(jnp.equal(site.layer, layer), shape)]
    for name, index in ((HEAD, site.head), (POSITION, site.position)):
        if index is None:
            continue
        axis = axes.index(name)
        count = jax.lax.broadcasted_iota(jnp.int32, shape, axis)
        index = jnp.asarray(index, jnp.int32)
        hits.append(count == jnp.broadcast_to(jnp.where(index < 0, index + shape[axis], index), shape))
    if not hits:
        return None
    where: Array = jnp.all(jnp.stack(hits), axis=0)
    return where


def check(at: str, shape: tuple[int, ...], value: Value, site: Site) -> None:
    """`ConfigError` unless a value can stand at an address, and a site is one of the activation's."""
    if not callable(value):
        given = np.shape(value)
        fits = len(given) <= len(shape) and all(
            mine in (1, full) for mine, full in zip(given[::-1], shape[::-1], strict=False)
        )
        require(fits, f"the value for {at} has the shape {given}; it must be {shape}, or broadcast to it")
    axes = axes_of(at)
    for name, index in ((HEAD, site.head), (POSITION, site.position)):
        if index is None:
            continue
        require(name in axes, f"{at} has no axis of {name}s; its axes are {', '.join(axes)}")
        if isinstance(index, (int, np.integer)):
            count = shape[axes.index(name)]
            require(bool(-count <= index < count), f"{at} has {count} {name}s, so there is no {name} {index}")


def ablated(
    model: Model, params: Params, batch: Batch, names: Names, how: str, shift: ArrayLike = 1
) -> dict[str, Array]:
    """What ablation puts in the place of activations, by address.

    zero: 0. mean: the mean over contexts. resample: another context's, that of number i + `shift` for context i.
    """
    require(how in ABLATIONS, f"ablation is {how!r}; it must be one of {', '.join(ABLATIONS)}")
    return {at: ABLATIONS[how](value, shift) for at, value in capture(model, params, batch, names).items()}


ABLATIONS: Mapping[str, Callable[[Array, ArrayLike], Array]] = {
    "zero": lambda value, shift: jnp.zeros_like(value),
    "mean": lambda value, shift: jnp.mean(value, axis=0, keepdims=True),
    "resample": lambda value, shift: jnp.roll(value, -jnp.asarray(shift), axis=0),
}


def _of_shapes(tree: Any) -> Any:
    """A tree's leaves as shapes, hashable with its structure."""
    leaves, structure = jax.tree.flatten(tree)
    return tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves), structure


@lru_cache(maxsize=64)
def _shapes(model: Model, params: Any, batch: Any) -> Mapping[str, jax.ShapeDtypeStruct]:
    trees = (
        jax.tree.unflatten(tree, [jax.ShapeDtypeStruct(*leaf) for leaf in leaves]) for leaves, tree in (params, batch)
    )

    order: list[str] = []

    def everything(params: Params, batch: Batch) -> dict[str, Array]:
        seen: dict[str, Array] = {}

        def hook(name: str, layer: int | None, value: Array) -> Array:
            order.append(address(name, layer))
            seen[order[-1]] = value
            return value

        model.watch(params, batch, hook)
        return seen

    shapes = jax.eval_shape(everything, *trees)
    return {at: shapes[at] for at in dict.fromkeys(order)}
