"""Training: one pure step, a chunk of steps inside one jit, and packs of runs that train together.

A pack is W runs of equal static shape under `vmap`; what may differ between them is a `Member`. A single run is a pack
of one. A member's bits depend on its values, the width and the thread count, not on its lane or its companions. On
several devices the lanes of a pack are sharded or, if they cannot be divided, the tasks of each batch. Batches are
drawn inside the loop, so the host is needed only between chunks. The number of steps in a chunk is a runtime value: it
changes neither the program nor a bit of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from icl_lab.src import config as configs
from icl_lab.src import registries
from icl_lab.src.checks import named
from icl_lab.src.config import TrainConfig
from icl_lab.src.model import Batch, Model, Params
from icl_lab.src.registry import Functions

SWING = 1000  # steps from 0 to the learning rate
NEVER = 2**31 - 1  # the `diverged_at` of a run that did not diverge


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

    That is the first step with a non-finite loss, or the last step of a chunk that ends in a non-finite state.
    """

    loss: Array
    diverged_at: Array


def constant(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr itself."""
    return lr


def cosine(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr (1 + cos(pi (step - W) / (steps - W))) / 2 from step W on, the end of the warm-up: 0 after the last step."""
    falling = max(config.steps - config.warmup_steps, 1)
    done = jnp.clip((step - config.warmup_steps).astype(lr.dtype) / falling, 0, 1)
    return lr * (1 + jnp.cos(jnp.pi * done)) / 2


def triangle(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr min(step + 1, steps - step) / (steps / 2), at most lr: up to the middle of the training, then down to 0."""
    return lr * jnp.minimum(jnp.minimum(step + 1, config.steps - step).astype(lr.dtype) / (config.steps / 2), 1)


def swing(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr (1 - cos(pi step / 1000)) / 2: it oscillates between 0 and lr; published, not recommended."""
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
    start..stop-1 and donates the input state's buffers. laid(tree, width) places arrays of a pack of this width, or
    with width 0 the shared ones, on the devices as the chunk expects them.
    """

    init: Callable[[Member, Shared], TrainState]
    chunk: jax.stages.Wrapped
    laid: Callable[[Any, int], Any]


def make_trainer(
    model_of: Callable[[Shared], Model],
    config: TrainConfig,
    batch_fn: BatchFn,
    devices: Sequence[Any] | None = None,
) -> Trainer:
    """The trainer of a model on a source of batches, in parallel when there is more than one device.

    The model is made of the shared arrays inside the program, so these are its arguments and no constants of it. With
    `micro_batches` M the source draws an M-th of a batch.
    """
    on = Devices(jax.devices() if devices is None else devices, config.batch_size // config.micro_batches)

    def init(member: Member, shared: Shared) -> TrainState:
        model = model_of(shared)
        params = model.init(member.init_key)
        return TrainState(params, make_optimizer(config, model.decayed).init(params))

    def step(
        spread: Callable[[Batch], Batch], state: TrainState, member: Member, shared: Shared, index: Array
    ) -> tuple[TrainState, Array]:
        model, drawn = model_of(shared), drawn_at(config, index)
        optimizer = make_optimizer(config, model.decayed)

        def loss_and_gradient(key: Array) -> tuple[Array, Params]:
            batch = spread(batch_fn(key, drawn, member.lane, shared))
            return jax.value_and_grad(model.loss)(state.params, batch)

        loss, gradient = mean_over_parts(loss_and_gradient, member.data_key, config.micro_batches)
        return updated(optimizer, state, gradient, scheduled(member.lr, config, index)), loss

    def chunk(
        state: TrainState, pack: Member, shared: Shared, start: Array, stop: Array
    ) -> tuple[TrainState, ChunkInfo]:
        lanes = pack.lr.shape
        spread = on.tasks_apart(*lanes)
        info = ChunkInfo(jnp.full(lanes, jnp.nan, pack.lr.dtype), jnp.full(lanes, NEVER, jnp.int32))

        def body(index: Array, carry: tuple[TrainState, ChunkInfo]) -> tuple[TrainState, ChunkInfo]:
            state, info = carry
            state, loss = jax.vmap(partial(step, spread), in_axes=(0, 0, None, None))(state, pack, shared, index)
            state = on.lanes_apart(state, *lanes)
            bad = jnp.where(jnp.isfinite(loss), NEVER, index + 1)
            return state, ChunkInfo(loss, jnp.minimum(info.diverged_at, bad))

        state, info = lax.fori_loop(start, stop, body, (state, info))
        bad = jnp.where(_all_finite(state), NEVER, stop)
        return state, info._replace(diverged_at=jnp.minimum(info.diverged_at, bad))

    return Trainer(jax.jit(jax.vmap(init, in_axes=(0, None))), jax.jit(chunk, donate_argnums=0), on.laid)


def mean_over_parts(of_part: Callable[[Array], Any], key: Array, parts: int) -> Any:
    """The mean of what a function gives for the keys of the parts of a batch, one after another; of one, the key."""
    if parts == 1:
        return of_part(key)

    def add(part: Array, total: Any) -> Any:
        return jax.tree.map(jnp.add, total, of_part(part_key(key, part)))

    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(of_part, key))
    return jax.tree.map(lambda total: total / parts, lax.fori_loop(0, parts, add, zero))


def part_key(key: Array, part: Array | int) -> Array:
    """The key of one part of a batch that is drawn in parts."""
    return jax.random.fold_in(key, part)


def updated(optimizer: optax.GradientTransformation, state: TrainState, gradient: Params, lr: Array) -> TrainState:
    """The state after one step along a gradient."""
    direction, opt_state = optimizer.update(gradient, state.opt_state, state.params)
    params = jax.tree.map(lambda value, change: value - lr * change, state.params, direction)
    return TrainState(params, opt_state)


def drawn_at(config: TrainConfig, step: Array) -> Array:
    """Which step's batch a step trains on: its own, or with `full_batch` the first one's."""
    return jnp.zeros_like(step) if config.full_batch else step


def lane(tree: Any, index: int) -> Any:
    """One lane of a pack's tree, as NumPy arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], tree)


def _all_finite(state: TrainState) -> Array:
    """Whether each lane [lanes] of a state holds only finite values."""
    return jax.vmap(lambda leaves: jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])))(
        jax.tree.leaves(state)
    )


