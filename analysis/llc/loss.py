"""A loss of any model as a function of one vector: what is estimated takes no more from a user's model.

    per_sample_loss(params, batch) -> [B]

`params` is any pytree (Haiku, Flax, Equinox, plain dictionaries). Its floating-point arrays make up the vector w [d];
all other leaves (integers, functions, names) are held fixed. `data` is any pytree with a leading axis of n samples. The
loss is the mean of per-sample losses, and nbeta multiplies that mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from icl_lab.src.checks import ConfigError, require

Losses = Callable[[Array, Any], Array]  # of a vector [d] and a batch of B samples -> [B]
PerSampleLoss = Callable[[Any, Any], Any]
CHUNK = 512  # samples whose losses, or derivatives, are in memory at once


class Leaf(NamedTuple):
    """A leaf of the parameters: how it is got back. kind: "moving" (of the vector), "array" (held fixed),
    "constant".
    """

    kind: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    constant: Any = None


class Form(NamedTuple):
    """What a compiled program is of: the user's function and the structure of the parameters, without their values."""

    loss: PerSampleLoss
    structure: Any
    leaves: tuple[Leaf, ...]


class Split(NamedTuple):
    """Parameters as a vector [d], the arrays that are held fixed, and the form that puts them together."""

    form: Form
    vector: Any
    fixed: tuple[Any, ...]

    def whole(self, vector: Any) -> Any:
        """The parameters with another vector."""
        return whole(self.form, self.fixed, vector)


def split(loss: PerSampleLoss, params: Any) -> Split:
    """The parameters of a model, taken apart; `ConfigError` where none is a floating-point array."""
    values, structure = jax.tree.flatten(params)
    leaves = tuple(map(_leaf, values))
    moving = [np.ravel(value) for value, leaf in zip(values, leaves, strict=True) if is_moving(leaf)]
    require(bool(moving), "the parameters have no floating-point array, so that there is nothing to sample")
    fixed = tuple(value for value, leaf in zip(values, leaves, strict=True) if leaf.kind == "array")
    return Split(Form(loss, structure, leaves), np.concatenate(moving), fixed)  # in NumPy, which compiles nothing


def is_moving(leaf: Leaf) -> bool:
    """Whether a leaf is a part of the vector."""
    return leaf.kind == "moving"


def _leaf(value: Any) -> Leaf:
    if not isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return Leaf("constant", constant=value)
    floats = jnp.issubdtype(value.dtype, jnp.floating)
    return Leaf("moving" if floats else "array", tuple(np.shape(value)), str(value.dtype))


def whole(form: Form, fixed: tuple[Any, ...], vector: Array) -> Any:
    """The parameters of a vector [d]."""
    values, others, place = list[Any](), iter(fixed), 0
    for leaf in form.leaves:
        if is_moving(leaf):
            size = math.prod(leaf.shape)
            values.append(vector[place : place + size].reshape(leaf.shape).astype(leaf.dtype))
            place += size
        else:
            values.append(next(others) if leaf.kind == "array" else leaf.constant)
    return jax.tree.unflatten(form.structure, values)


def losses_of(form: Form, fixed: tuple[Any, ...]) -> Losses:
    """The losses [B] of a batch as a function of the vector."""
    return lambda vector, batch: jnp.asarray(form.loss(whole(form, fixed, vector), batch))


# --- data ---


def size_of(data: Any, name: str = "data") -> int:
    """The number of samples; `ConfigError` for none, and for arrays that differ in it."""
    leaves = jax.tree.leaves(data)
    require(bool(leaves), f"{name} has no array")
    scalars = any(np.ndim(leaf) == 0 for leaf in leaves)
    require(not scalars, f"{name} has a scalar; every array needs a leading axis of samples")
    sizes = {int(np.shape(leaf)[0]) for leaf in leaves}
    listed = ", ".join(map(str, sorted(sizes)))
    require(len(sizes) == 1, f"{name} has arrays of {listed} samples; all must have the same number")
    (size,) = sizes
    require(size > 0, f"{name} has no samples")
    return size


