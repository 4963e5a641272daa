"""Sines in context: the model or its control, and the sets of tasks that a run uses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.baselines.mlp_gd import one_step
from icl_lab.families.sine.config import SineConfig
from icl_lab.families.task import NO_ARRAYS, EvalSet, TaskSpec, task_key
from icl_lab.src import sine
from icl_lab.src.batch import Batch
from icl_lab.src.losses import half_mse
from icl_lab.src.model import Model, Params
from icl_lab.src.prng import Purpose
from icl_lab.src.sine import read_outs, sample_sines
from icl_lab.src.statistics import means_and_errors
from icl_lab.src.train import BatchFn, Shared
from icl_lab.src.transformer import run_stack

_sample = jax.jit(sample_sines, static_argnames=("data", "batch_size"))


def make_model(config: SineConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The model of a config: the transformer or, with a step size, the control."""
    return sine.make_model(config.architecture, one_step if config.model.step_size > 0 else run_stack)


def batches(config: SineConfig) -> BatchFn:
    """The batch function of a run's training. Sines are neither corrupted nor ordered."""

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> Batch:
        return sample_sines(jax.random.fold_in(key, step), config.data, config.training.batch_size)

    return batch_fn


def evaluation_batch(config: SineConfig) -> Batch:
    """The evaluation batch, which is also the analysis batch."""
    batch: Batch = _sample(task_key(config, Purpose.EVAL), config.data, config.eval_tasks)
    return batch


def make_eval_set(config: SineConfig, shared: Shared = NO_ARRAYS) -> EvalSet:
    """The evaluation set of a config."""
    return EvalSet(evaluation_batch(config))


def make_test_batch(config: SineConfig) -> Batch:
    """The test tasks: none of them is in the evaluation batch."""
    batch: Batch = _sample(task_key(config, Purpose.TEST_SET), config.data, config.test_tasks)
    return batch


@partial(jax.jit, static_argnums=0)
def both_read_outs(model: Model, params: Params, batch: Batch) -> tuple[Array, Array]:
    """`src.sine.read_outs` as one program: predictions before and after the context, each [B]."""
    return read_outs(model, params, batch)


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, float]:
    """Metrics of a record: the loss on the evaluation batch, and that of the initial function."""
    before, after = both_read_outs(model, params, eval_set.batch)
    targets = np.asarray(eval_set.batch.y_query)
    return {"eval_loss": float(half_mse(after, targets)), "eval_initial_loss": float(half_mse(before, targets))}


def predictions(model: Model, params: Any, eval_set: EvalSet) -> dict[str, Array]:
    """The read-outs [B] before and after the context, on the evaluation batch."""
    before, after = both_read_outs(model, params, eval_set.batch)
    return {"before": before, "after": after}


def test_metrics(config: SineConfig, model: Model, params: Any, eval_set: EvalSet | None) -> dict[str, Any]:
    """Losses with standard errors on the test tasks: after the context, before it, and of answering 0."""
    batch = make_test_batch(config)
    before, after = both_read_outs(model, params, batch)
    predictions = {"loss": after, "initial_loss": before, "zero_loss": jnp.zeros_like(after)}
    errors = {name: np.asarray(value - batch.y_query, np.float64) for name, value in predictions.items()}
    return {"tasks": config.test_tasks, **means_and_errors({name: 0.5 * error**2 for name, error in errors.items()})}


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
    predictions=predictions,
    test_metrics=test_metrics,
)
