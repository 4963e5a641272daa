"""Training: one pure step, a chunk of steps inside one jit, and packs of runs that train together.

A pack is W runs of equal static shape under `vmap`; what may differ between them is in `Hyperparameters`. A single run
is a pack of one, of some models without `vmap`. A run's bits depend on its values, the width and the thread count, not
on its place in the pack or its companions. On several devices the runs of a pack are sharded or, if they cannot be
divided, the tasks of each batch. Batches are drawn inside the loop, so the host is needed only between chunks. The
number of steps in a chunk is a runtime value: it changes neither the program nor a bit of the result.
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

from icl_lab.src.config import TrainConfig
from icl_lab.src.model import Batch, Model, Params
from icl_lab.src.optimizer import make_optimizer, scheduled, trained_part
from icl_lab.src.sharding import Devices

LossAndGradient = Callable[[Params, Batch], tuple[Array, Params]]
NEVER = 2**31 - 1  # the `diverged_at` of a run that did not diverge
Shared = Mapping[str, Array]  # arrays that all runs of a pack have in common: without an axis of runs


class BatchFn(Protocol):
    """Draws the batch of a step; the same (key, step, batched hyperparameters, shared arrays) give the same batch."""

    def __call__(self, key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> Batch:
        """The batch of a step: any pytree of arrays with a leading axis of tasks."""


class Hyperparameters(NamedTuple):
    """What may differ between the runs of a pack, which has them with a leading axis of runs.

    The batch function takes those of `batched` by name.
    """

    init_key: Array
    data_key: Array
    lr: Array
    batched: Mapping[str, Array] = {}


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


class Norms(NamedTuple):
    """Of a step: the norm of the gradient before it is clipped, of trained parameters; of all parameters; the rate."""

    gradient: Array
    params: Array
    lr: Array


def by_jax(model: Model) -> LossAndGradient:
    """(params, batch) -> the model's loss and its gradient, by JAX."""
    return jax.value_and_grad(model.loss)


def in_blocks(size: int) -> Callable[[Model], LossAndGradient]:
    """The same of a batch in blocks of so many tasks, one after another: a block's activations stay in the cache.

    The number of tasks is a multiple of the size. Equal to `by_jax` up to rounding.
    """

    def of_model(model: Model) -> LossAndGradient:
        of_block = by_jax(model)

        def loss_and_gradient(params: Params, batch: Batch) -> tuple[Array, Params]:
            blocks = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), batch)
            mean: tuple[Array, Params] = mean_of(
                lambda number: of_block(params, jax.tree.map(lambda leaf: leaf[number], blocks)),
                len(jax.tree.leaves(blocks)[0]),
            )
            return mean

        return loss_and_gradient

    return of_model


class Backend(NamedTuple):
    """What computes a step's costly parts.

    loss_and_gradient(model) -> (params, batch) -> (the model's loss, its gradient). keys(key) -> a key that gives the
    same random numbers.
    """

    loss_and_gradient: Callable[[Model], LossAndGradient] = by_jax
    keys: Callable[[Array], Array] = lambda key: key


BY_XLA = Backend()


class Trainer(NamedTuple):
    """The training programs of one static shape; every array of a pack has a leading axis of runs, but the shared.

    init(pack, shared) -> state; chunk(state, pack, shared, start, stop) -> (state, info), which runs steps
    start..stop-1 and donates the input state's buffers. placed(tree, width) places arrays of a pack of this width, or
    with width 0 the shared ones, on the devices as the chunk expects them. norms(state, pack, shared, step) -> those of
    the step that comes next, which changes nothing.
    """

    init: Callable[[Hyperparameters, Shared], TrainState]
    chunk: jax.stages.Wrapped
    placed: Callable[[Any, int], Any]
    norms: Callable[[TrainState, Hyperparameters, Shared, Any], Norms]