def check(split_params: Split, data: Any, name: str = "data") -> int:
    """The number of samples, if the loss gives one number for each of them; else `ConfigError`."""
    n = size_of(data, name)
    taken = jax.tree.map(lambda values: jax.ShapeDtypeStruct(np.shape(values), jnp.asarray(values[:1]).dtype), data)
    found = jax.eval_shape(losses_of(split_params.form, split_params.fixed), split_params.vector, taken)
    given = "a scalar" if found.shape == () else f"an array of shape {found.shape}"
    require(
        found.shape == (n,),
        f"the loss gives {given} for {n} samples; it must give one loss for each sample, shape ({n},), and not "
        "their mean",
    )
    require(
        jnp.issubdtype(found.dtype, jnp.floating), f"the losses are of type {found.dtype}; they must be floating-point"
    )
    return n


def finite_losses(losses: np.ndarray, where: str = "w*") -> np.ndarray:
    """The losses; `ConfigError` unless all are finite."""
    bad = np.flatnonzero(~np.isfinite(losses))
    if len(bad):
        raise ConfigError(
            f"the loss of sample {bad[0]} is {losses[bad[0]]} at {where}; of {len(losses)} samples {len(bad)} have no "
            "finite loss there"
        )
    return losses


def first(data: Any, count: int) -> Any:
    """The first samples of a batch, or all of them."""
    return jax.tree.map(lambda values: values[:count], data)


def in_chunks(apply: Callable[[Any], Any], data: Any, chunk: int = CHUNK) -> Any:
    """A function of batches applied to chunks of the data, one after the other; results have a leading axis of n."""
    n = len(jax.tree.leaves(data)[0])
    if n <= chunk:
        return apply(data)
    count, rest = divmod(n, chunk)
    blocks = jax.tree.map(lambda values: values[: count * chunk].reshape(count, chunk, *values.shape[1:]), data)
    done = jax.tree.map(lambda values: values.reshape(-1, *values.shape[2:]), lax.map(apply, blocks))
    if not rest:
        return done
    last = apply(jax.tree.map(lambda values: values[count * chunk :], data))
    return jax.tree.map(lambda some, more: jnp.concatenate([some, more]), done, last)


def mean_over_chunks(apply: Callable[[Any], Any], data: Any, chunk: int = CHUNK) -> Any:
    """The mean over n samples of what a function gives as the mean over a batch, such as a gradient."""
    n = len(jax.tree.leaves(data)[0])
    if n <= chunk:
        return apply(data)
    count, rest = divmod(n, chunk)
    blocks = jax.tree.map(lambda values: values[: count * chunk].reshape(count, chunk, *values.shape[1:]), data)

    def add(total: Any, block: Any) -> tuple[Any, None]:
        return jax.tree.map(lambda some, more: some + chunk / n * more, total, apply(block)), None

    begin = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), jax.eval_shape(apply, first(data, chunk)))
    total, _ = lax.scan(add, begin, blocks)
    if not rest:
        return total
    last = apply(jax.tree.map(lambda values: values[count * chunk :], data))
    return jax.tree.map(lambda some, more: some + rest / n * more, total, last)


def all_losses(form: Form, fixed: tuple[Any, ...], vector: Array, data: Any) -> Array:
    """The loss of every sample [n]."""
    losses = losses_of(form, fixed)
    found: Array = in_chunks(lambda batch: losses(vector, batch), data)
    return found


def gradient(form: Form, fixed: tuple[Any, ...], vector: Array, data: Any) -> tuple[Array, Array]:
    """The mean loss and its gradient [d]."""
    losses = losses_of(form, fixed)
    mean = jax.value_and_grad(lambda w, batch: jnp.mean(losses(w, batch)))
    found: tuple[Array, Array] = mean_over_chunks(lambda batch: mean(vector, batch), data)
    return found


measured_losses = jax.jit(all_losses, static_argnums=0)
measured_gradient = jax.jit(gradient, static_argnums=0)
