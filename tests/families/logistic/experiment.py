"""What the family computes: its model, its batches, its evaluation set, and what is recorded in training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.experiment import NO_ARRAYS, Experiment, task_key
from icl_lab.src.batch import Batch
from icl_lab.src.config import Architecture, StackConfig
from icl_lab.src.data import concatenated_tokens
from icl_lab.src.losses import binary_cross_entropies
from icl_lab.src.model import Model, Params, as_model
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.train import BatchFn, Shared
from icl_lab.src.transformer import run_stack

from .config import LogisticConfig

LOG_2 = math.log(2)  # the cross-entropy of saying 1/2


def sample(key: Array, config: LogisticConfig, batch_size: int, weight_scale: Array) -> Batch:
    """B fresh tasks of the config's sizes: y ~ Bernoulli(sigmoid(w.x)), the query's label too."""
    data = config.data
    w = weight_scale * jax.random.normal(purpose_key(key, Purpose.TASK), (batch_size, data.dim))
    x = jax.random.normal(purpose_key(key, Purpose.INPUT), (batch_size, data.num_pairs + 1, data.dim))
    logits = jnp.einsum("bnd,bd->bn", x, w)
    drawn = jax.random.uniform(purpose_key(key, Purpose.OBSERVATION), logits.shape)
    y = (drawn < jax.nn.sigmoid(logits)).astype(x.dtype)
    return Batch(x[:, :-1], y[:, :-1], x[:, -1], y[:, -1], w)


def make_model(config: LogisticConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The stack of a config; its predictions are logits, and its losses cross-entropies."""
    return model_of(config.architecture)


@lru_cache
def model_of(architecture: Architecture[StackConfig]) -> Model:
    """Always the same model of an architecture, on tokens (x, y - 1/2)."""

    def tokenise(batch: Batch) -> Array:
        return concatenated_tokens(batch._replace(y=batch.y - 0.5))

    stack = as_model(
        lambda tokens, hook: run_stack(tokens, architecture, hook),
        tokenise,
        (architecture.num_rows, architecture.token_width),
    )

    def losses(params: Params, batch: Batch) -> Array:
        return binary_cross_entropies(stack.predict(params, batch), batch.y_query)

    def null_losses(batch: Batch) -> Array:
        return binary_cross_entropies(jnp.zeros_like(batch.y_query), batch.y_query)

    return stack._replace(losses=losses, mean_loss=None, null_losses=null_losses)


def batches(config: LogisticConfig) -> BatchFn:
    """The batch function of a run's training; the scale of the weights may differ within a pack."""

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> Batch:
        return sample(jax.random.fold_in(key, step), config, config.training.batch_size, batched["weight_scale"])

    return batch_fn


def batched(config: LogisticConfig) -> dict[str, Any]:
    """What may differ within a pack."""
    return {"weight_scale": np.float32(config.data.weight_scale)}


_sample = jax.jit(sample, static_argnums=(1, 2))


def evaluation_batch(config: LogisticConfig) -> Batch:
    """The evaluation batch, which is also the analysis batch."""
    batch: Batch = _sample(task_key(config, Purpose.EVAL), config, config.eval_tasks, **batched(config))
    return batch


def make_test_batch(config: LogisticConfig) -> Batch:
    """The test set."""
    batch: Batch = _sample(task_key(config, Purpose.TEST_SET), config, config.test_tasks, **batched(config))
    return batch


def eval_metrics(model: Model, params: Any, batch: Batch) -> dict[str, float]:
    """A record: the loss on the evaluation batch, and that of a predictor that says 1/2."""
    return {"eval_loss": float(_loss(model, params, batch)), "eval_constant_loss": LOG_2}


def _mean_loss(model: Model, params: Any, batch: Batch) -> Array:
    return model.loss(params, batch)


_loss = jax.jit(_mean_loss, static_argnums=0)

EXPERIMENT = Experiment(
    make_model=make_model,
    batches=batches,
    make_eval_set=evaluation_batch,
    eval_batch=lambda batch: batch,
    eval_metrics=eval_metrics,
    batched=batched,
)
