"""The passes of the tables: pure in parameters, contexts and sites, so that a table is one program.

What is patched in stands for all layers at once; a site says where it is let in, and `lax.map` goes over the sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.activations import CONTEXT, HEAD, POSITION, axes_of
from icl_lab.src.model import Model
from icl_lab.src.patching import Site, ablated, capture, patch, run

Names = tuple[str, ...]  # addresses, one for each layer and part


@partial(jax.jit, static_argnums=0)
def predict(model: Model, params: Any, batch: Any) -> Array:
    """The predictions [B, ...] of a pass that computes all rows, as those with a replaced activation do."""
    return model.watch(params, batch, lambda name, layer, value: value)


@partial(jax.jit, static_argnums=(0, 5))
def patched(model: Model, params: Any, base: Any, source: Any, sites: Site, names: Names) -> Array:
    """Predictions [S, B, ...] on the base contexts, with the source's activations at each of S sites."""
    return _at_each(model, params, base, capture(model, params, source, names), sites)


@partial(jax.jit, static_argnums=(0, 4, 5))
def without(model: Model, params: Any, batch: Any, sites: Site, names: Names, how: str) -> Array:
    """Predictions [S, B, ...] with activations ablated at each of S sites."""
    return _at_each(model, params, batch, ablated(model, params, batch, names, how), sites)


@partial(jax.jit, static_argnums=(0, 5))
def estimated_patches(model: Model, params: Any, base: Any, source: Any, slopes: Any, names: Names) -> Any:
    """The change of a metric to first order when the source's activations stand in the base's pass, by address.

    (source - base) . d metric / d activation, [B], [B, heads] or [B, positions], all from one backward pass; `slopes`,
    of the shape of the predictions, are the metric's derivatives by them. Attribution patching (Nanda 2023).
    """
    return _first_order(model, params, base, capture(model, params, source, names), slopes)


@partial(jax.jit, static_argnums=(0, 4, 5))
def estimated_ablations(model: Model, params: Any, batch: Any, slopes: Any, names: Names, how: str) -> Any:
    """The change of a metric to first order under ablation, by address, as `estimated_patches`."""
    return _first_order(model, params, batch, ablated(model, params, batch, names, how), slopes)


def _at_each(model: Model, params: Any, batch: Any, values: Mapping[str, Array], sites: Site) -> Array:
    found: Array = jax.lax.map(lambda site: patch(model, params, batch, values, site), sites)
    return found


def _first_order(model: Model, params: Any, base: Any, values: Mapping[str, Array], slopes: Any) -> dict[str, Array]:
    """Of moves that are added to activations, whose derivatives at 0 go through all that follows."""

    def moved(moves: Mapping[str, Array]) -> tuple[Array, dict[str, Array]]:
        added = {at: partial(jnp.add, move) for at, move in moves.items()}
        return run(model, params, base, [*moves], added)

    shapes = jax.eval_shape(lambda: capture(model, params, base, [*values]))
    _, pull, own = jax.vjp(moved, {at: jnp.zeros_like(each) for at, each in shapes.items()}, has_aux=True)
    (gradients,) = pull(slopes)
    return {at: _by_site(at, gradients[at] * (values[at] - own[at])) for at in values}


def _by_site(at: str, change: Array) -> Array:
    """Summed over all axes but contexts, and heads where the activation has them, else positions."""
    axes = axes_of(at)
    kept = {CONTEXT, HEAD if HEAD in axes else POSITION}
    return jnp.sum(change, axis=[number for number, axis in enumerate(axes) if axis not in kept])


def sites_of(layers: int, axis: str | None, count: int) -> Site:
    """All sites of a table: layers x heads, layers x positions, or layers."""
    if axis is None:
        return Site(layer=np.arange(layers))
    layer, other = (each.ravel() for each in np.indices((layers, count)))
    return Site(layer=layer, head=other) if axis == HEAD else Site(layer=layer, position=other)
