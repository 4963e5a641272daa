"""The depth curve: a stack that is read after every layer, its tasks, and gradient descent of as many steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.baselines.gd_curve import DAMPING
from icl_lab.baselines.iterations import descent, normal_equations
from icl_lab.baselines.loss_curves import path_losses, prediction_losses
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.task import NO_ARRAYS, TaskSpec, task_key
from icl_lab.src import layerwise
from icl_lab.src.batch import Batch
from icl_lab.src.model import Model
from icl_lab.src.one_step import one_step_size
from icl_lab.src.prng import Purpose
from icl_lab.src.queries import sample_batch
from icl_lab.src.train import BatchFn, Shared


class EvalSet(NamedTuple):
    """What a run is evaluated on: a batch, and gradient descent's loss on it."""

    batch: Batch
    gd_loss: float


_sample = jax.jit(sample_batch, static_argnames=("data", "batch_size"))


def make_model(config: LayerwiseConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The stack of a run config: always the same one for configs that differ in nothing it depends on."""
    return layerwise.make_model(config.architecture, config.training.deep_supervision)


def batches(config: LayerwiseConfig) -> BatchFn:
    """The batch function of a run's training tasks."""

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> Batch:
        return sample_batch(jax.random.fold_in(key, step), config.data, config.training.batch_size)

    return batch_fn


def make_eval_set(config: LayerwiseConfig, shared: Shared = NO_ARRAYS) -> EvalSet:
    """The evaluation set of a config. Gradient descent takes a step a layer, of size c* for one and .75 c* for more."""
    batch = _sample(task_key(config, Purpose.EVAL), config.data, config.eval_tasks)
    layers = config.model.num_layers
    c = one_step_size(config.data) * (1 if layers == 1 else DAMPING)
    path = descent(normal_equations(batch), jnp.full(config.eval_tasks, c), layers, jnp.zeros_like(batch.w))
    return EvalSet(batch, 0.5 * float(path_losses(path[-1:], batch).mean()))


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, float]:
    """Metrics of a record: half the mean squared error of the last layer, and gradient descent's."""
    return {"eval_loss": float(_last_layer_loss(model, params, eval_set.batch)), "eval_gd_loss": eval_set.gd_loss}


def _half_mse(model: Model, params: Any, batch: Batch) -> Array:
    return 0.5 * jnp.mean(prediction_losses(model.trace(params, batch).layer_predictions[-1:], batch))


_last_layer_loss = jax.jit(_half_mse, static_argnums=0)


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
)
