"""How a family trains and evaluates its models: the part of it that computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.lab.configs.identity import number_of, shared_hashes
from icl_lab.lab.configs.registry import family_of, part
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.checks import require
from icl_lab.src.model import Batch, Model
from icl_lab.src.prng import Purpose
from icl_lab.src.prng import key as make_key
from icl_lab.src.train import BatchFn, Shared, part_key

NO_ARRAYS: Shared = {}
Config = TypeVar("Config", bound=RunConfig)


class EvalSet(NamedTuple):
    """What a run is evaluated on, where that is a batch alone."""

    batch: Any


class TaskSpec(NamedTuple):
    """How a family trains and evaluates its models. `config` is the family's own.

    make_model(config, shared) and batches(config) depend on the config's static shape alone; shared arrays are those of
    the family and of the runs that it requires. batched(config): the values of the batch function that may differ
    within a pack, by name. frozen(config, runs): shared arrays made of the parameters of the required runs.

    make_eval_set(config, shared): all that evaluating a run needs, with its batch as `batch`.
    eval_metrics(model, params, eval_set): the values of a record of the metrics, of which eval_loss is one;
        what is of the evaluation batch begins with eval_.
    predictions(model, params, eval_set): arrays of a finished run for predictions.npz, by name; none without.
    test_metrics(config, model, params, eval_set): the numbers of a finished run on its test set; none where they are an
        analysis's. references(config, summary): numbers that the family's criteria rest on and a summary lacks.
    """

    make_model: Callable[[Any, Shared], Model]
    batches: Callable[[Any], BatchFn]
    make_eval_set: Callable[[Any, Shared], Any]
    eval_metrics: Callable[[Model, Any, Any], Mapping[str, Any]]
    batched: Callable[[Any], Mapping[str, Any]] = lambda config: {}
    frozen: Callable[[Any, list[Any]], Shared] = lambda config, runs: {}
    predictions: Callable[[Model, Any, Any], Mapping[str, Any]] = lambda model, params, eval_set: {}
    test_metrics: Callable[[Any, Model, Any, Any], Mapping[str, Any]] = lambda config, model, params, eval_set: {}
    references: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] = lambda config, summary: {}
    loss_unit: Callable[[Any], float] = lambda config: 1.0


def task_of(config: RunConfig) -> TaskSpec:
    """The task of a config's family; `ConfigError` if its module has none."""
    return part(family_of(config), "task", TaskSpec)


def model_of(config: RunConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The model of a run config of any family: always the same one where nothing is shared."""
    return task_of(config).make_model(config, shared)


def shared_of(config: RunConfig) -> Mapping[str, Array | np.ndarray]:
    """The arrays that a family shares among runs; `ConfigError` if they are not those of the config."""
    arrays = config.shared_arrays()
    changed = sorted({*shared_hashes(config, arrays)} ^ {*config.shared})
    file = config.data_file
    require(not (file and changed), f"{file} has changed since the run began; restore it, or train another run")
    require(
        not changed,
        f"the shared array {changed[0].partition(':')[0] if changed else ''} has changed since the config of "
        f"{config.name} was made; make the config again, or restore the array",
    )
    return arrays


def batches_of(sample: Callable[..., Batch]) -> Callable[[Any], BatchFn]:
    """The batch functions of a family whose tasks are drawn by sample(key, config, count, **batched)."""

    def batches(config: Any) -> BatchFn:
        def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> Batch:
            return sample(jax.random.fold_in(key, step), config, config.training.batch_size, **batched)

        return batch_fn

    return batches


def sampled(sample: Callable[..., Batch], config: Any, purpose: Purpose, count: int) -> Batch:
    """A set of a run's tasks that are drawn so, for a purpose."""
    return _jitted(sample)(task_key(config, purpose), config, count, **task_of(config).batched(config))


@lru_cache
def _jitted(sample: Callable[..., Batch]) -> Callable[..., Batch]:
    drawn: Callable[..., Batch] = jax.jit(sample, static_argnums=(1, 2))
    return drawn


def fresh_tasks(config: RunConfig, count: int, seed: int, shared: Shared = NO_ARRAYS) -> Any:
    """Tasks drawn as those of a run's evaluation, that no run has seen: a function of the distribution and the seed."""
    training = replace(config.training, batch_size=count, micro_batches=1)
    drawn, task = replace(config.as_evaluated(), training=training), task_of(config)
    key = fold_in(_key(np.uint32(seed)), np.uint32(Purpose.SAMPLE))
    return jax.jit(task.batches(drawn))(key, np.int32(0), task.batched(drawn), shared)


def training_set(config: Any) -> Batch | None:
    """The finite training set of a config with `full_batch`, which is the first batch; else None: tasks are fresh.

    Of a family whose batches need no arrays of required runs.
    """
    if not config.training.full_batch:
        return None
    task, shared = task_of(config), shared_of(config)
    draw = jax.jit(task.batches(with_parts_as_batches(config)))
    key, count = task_key(config, Purpose.TRAIN), config.training.micro_batches
    keys = [key] if count == 1 else [part_key(key, part) for part in range(count)]
    parts = [draw(key, np.int32(0), task.batched(config), shared) for key in keys]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def with_parts_as_batches(config: Config) -> Config:
    """The config whose batches are the micro-batches of this one."""
    training = config.training
    part = replace(training, batch_size=training.batch_size // training.micro_batches, micro_batches=1)
    return config if part == training else replace(config, training=part)


def task_key(config: RunConfig, purpose: Purpose) -> Array:
    """The key of one of a run's sets of tasks: that of the purpose under the data seed.

    A run that starts from given parameters trains on other tasks than the run that they come from.
    """
    given = config.init_from if purpose == Purpose.TRAIN else ""
    key: Array = fold_in(_key(np.uint32(config.data_seed)), np.uint32(Purpose.TRAIN_FROM if given else purpose))
    return fold_in(key, np.uint32(number_of(given))) if given else key


_key, fold_in = jax.jit(make_key), jax.jit(jax.random.fold_in)
