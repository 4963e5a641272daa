"""The functions timed against each other within a process: number of units of work in, seconds out.

`ours` is what the runners use; `plain` is benchmarks/plain_loop.py on the same config.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from icl_lab.benchmarks.plain_loop import plain_loop, predict, sample
from icl_lab.benchmarks.timing import Timed
from icl_lab.families.native_kernel import of_training
from icl_lab.families.regression.task import make_test_batch
from icl_lab.families.task import NO_ARRAYS, model_of, task_of, with_parts_as_batches
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.native.build import native_kernel
from icl_lab.lab.native.kernel import XLA, Kernel
from icl_lab.runners.kernel import block_of, reason_of, slower_of
from icl_lab.runners.pack import batched_hyperparameters
from icl_lab.src.model import Params
from icl_lab.src.prng import key as make_key
from icl_lab.src.train import make_trainer, run_of


class Program(NamedTuple):
    """Our compiled training program: train(n) -> seconds of n more steps; params() of the first run."""

    train: Timed
    params: Callable[[], Params]
    compile_seconds: float


def automatic(config: Any) -> Kernel:
    """What `--kernel auto` takes: the native kernel, XLA in blocks of tasks, or XLA."""
    return XLA.in_blocks(block_of(config)) if reason_of(config) or slower_of(config) else native_kernel()


def our_program(
    config: RunConfig, width: int = 1, kernel: Kernel = XLA, clock: Callable[[], float] = time.perf_counter
) -> Program:
    """Our training program for `width` seeds; clock: what tells the time."""
    experiment = task_of(config)
    trainer = make_trainer(
        partial(experiment.make_model, config),
        config.training,
        experiment.batches(with_parts_as_batches(config)),
        backend=of_training(kernel, config),
    )
    seeds = [replace(config, data_seed=seed, init_seed=seed) for seed in range(width)]
    pack = batched_hyperparameters(seeds, width)
    shared = {name: jnp.asarray(array) for name, array in config.shared_arrays().items()}
    state = trainer.init(pack, shared)
    began = clock()
    program = trainer.chunk.lower(state, pack, shared, jnp.int32(0), jnp.int32(0)).compile()
    compile_seconds = clock() - began
    done = 0

    def train(steps: int) -> float:
        nonlocal state, done
        start, stop = jnp.int32(done), jnp.int32(done + steps)
        began = clock()
        state, _ = program(state, pack, shared, start, stop)
        jax.block_until_ready(state)
        done += steps
        return clock() - began

    return Program(train, lambda: run_of(state.params, 0), compile_seconds)


def steps(config: RunConfig, width: int) -> dict[str, Timed]:
    """Training steps, including their batches; where ours are not plain XLA's, those too."""
    kernel = automatic(config)
    also = {} if kernel == XLA else {"xla": our_program(config, width).train}
    return {"ours": our_program(config, width, kernel).train, **also, "plain": plain_loop(config)[0]}


def gradients(config: Any, width: int) -> dict[str, Timed]:
    """Losses and gradients alone, of one batch, in a loop; parameters move, so that no call can be left out."""
    task = task_of(config)
    model, run = (
        task.make_model(config, NO_ARRAYS),
        jax.tree.map(lambda leaf: leaf[0], batched_hyperparameters([config], 1)),
    )
    batch = jax.jit(task.batches(config))(run.data_key, jnp.int32(0), run.batched, NO_ARRAYS)
    params = model.init(run.init_key)

    def timed(kernel: Kernel) -> Timed:
        computed = of_training(kernel, config).loss_and_gradient(model)

        def step(_: Any, params: Params) -> Params:
            slope = computed(params, batch)[1]
            moved: Params = jax.tree.map(lambda value, change: value - 1e-6 * change, params, slope)
            return moved

        many = jax.jit(lambda count, params: lax.fori_loop(0, count, step, params))
        return lambda count: _seconds(lambda _: many(jnp.int32(count), params), 1)

    kernel = automatic(config)
    return {"ours": timed(kernel), **({} if kernel == XLA else {"xla": timed(XLA)})}


def batches(config: RunConfig, width: int) -> dict[str, Timed]:
    """Training batches alone: ours all in one program, the plain loop's one per dispatch."""
    run, batch_fn = (
        jax.tree.map(lambda leaf: leaf[0], batched_hyperparameters([config], 1)),
        task_of(config).batches(config),
    )

    def draw(index: Array, _: Any) -> Any:
        return batch_fn(run.data_key, index, run.batched, NO_ARRAYS)

    empty = jax.tree.map(jnp.zeros_like, draw(jnp.int32(0), None))
    draw_many = jax.jit(lambda count: lax.fori_loop(0, count, draw, empty))
    plain, keys = jax.jit(lambda key: sample(key, config, config.training.batch_size)), jax.random.key(config.data_seed)
    return {
        "ours": lambda count: _seconds(lambda _: draw_many(jnp.int32(count)), 1),
        "plain": lambda count: _seconds(lambda index: plain(jax.random.fold_in(keys, index)), count),
    }


def evaluation(config: Any, width: int) -> dict[str, Timed]:
    """Predictions on the test set."""
    model, batch = model_of(config), make_test_batch(config)
    params = model.init(make_key(config.init_seed))
    ours, plain = jax.jit(model.predict), jax.jit(lambda params, batch: predict(params, batch, config))
    return {
        "ours": lambda count: _seconds(lambda _: ours(params, batch), count),
        "plain": lambda count: _seconds(lambda _: plain(params, batch), count),
    }


def _seconds(work: Callable[[int], Any], count: int) -> float:
    """Seconds of work(0), ..., work(count - 1), until the last result is ready."""
    began = time.perf_counter()
    for index in range(count):
        done = work(index)
    jax.block_until_ready(done)
    return time.perf_counter() - began


WORK: dict[str, Callable[[RunConfig, int], dict[str, Timed]]] = {
    "steps": steps,
    "gradients": gradients,
    "batches": batches,
    "evaluation": evaluation,
}
