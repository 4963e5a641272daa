"""A two-layer network that Adam trains on the context, anew at each position of each prompt, all at once in JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.prefixes import checked, pairs
from icl_lab.src.checks import in_range, size
from icl_lab.src.prng import key

AT_ONCE = 128  # networks, whose parameters and moments stay in a core's cache


class Network(NamedTuple):
    """R networks a.relu(u.x + b) + c: u [R, D, H], b and a [R, H], c [R]."""

    u: Array
    b: Array
    a: Array
    c: Array


class Fit(NamedTuple):
    """What R networks are fitted to: inputs [R, N, D] and labels [R, N], of which the first `known` [R] are."""

    x: Array
    y: Array
    known: Array


def adam_network(
    x: ArrayLike,
    y: ArrayLike,
    positions: Sequence[int] | None = None,
    hidden: int = 100,
    steps: int = 1000,
    rate: float = 5e-3,
    batch: int = 10,
    seed: int = 0,
) -> np.ndarray:
    """Predictions [B, P] of ReLU networks of `hidden` units, after steps of Adam on the pairs before; 0 at position 0.

    Each step's batch is drawn with replacement from the known pairs; the loss is the squared error. The start is
    u ~ N(0, 2 / D), a ~ N(0, 1 / H), biases 0. Units, steps, rate and batch are those that Garg et al. 2022 state.
    Float32. Cost of 200 prompts at 8 positions: 7 s at D = 6, 12 s at D = 20.
    """
    size("hidden", hidden)
    size("steps", steps)
    size("batch", batch)
    in_range("rate", rate, 0, open_low=True)
    inputs, labels = pairs(x, y)
    found = np.array(checked(positions, inputs))
    prompt, position = (index.ravel() for index in np.meshgrid(np.arange(len(inputs)), found, indexing="ij"))
    train = partial(_trained, hidden=hidden, steps=steps, rate=rate, batch=batch)
    predictions = np.zeros(len(prompt))
    for start in range(0, len(prompt), AT_ONCE):
        rows = np.minimum(np.arange(start, start + AT_ONCE), len(prompt) - 1)  # the last repeats, so one shape serves
        of, k = prompt[rows], position[rows]
        fit = Fit(*(jnp.asarray(part, jnp.float32) for part in (inputs[of], labels[of], k)))
        predicted = np.asarray(
            train(jax.random.fold_in(key(seed), start), fit, jnp.asarray(inputs[of, k], jnp.float32))
        )
        predictions[rows] = np.where(k > 0, predicted, 0)
    return predictions.reshape(len(inputs), len(found))


@partial(jax.jit, static_argnames=("hidden", "steps", "batch"))
def _trained(draw: Array, fit: Fit, query: Array, *, hidden: int, steps: int, rate: float, batch: int) -> Array:
    """Predictions [R] at queries [R, D] after training."""
    adam = optax.adam(rate)
    networks = _start(jax.random.fold_in(draw, steps), len(query), query.shape[1], hidden)

    def step(state: tuple[Network, optax.OptState], at: Array) -> tuple[tuple[Network, optax.OptState], None]:
        networks, moments = state
        chosen = jax.random.uniform(jax.random.fold_in(draw, at), (len(query), batch))
        rows = jnp.floor(chosen * fit.known[:, None]).astype(jnp.int32)
        x, y = jnp.take_along_axis(fit.x, rows[:, :, None], axis=1), jnp.take_along_axis(fit.y, rows, axis=1)
        updates, moments = adam.update(jax.grad(_loss)(networks, x, y), moments)
        return (optax.apply_updates(networks, updates), moments), None

    (networks, _), _ = lax.scan(step, (networks, adam.init(networks)), jnp.arange(steps))
    return _outputs(networks, query[:, None])[:, 0]


def _start(draw: Array, count: int, dim: int, hidden: int) -> Network:
    first, last = jax.random.split(draw)
    u = jax.random.normal(first, (count, dim, hidden)) * np.float32((2 / dim) ** 0.5)
    a = jax.random.normal(last, (count, hidden)) * np.float32(hidden**-0.5)
    return Network(u, jnp.zeros_like(a), a, jnp.zeros(count))


def _outputs(networks: Network, x: Array) -> Array:
    """[R, N] at inputs [R, N, D]."""
    units = jnp.einsum("rnd,rdh->rnh", x, networks.u) + networks.b[:, None]
    return jnp.einsum("rnh,rh->rn", jax.nn.relu(units), networks.a) + networks.c[:, None]


def _loss(networks: Network, x: Array, y: Array) -> Array:
    """The sum of the networks' mean squared errors: its gradient is each one's own."""
    return jnp.sum(jnp.mean((_outputs(networks, x) - y) ** 2, axis=1))
