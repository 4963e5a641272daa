"""Training: one pure step, a chunk of steps inside one jit, and packs of runs that train together.

A pack is W runs of equal static shape under `vmap`; what may differ between them is a `Member`. A single run is a pack
of one. A member's bits depend on its values, the width and the thread count, not on its lane or its companions.
Batches are drawn inside the loop, so the host is needed only between chunks. The number of steps in a chunk is a
runtime value: it changes neither the program nor a bit of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from src.batch import Batch
from src.config import TrainConfig
from src.transformer import Model, Params

NEVER = 2**31 - 1  # the `diverged_at` of a run that did not


class BatchFn(Protocol):
    """Draws the batch of a step; the same (key, step, knobs) gives the same batch."""

    def __call__(self, key: Array, step: Array, **knobs: Array) -> Batch:
        """The batch of a step."""


class Member(NamedTuple):
    """What may differ between the runs of a pack. `knobs` goes to the batch function by name."""

    init_key: Array
    data_key: Array
    lr: Array
    knobs: Mapping[str, Array] = {}


class TrainState(NamedTuple):
    """What the next step needs, and nothing else."""

    params: Params
    opt_state: optax.OptState


class ChunkInfo(NamedTuple):
    """What a chunk tells: its last loss, and the step (from 1) at which it diverged, or NEVER.

    That is the first step whose loss is not finite, or the last of a chunk that leaves a state that is not.
    """

    loss: Array
    diverged_at: Array


def half_mse(predictions: Array, targets: Array) -> Array:
    """The loss: half the mean squared error, mean((prediction - target)^2) / 2, as in the paper's figures.

    Predictions may have further leading axes, as those of several layers do; the mean is over all of them.
    """
    return 0.5 * jnp.mean((predictions - jnp.broadcast_to(targets, predictions.shape)) ** 2)


def scheduled(lr: Array, config: TrainConfig, step: Array) -> Array:
    """The learning rate of a step (from 0): lr min(1, (step + 1) / W), then along half a cosine to 0 if asked for.

    W = `warmup_steps`; the cosine is (1 + cos(pi (step - W) / (steps - W))) / 2 from step W on. Neither: lr itself.
    The triangle is lr min(step + 1, steps - step) / (steps / 2), at most lr.
    """
    warmup, falling = config.warmup_steps, max(config.steps - config.warmup_steps, 1)
    if warmup > 0:
        lr = lr * jnp.minimum((step + 1).astype(lr.dtype) / warmup, 1)
    if config.cosine:
        lr = lr * (1 + jnp.cos(jnp.pi * jnp.clip((step - warmup).astype(lr.dtype) / falling, 0, 1))) / 2
    if config.triangle:
        lr = lr * jnp.minimum(jnp.minimum(step + 1, config.steps - step).astype(lr.dtype) / (config.steps / 2), 1)
    return lr


def make_optimizer(config: TrainConfig, decayed: Callable[[Params], Any] | None = None) -> optax.GradientTransformation:
    """Clip by global norm, Adam's scaling, decoupled weight decay of what `decayed` says, else of all.

    The learning rate is the member's.
    """
    clip = optax.clip_by_global_norm(config.grad_clip) if config.grad_clip > 0 else optax.identity()
    decay = optax.add_decayed_weights(config.weight_decay, decayed) if config.weight_decay > 0 else optax.identity()
    return optax.chain(clip, optax.scale_by_adam(b1=config.b1, b2=config.b2), decay)


class Trainer(NamedTuple):
    """The training programs of one static shape; every array of a pack has a leading axis of lanes.

    init(pack) -> state; chunk(state, pack, start, stop) -> (state, info), which runs steps start..stop-1 and gives
    the input state's memory away.
    """

    init: Callable[[Member], TrainState]
    chunk: Callable[[TrainState, Member, Array, Array], tuple[TrainState, ChunkInfo]]


def make_trainer(model: Model, config: TrainConfig, batch_fn: BatchFn, devices: Sequence[Any] | None = None) -> Trainer:
    """The trainer of a model on a source of batches, data parallel when there is more than one device."""
    optimizer = make_optimizer(config, model.decayed)
    spread = _spread_over(devices if devices is not None else jax.devices(), config.batch_size)

    def init(member: Member) -> TrainState:
        params = model.init(member.init_key)
        return TrainState(params, optimizer.init(params))

    def step(state: TrainState, member: Member, index: Array) -> tuple[TrainState, Array]:
        drawn = jnp.zeros_like(index) if config.full_batch else index  # of a pool every step sees the first batch
        batch = spread(batch_fn(member.data_key, drawn, **member.knobs))
        return train_step(model, optimizer, state, batch, scheduled(member.lr, config, index))

    def chunk(state: TrainState, pack: Member, start: Array, stop: Array) -> tuple[TrainState, ChunkInfo]:
        lanes = pack.lr.shape
        info = ChunkInfo(jnp.full(lanes, jnp.nan, pack.lr.dtype), jnp.full(lanes, NEVER, jnp.int32))

        def body(index: Array, carry: tuple[TrainState, ChunkInfo]) -> tuple[TrainState, ChunkInfo]:
            state, info = carry
            state, loss = jax.vmap(step, in_axes=(0, 0, None))(state, pack, index)
            bad = jnp.where(jnp.isfinite(loss), NEVER, index + 1)
            return state, ChunkInfo(loss, jnp.minimum(info.diverged_at, bad))

        state, info = lax.fori_loop(start, stop, body, (state, info))
        bad = jnp.where(_all_finite(state), NEVER, stop)
        return state, info._replace(diverged_at=jnp.minimum(info.diverged_at, bad))

    return Trainer(jax.jit(jax.vmap(init)), jax.jit(chunk, donate_argnums=0))


def train_step(
    model: Model, optimizer: optax.GradientTransformation, state: TrainState, batch: Batch, lr: Array
) -> tuple[TrainState, Array]:
    """One step of gradient descent on a batch: the new state and the loss before it."""

    def loss_of(params: Params) -> Array:
        return half_mse(model.predict(params, batch), batch.y_query)

    loss, gradient = jax.value_and_grad(loss_of)(state.params)
    direction, opt_state = optimizer.update(gradient, state.opt_state, state.params)
    params = jax.tree.map(lambda value, change: value - lr * change, state.params, direction)
    return TrainState(params, opt_state), loss


def lane(tree: Any, index: int) -> Any:
    """One lane of a pack's tree, as NumPy arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], tree)


def _all_finite(state: TrainState) -> Array:
    """Whether each lane [lanes] of a state holds finite numbers alone."""
    return jax.vmap(lambda leaves: jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])))(
        jax.tree.leaves(state)
    )


def _spread_over(devices: Sequence[Any], batch_size: int) -> Callable[[Batch], Batch]:
    """Lays a batch's tasks over the devices; gradients are then summed across them by the compiler."""
    if len(devices) == 1 or batch_size % len(devices):
        return lambda batch: batch
    sharding = NamedSharding(Mesh(devices, ("tasks",)), PartitionSpec("tasks"))

    def spread(batch: Batch) -> Batch:
        laid: Batch = jax.tree.map(lambda leaf: lax.with_sharding_constraint(leaf, sharding), batch)
        return laid

    return spread
