"""How a family trains and evaluates its models: the part of it that computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.lab.configs.dependencies import shared_hashes
from icl_lab.lab.configs.registry import family_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.plugin_files import imported_module
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.model import Batch, Model
from icl_lab.src.prng import Purpose
from icl_lab.src.prng import key as make_key
from icl_lab.src.registries import FAMILIES
from icl_lab.src.train import BatchFn, Shared, part_key

NO_ARRAYS: Shared = {}
Part = TypeVar("Part")
Config = TypeVar("Config", bound=RunConfig)


def first_batch(config: Any) -> Batch | None:
    """The finite training set of a config with `full_batch`, which is the first batch; else None.

    Of a family whose batches need no arrays of required runs.
    """
    if not config.training.full_batch:
        return None
    experiment, shared = experiment_of(config), shared_of(config)
    draw = jax.jit(experiment.batches(with_parts_as_batches(config)))
    key, count = task_key(config, Purpose.TRAIN), config.training.micro_batches
    keys = [key] if count == 1 else [part_key(key, part) for part in range(count)]
    parts = [draw(key, np.int32(0), experiment.batched(config), shared) for key in keys]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def with_parts_as_batches(config: Config) -> Config:
    """The config whose batches are the micro-batches of this one."""
    training = config.training
    part = replace(training, batch_size=training.batch_size // training.micro_batches, micro_batches=1)
    return config if part == training else replace(config, training=part)


class Experiment(NamedTuple):
    """How a family trains and evaluates its models. `config` is the family's own.

    make_model(config, shared) and batches(config) depend on the config's static shape alone; shared arrays are those of
    the family and of the runs that it requires. batched(config): the
    hyperparameters of the batch function that may differ within a pack, by name.

    make_eval_set(config): all that evaluating a run needs, of any type; eval_batch(eval_set): its batch.
    eval_metrics(model, params, eval_set): the values of a record of the metrics, of which eval_loss is one;
        what is measured on the evaluation batch begins with eval_.

    training_set(config): the finite training set, or None where every step draws fresh tasks. frozen(config, runs):
    shared arrays made of the parameters of the required runs. with_shared(eval_set, config, shared): the evaluation set
    completed by the parts that depend on shared arrays. references(config, summary): numbers that the family's
    criteria rest on and an earlier version's summary lacks. undefined(config, summary): why no number can tell whether
    the run trained, or None.
    """

    make_model: Callable[[Any, Shared], Model]
    batches: Callable[[Any], BatchFn]
    make_eval_set: Callable[[Any], Any]
    eval_batch: Callable[[Any], Batch]
    eval_metrics: Callable[[Model, Any, Any], Mapping[str, Any]]
    batched: Callable[[Any], Mapping[str, Any]] = lambda config: {}
    training_set: Callable[[Any], Batch | None] = first_batch
    frozen: Callable[[Any, list[Any]], Shared] = lambda config, runs: {}
    references: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] = lambda config, summary: {}
    undefined: Callable[[Any, Mapping[str, Any]], str | None] = lambda config, summary: None
    with_shared: Callable[[Any, Any, Shared], Any] = lambda eval_set, config, shared: eval_set


def experiment_of(config: RunConfig) -> Experiment:
    """The experiment of a config's family; `ConfigError` if its module has none."""
    family = family_of(config)
    return part(family.name, family.modules[0], "EXPERIMENT", Experiment)


def part(family: str, module: str, name: str, kind: type[Part]) -> Part:
    """A part of a family, from its module; `ConfigError` if it is not there."""
    plugin = FAMILIES.plugin(family)
    attribute = getattr(import_module(module) if plugin is None else imported_module(plugin, module), name, None)
    if not isinstance(attribute, kind):
        raise ConfigError(
            f"the family {family} lacks a part: {module} has no {name}, a {kind.__module__}.{kind.__name__}"
        )
    return attribute


def model_of(config: RunConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The model of a run config of any family: always the same one where nothing is shared."""
    return experiment_of(config).make_model(config, shared)


def shared_of(config: RunConfig) -> Mapping[str, Array | np.ndarray]:
    """The arrays that a family shares among runs; `ConfigError` if they are not those of the config."""
    arrays = family_of(config).shared(config)
    changed = sorted({*shared_hashes(config, arrays)} ^ {*config.shared})
    require(
        not changed,
        f"the shared array {changed[0].partition(':')[0] if changed else ''} has changed since the config of "
        f"{config.name} was made; make it again, or bring back the array",
    )
    return arrays


def task_key(config: RunConfig, purpose: Purpose) -> Array:
    """The key of one of a run's sets of tasks: that of the purpose under the data seed."""
    key: Array = fold_in(_key(np.uint32(config.data_seed)), np.uint32(purpose))
    return key


_key, fold_in = jax.jit(make_key), jax.jit(jax.random.fold_in)
