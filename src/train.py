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

from src import config as configs
from src import registries
from src.checks import named
from src.config import TrainConfig
from src.model import Batch, Model, Params
from src.registry import Functions

SWING = 1000  # steps from 0 to the learning rate
NEVER = 2**31 - 1  # the `diverged_at` of a run that did not


Shared = Mapping[str, Array]  # arrays that all runs of a pack have in common: without an axis of lanes


class BatchFn(Protocol):
    """Draws the batch of a step; the same (key, step, lane values, shared arrays) give the same batch."""

    def __call__(self, key: Array, step: Array, lane: Mapping[str, Array], shared: Shared) -> Batch:
        """The batch of a step: any pytree of arrays with a leading axis of tasks."""


class Member(NamedTuple):
    """What may differ between the runs of a pack. The batch function takes the values of `lane` by name."""

    init_key: Array
    data_key: Array
    lr: Array
    lane: Mapping[str, Array] = {}


class TrainState(NamedTuple):
    """What the next step needs, and nothing else."""

    params: Params
    opt_state: optax.OptState


class ChunkInfo(NamedTuple):
    """A chunk's diagnostics: its last loss, and the step (from 1) at which it diverged, or NEVER.

    That is the first step whose loss is not finite, or the last of a chunk that leaves a state that is not.
    """

    loss: Array
    diverged_at: Array


def constant(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr itself."""
    return lr


def cosine(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr (1 + cos(pi (step - W) / (steps - W))) / 2 from step W on, the end of the warm-up: 0 at the last step."""
    falling = max(config.steps - config.warmup_steps, 1)
    done = jnp.clip((step - config.warmup_steps).astype(lr.dtype) / falling, 0, 1)
    return lr * (1 + jnp.cos(jnp.pi * done)) / 2


def triangle(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr min(step + 1, steps - step) / (steps / 2), at most lr: up to the middle of the training, then down to 0."""
    return lr * jnp.minimum(jnp.minimum(step + 1, config.steps - step).astype(lr.dtype) / (config.steps / 2), 1)


def swing(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr (1 - cos(pi step / 1000)) / 2: a cosine warm-up that is never ended, between 0 and lr; seen, not advised."""
    return lr * (1 - jnp.cos(jnp.pi * step.astype(lr.dtype) / SWING)) / 2


SCHEDULES: Functions[Callable[[Array, TrainConfig, Array], Array]] = Functions(
    registries.SCHEDULES, "rate", named(registries.SCHEDULES.built_in, globals())
)


def scheduled(lr: Array, config: TrainConfig, step: Array) -> Array:
    """The learning rate of a step (from 0): lr min(1, (step + 1) / W), W = `warmup_steps`, times the schedule."""
    if config.warmup_steps > 0:
        lr = lr * jnp.minimum((step + 1).astype(lr.dtype) / config.warmup_steps, 1)
    return SCHEDULES[config.schedule](lr, config, step)


def adamw(config: TrainConfig) -> optax.GradientTransformation:
    """Adam's scaling; weight decay is decoupled (Loshchilov and Hutter 2019)."""
    return optax.scale_by_adam(b1=config.b1, b2=config.b2)


def sgd(config: TrainConfig) -> optax.GradientTransformation:
    """The gradient itself."""
    return optax.identity()


OPTIMIZERS: dict[str, Callable[[TrainConfig], optax.GradientTransformation]] = named(configs.OPTIMIZERS, globals())


def make_optimizer(config: TrainConfig, decayed: Callable[[Params], Any] | None = None) -> optax.GradientTransformation:
    """Clip by global norm, the optimiser's scaling, decoupled weight decay of what `decayed` says, else of all.

    The learning rate is the member's.
    """
    clip = optax.clip_by_global_norm(config.grad_clip) if config.grad_clip > 0 else optax.identity()
    decay = optax.add_decayed_weights(config.weight_decay, decayed) if config.weight_decay > 0 else optax.identity()
    return optax.chain(clip, OPTIMIZERS[config.optimizer](config), decay)


class Trainer(NamedTuple):
    """The training programs of one static shape; every array of a pack has a leading axis of lanes, but the shared.

    init(pack, shared) -> state; chunk(state, pack, shared, start, stop) -> (state, info), which runs steps
    start..stop-1 and gives the input state's memory away.
    """

    init: Callable[[Member, Shared], TrainState]
    chunk: jax.stages.Wrapped


def make_trainer(
    model_of: Callable[[Shared], Model],
    config: TrainConfig,
    batch_fn: BatchFn,
    devices: Sequence[Any] | None = None,
) -> Trainer:
    """The trainer of a model on a source of batches, data parallel when there is more than one device.

    The model is made of the shared arrays inside the program, so these are its arguments and no constants of it.
    """
    spread = _spread_over(devices if devices is not None else jax.devices(), config.batch_size)

    def init(member: Member, shared: Shared) -> TrainState:
        model = model_of(shared)
        params = model.init(member.init_key)
        return TrainState(params, make_optimizer(config, model.decayed).init(params))

    def step(state: TrainState, member: Member, shared: Shared, index: Array) -> tuple[TrainState, Array]:
        model, drawn = model_of(shared), drawn_at(config, index)
        batch = spread(batch_fn(member.data_key, drawn, member.lane, shared))
        optimizer = make_optimizer(config, model.decayed)
        return train_step(model, optimizer, state, batch, scheduled(member.lr, config, index))

    def chunk(
        state: TrainState, pack: Member, shared: Shared, start: Array, stop: Array
    ) -> tuple[TrainState, ChunkInfo]:
        lanes = pack.lr.shape
        info = ChunkInfo(jnp.full(lanes, jnp.nan, pack.lr.dtype), jnp.full(lanes, NEVER, jnp.int32))

        def body(index: Array, carry: tuple[TrainState, ChunkInfo]) -> tuple[TrainState, ChunkInfo]:
            state, info = carry
            state, loss = jax.vmap(step, in_axes=(0, 0, None, None))(state, pack, shared, index)
            bad = jnp.where(jnp.isfinite(loss), NEVER, index + 1)
            return state, ChunkInfo(loss, jnp.minimum(info.diverged_at, bad))

        state, info = lax.fori_loop(start, stop, body, (state, info))
        bad = jnp.where(_all_finite(state), NEVER, stop)
        return state, info._replace(diverged_at=jnp.minimum(info.diverged_at, bad))

    return Trainer(jax.jit(jax.vmap(init, in_axes=(0, None))), jax.jit(chunk, donate_argnums=0))


def train_step(
    model: Model, optimizer: optax.GradientTransformation, state: TrainState, batch: Batch, lr: Array
) -> tuple[TrainState, Array]:
    """One step of gradient descent on a batch: the new state and the loss before it."""
    loss, gradient = jax.value_and_grad(model.loss)(state.params, batch)
    direction, opt_state = optimizer.update(gradient, state.opt_state, state.params)
    params = jax.tree.map(lambda value, change: value - lr * change, state.params, direction)
    return TrainState(params, opt_state), loss


def drawn_at(config: TrainConfig, step: Array) -> Array:
    """Which step's batch a step trains on: its own, or with `full_batch` the first one's."""
    return jnp.zeros_like(step) if config.full_batch else step


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