def make_trainer(
    model_of: Callable[[Shared], Model],
    config: TrainConfig,
    batch_fn: BatchFn,
    devices: Sequence[Any] | None = None,
    backend: Backend = BY_XLA,
) -> Trainer:
    """The trainer of a model on a source of batches, in parallel when there is more than one device.

    The model is made of the shared arrays inside the program, so these are its arguments and no constants of it. With
    `micro_batches` M the source draws an M-th of a batch.
    """
    mesh = Devices(jax.devices() if devices is None else devices, config.batch_size // config.micro_batches)

    def init(run: Hyperparameters, shared: Shared) -> TrainState:
        model = model_of(shared)
        params = model.init(run.init_key)
        return TrainState(params, make_optimizer(config, model.decayed).init(params))

    def loss_and_gradient_at(
        sharded: Callable[[Batch], Batch], state: TrainState, run: Hyperparameters, shared: Shared, index: Array
    ) -> tuple[Array, Params]:
        computed, drawn = backend.loss_and_gradient(model_of(shared)), drawn_at(config, index)

        def loss_and_gradient(key: Array) -> tuple[Array, Params]:
            batch = sharded(batch_fn(backend.keys(key), drawn, run.batched, shared))
            return computed(state.params, batch)

        loss, gradient = mean_over_parts(loss_and_gradient, run.data_key, config.micro_batches)
        return loss, gradient

    def step(
        sharded: Callable[[Batch], Batch], state: TrainState, run: Hyperparameters, shared: Shared, index: Array
    ) -> tuple[TrainState, Array]:
        optimizer = make_optimizer(config, model_of(shared).decayed)
        loss, gradient = loss_and_gradient_at(sharded, state, run, shared, index)
        return updated(optimizer, state, gradient, scheduled(run.lr, config, index)), loss

    def chunk(
        state: TrainState, pack: Hyperparameters, shared: Shared, start: Array, stop: Array
    ) -> tuple[TrainState, ChunkInfo]:
        width = pack.lr.shape
        sharded, bare = mesh.shard_tasks(*width), model_of(shared).alone_without_vmap
        info = ChunkInfo(jnp.full(width, jnp.nan, pack.lr.dtype), jnp.full(width, NEVER, jnp.int32))

        def body(index: Array, carry: tuple[TrainState, ChunkInfo]) -> tuple[TrainState, ChunkInfo]:
            state, info = carry
            state, loss = of_each_run(partial(step, sharded), bare, state, pack, shared, index)
            state = mesh.shard_runs(state, *width)
            bad = jnp.where(jnp.isfinite(loss), NEVER, index + 1)
            return state, ChunkInfo(loss, jnp.minimum(info.diverged_at, bad))

        state, info = lax.fori_loop(start, stop, body, (state, info))
        bad = jnp.where(_all_finite(state), NEVER, stop)
        return state, info._replace(diverged_at=jnp.minimum(info.diverged_at, bad))

    def norms(state: TrainState, pack: Hyperparameters, shared: Shared, index: Array) -> Norms:
        def of_run(state: TrainState, run: Hyperparameters) -> Norms:
            _, gradient = loss_and_gradient_at(mesh.shard_tasks(*pack.lr.shape), state, run, shared, index)
            gradient_norm = optax.tree.norm(trained_part(config, gradient))
            return Norms(gradient_norm, optax.tree.norm(state.params), scheduled(run.lr, config, index))

        found: Norms = of_each_run(of_run, model_of(shared).alone_without_vmap, state, pack)
        return found

    init_all = jax.jit(jax.vmap(init, in_axes=(0, None)))
    return Trainer(init_all, jax.jit(chunk, donate_argnums=0), mesh.placed, jax.jit(norms))


def of_each_run(of_run: Callable[..., Any], bare: bool, state: TrainState, pack: Hyperparameters, *of_all: Any) -> Any:
    """What a function gives for each run of a pack, by `vmap`; bare: for a run alone by the function itself."""
    if not bare or pack.lr.shape != (1,):
        return jax.vmap(of_run, in_axes=(0, 0, *(None,) * len(of_all)))(state, pack, *of_all)
    alone_state, alone = jax.tree.map(lambda leaf: leaf[0], (state, pack))
    return jax.tree.map(lambda leaf: leaf[None], of_run(alone_state, alone, *of_all))


def mean_over_parts(of_part: Callable[[Array], Any], key: Array, parts: int) -> Any:
    """The mean of what a function gives for the keys of the parts of a batch, one after another; of one, the key."""
    return of_part(key) if parts == 1 else mean_of(lambda part: of_part(part_key(key, part)), parts)


def mean_of(of_part: Callable[[Array], Any], parts: int) -> Any:
    """The mean of what a function gives for the numbers of parts, one after another."""

    def add(part: Array, total: Any) -> Any:
        return jax.tree.map(jnp.add, total, of_part(part))

    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(of_part, jax.ShapeDtypeStruct((), jnp.int32)))
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


def run_of(tree: Any, index: int) -> Any:
    """One run's part of a pack's tree, as NumPy arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], tree)


def _all_finite(state: TrainState) -> Array:
    """Whether each run [width] of a state holds only finite values."""
    return jax.vmap(lambda leaves: jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])))(
        jax.tree.leaves(state)
    )
