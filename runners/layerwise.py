"""A run of the family layerwise as it trains and at its end: a loss after every layer, beside gradient descent's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from analysis.measures.layerwise import layerwise
from baselines.curves import path_losses, prediction_losses
from baselines.gradient_descent import one_step_size
from baselines.iterations import descent, normal_equations
from baselines.step_sizes import DAMPING
from configs.identity import config_id
from configs.regression import RegressionConfig
from families.experiment import task_key
from runners.finish import Wanted, end
from src.batch import Batch
from src.model import Model
from src.prng import Purpose
from src.queries import sample_batch
from src.train import BatchFn
from store import layout
from store.atomic import write_json, write_npz
from store.params import write_params


class Setting(NamedTuple):
    """What a run is looked at with: its evaluation batch, and gradient descent's loss on it."""

    batch: Batch
    gd_loss: float


def training_batches(config: RegressionConfig) -> BatchFn:
    """The batch function of a run's training tasks; what else may differ within a pack has no meaning here."""

    def batch_fn(key: Array, step: Array, **knobs: Array) -> Batch:
        return sample_batch(jax.random.fold_in(key, step), config.data, config.training.batch_size)

    return batch_fn


def prepare(config: RegressionConfig) -> Setting:
    """The setting of a config: gradient descent takes a step a layer, of size c* for one and .75 c* for more."""
    sample = jax.jit(sample_batch, static_argnames=("data", "batch_size"))
    batch = sample(task_key(config, Purpose.EVAL), config.data, config.eval_tasks)
    layers = config.model.num_layers
    c = one_step_size(config.data) * (1 if layers == 1 else DAMPING)
    path = descent(normal_equations(batch), jnp.full(config.eval_tasks, c), layers, jnp.zeros_like(batch.w))
    return Setting(batch, 0.5 * float(path_losses(path[-1:], batch).mean()))


def look(model: Model, params: Any, setting: Setting) -> dict[str, float]:
    """A moment of a training: half the mean squared error of the last layer, and gradient descent's."""
    return {"test_loss": float(_last_layer_loss(model, params, setting.batch)), "gd_loss": setting.gd_loss}


def _half_mse(model: Model, params: Any, batch: Batch) -> Array:
    return 0.5 * jnp.mean(prediction_losses(model.trace(params, batch).layer_predictions[-1:], batch))


_last_layer_loss = jax.jit(_half_mse, static_argnums=0)


def finish(
    run: Path, config: RegressionConfig, model: Model, params: Any, setting: Setting, wanted: Wanted
) -> Iterator[None]:
    """Writes all that a finished run leaves, ending with the status "done". The same files come from a second call."""
    write_params(run, params, {"config_id": config_id(config), "step": config.training.steps})
    write_npz(run / layout.ANALYSIS_BATCH, jax.tree.map(np.asarray, setting.batch)._asdict())
    yield
    found = layerwise(config, model, params)
    write_json(run / layout.LAYERWISE, found)
    yield
    yield from end(run, config, {"layerwise": found}, wanted.figures)