class Devices:
    """How the arrays of a pack are sharded. `batch_size` is the number of tasks that are drawn at once.

    If the devices divide the lanes, each trains its share of these, and none waits for another. Else, if they divide
    the batch, the tasks are sharded, and the compiler sums gradients across devices. Else the first one has everything.
    """

    def __init__(self, devices: Sequence[Any], batch_size: int):
        mesh = Mesh(np.array(devices), ("devices",))
        self.count, self.batch_size = len(devices), batch_size
        self.apart, self.everywhere = (
            NamedSharding(mesh, PartitionSpec("devices")),
            NamedSharding(mesh, PartitionSpec()),
        )

    def _has_lanes_apart(self, width: int) -> bool:
        """Whether lanes are divided: not between processes, each of which reads all of them."""
        return self.count > 1 and width > 1 and width % self.count == 0 and self.apart.is_fully_addressable

    def _has_tasks_apart(self, width: int) -> bool:
        return self.count > 1 and not self._has_lanes_apart(width) and self.batch_size % self.count == 0

    def tasks_apart(self, width: int) -> Callable[[Batch], Batch]:
        """Shards the tasks of a batch over the devices, inside a program, if that is how this width is trained."""
        if not self._has_tasks_apart(width):
            return lambda batch: batch
        return lambda batch: jax.tree.map(lambda leaf: lax.with_sharding_constraint(leaf, self.apart), batch)

    def lanes_apart(self, state: TrainState, width: int) -> TrainState:
        """Keeps lanes where they are, inside a program, if that is how this width is trained."""
        if not self._has_lanes_apart(width):
            return state
        kept: TrainState = jax.tree.map(lambda leaf: lax.with_sharding_constraint(leaf, self.apart), state)
        return kept

    def laid(self, tree: Any, width: int) -> Any:
        """Places arrays on the devices: divided lanes sharded, others replicated."""
        if self.count == 1:
            return tree
        place = self.apart if self._has_lanes_apart(width) else self.everywhere
        return jax.jit(lambda arrays: arrays, out_shardings=place)(tree)  # device_put takes no keys between processes
