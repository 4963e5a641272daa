"""Function classes: the decoder, the sets of prompts that a run uses, and what is recorded in its training.

Losses by position are the class's own: of numbers the squared error over the variance of the class's labels, of labels
-1 and 1 and of C classes the log loss in nats. Entry k has seen k pairs; entry 0 is the prior's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.config import FunctionModel, FunctionsConfig
from icl_lab.families.functions.function_class import NUMBER, OWN, SIGN, FunctionClass
from icl_lab.families.functions.sequences import (
    Pool,
    Size,
    active_inputs,
    counted_points,
    order_of,
    pool_functions,
    sample_prompts,
    traced_size,
)
from icl_lab.families.task import NO_ARRAYS, TaskSpec
from icl_lab.src import decoder
from icl_lab.src.activations import Hook
from icl_lab.src.causal import check_kind
from icl_lab.src.losses import LOSSES
from icl_lab.src.model import Model, Params, as_model
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.prng import key as make_key
from icl_lab.src.sequences import tokenise
from icl_lab.src.train import BatchFn, Shared

AT_ONCE = 2**18  # numbers in the inputs and labels of prompts that a model predicts at once

# --- the model ---


def make_model(config: FunctionsConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The decoder of a run config: always the same one for configs that differ in nothing it depends on."""
    data = config.data
    return model_of(config.model, config.function, data.dim, data.num_pairs, config.curriculum.lengths(data.num_pairs))


@lru_cache
def model_of(
    model: FunctionModel, function: FunctionClass, dim: int, num_pairs: int, lengths: tuple[int, ...] = ()
) -> Model:
    """The decoder of prompts of K pairs of dimension D; a prompt's loss is that of its class.

    The mean loss, which training minimises, is computed on the first pairs alone, the fewest of `lengths` that have all
    predictions that count: a prediction sees nothing of what comes after it.
    """
    for kind in {model.kind(layer) for layer in range(model.num_layers)}:
        check_kind(kind)
    function.check_labels(dim, num_pairs)
    classes = function.num_classes
    own_channels = max(classes, 1) * (model.token_width(dim) - dim)

    def tokens_of(batch: FunctionBatch) -> Array:
        shown = batch._replace(y=jax.nn.one_hot(batch.y.astype(jnp.int32), classes)) if classes else batch
        return tokenise(shown, model.tokens)

    def stack(tokens: Array, hook: Hook) -> Array:
        return decoder.decode(tokens, model, hook, classes)

    names, shape = _loss_names(model, function), (2 * num_pairs, dim + own_channels)
    plain = as_model(stack, tokens_of, shape, names[0], decayed=decoder.block_kernels)

    def weighted(params: Params, batch: FunctionBatch) -> Array:
        return _errors(names, plain.predict(params, batch), batch) * batch.counted

    def losses(params: Params, batch: FunctionBatch) -> Array:
        return weighted(params, batch).sum(axis=1) / batch.counted.sum(axis=1)

    def mean_loss(params: Params, batch: FunctionBatch) -> Array:
        return weighted(params, batch).sum() / batch.counted.sum()

    def of_first(pairs: int, params: Params, batch: FunctionBatch) -> Array:
        return mean_loss(_of_rows(params, 2 * pairs), _first_pairs(batch, pairs))

    def by_length(params: Params, batch: FunctionBatch) -> Array:
        needed = jnp.searchsorted(jnp.array(lengths, jnp.float32), batch.counted[0].sum())
        loss: Array = jax.lax.switch(needed, [partial(of_first, pairs) for pairs in lengths], params, batch)
        return loss

    def null_losses(batch: FunctionBatch) -> Array:
        shape = (*batch.y.shape, classes) if classes else batch.y.shape
        errors = _errors(names, jnp.zeros(shape), batch) * batch.counted
        return errors.sum(axis=1) / batch.counted.sum(axis=1)

    mean = by_length if lengths else mean_loss
    return plain._replace(losses=losses, mean_loss=mean, null_losses=null_losses, alone_without_vmap=True)


def _first_pairs(batch: FunctionBatch, pairs: int) -> FunctionBatch:
    """The first pairs of each prompt."""
    shorter: FunctionBatch = jax.tree.map(lambda leaf: leaf[:, :pairs] if leaf.ndim > 1 else leaf, batch)
    return shorter


def _of_rows(params: Params, rows: int) -> Params:
    """The parameters of a decoder of so many rows: of what it learns of rows or of their distances, the first."""
    of_rows = {"positions": lambda value: value[:rows], "distances": lambda value: value[:, :rows]}
    return {
        module: {name: of_rows.get(name, lambda value: value)(value) for name, value in values.items()}
        for module, values in params.items()
    }


def _loss_names(model: FunctionModel, function: FunctionClass) -> tuple[str, ...]:
    """The training loss of each member of a class."""
    return tuple(member.losses[0] if model.loss == OWN else model.loss for member in function.members)


def _errors(names: tuple[str, ...], predictions: Array, batch: FunctionBatch) -> Array:
    """The losses [B, K] of predictions, each by the loss of its prompt's member."""
    by_loss = {name: LOSSES[name](predictions, _as_target(name, batch.y_query)) for name in dict.fromkeys(names)}
    if len(by_loss) == 1:
        return next(iter(by_loss.values()))
    every = jnp.stack([by_loss[name] for name in names])
    chosen: Array = jnp.take_along_axis(every, batch.member[None, :, None].astype(jnp.int32), axis=0)[0]
    return chosen


def _as_target(loss: str, targets: Array) -> Array:
    return targets.astype(jnp.int32) if loss == "cross_entropy" else targets


# --- sets of prompts ---


def size_of(config: FunctionsConfig) -> Size:
    """D and K."""
    return Size(config.data.dim, config.data.num_pairs)


def batches(config: FunctionsConfig) -> BatchFn:
    """The batch function of a run's training. The pool, and how many of it count, may differ within a pack."""
    size, curriculum = size_of(config), config.curriculum

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> FunctionBatch:
        active = active_inputs(curriculum, size.dim, step)
        counted = counted_points(curriculum, size.num_pairs, step)
        step_key, count = jax.random.fold_in(key, step), config.training.batch_size
        return sample_prompts(step_key, config.function, size, count, Pool(**batched), active, counted)

    return batch_fn


def batched(config: FunctionsConfig) -> dict[str, Any]:
    """The pool: how many functions and prompts it has, its key, and the order of a finite class's functions."""
    return pool_of(config)._asdict()


def pool_of(config: FunctionsConfig) -> Pool:
    """The pool of a run."""
    data = config.data
    key, order = _pool_key_and_order(config.data_seed, config.function, data.dim)
    return Pool(key, traced_size(data.num_functions), traced_size(data.num_prompts), order)


@lru_cache(maxsize=64)
def _pool_key_and_order(data_seed: int, function: FunctionClass, dim: int) -> tuple[Array, np.ndarray]:
    key = _pool_key(np.uint32(data_seed))
    return key, order_of(key, function, dim)


_pool_key = jax.jit(lambda seed: purpose_key(make_key(seed), Purpose.POOL))


@partial(jax.jit, static_argnames=("function", "size", "count", "outside"))
def _sample(
    seed: Array,
    purpose: Array,
    function: FunctionClass,
    size: Size,
    count: int,
    pool: Pool,
    outside: bool,
) -> FunctionBatch:
    key = jax.random.fold_in(make_key(seed), purpose)
    active, counted = jnp.ones(size.dim, bool), jnp.ones(size.num_pairs)
    return sample_prompts(key, function, size, count, pool, active, counted, outside)


def prompts(
    config: FunctionsConfig,
    purpose: Purpose,
    count: int,
    outside: bool = False,
) -> FunctionBatch:
    """Prompts of all inputs and pairs for a purpose: as in training, or `outside` of the pool."""
    seed, purpose_number = np.uint32(config.data_seed), np.uint32(purpose)
    pool = pool_of(config)
    batch: FunctionBatch = _sample(seed, purpose_number, config.function, size_of(config), count, pool, outside)
    return batch


def functions_of_pool(config: FunctionsConfig) -> Any:
    """The parameters [M, ...] of the pool's functions."""
    return _pool_functions(config.function, config.data.dim, pool_of(config), int(config.data.num_functions))


_pool_functions = jax.jit(pool_functions, static_argnums=(0, 1, 3))


def has_outside(config: FunctionsConfig) -> bool:
    """Whether there are prompts that training does not have, of functions outside of its pool."""
    data = config.data
    if min(data.num_functions, data.num_prompts) == math.inf:
        return False
    return data.num_functions != config.function.count(data.dim)


def sets(config: FunctionsConfig, purpose: Purpose, outside: Purpose, count: int) -> dict[str, FunctionBatch]:
    """Prompts as in training ("id"), and where there are others those outside of the pool ("ood")."""
    found = {"id": prompts(config, purpose, count)}
    if has_outside(config):
        found["ood"] = prompts(config, outside, count, outside=True)
    return found


# --- evaluation ---


class EvalSet(NamedTuple):
    """The evaluation prompts of a run by the beginning of their numbers' names, and what measures errors on them."""

    sets: Mapping[str, FunctionBatch]
    function: FunctionClass
    names: tuple[str, ...]

    @property
    def batch(self) -> FunctionBatch:
        """The evaluation batch: prompts as in training."""
        return self.sets["id"]


def make_eval_set(config: FunctionsConfig, shared: Shared = NO_ARRAYS) -> EvalSet:
    """The evaluation set of a config."""
    found = sets(config, Purpose.EVAL, Purpose.LATENT, config.eval_tasks)
    return EvalSet(found, config.function, _loss_names(config.model, config.function))


_predict = jax.jit(lambda model, params, batch: model.predict(params, batch), static_argnums=0)


def predictions_of(model: Model, params: Any, batch: FunctionBatch) -> np.ndarray:
    """A decoder's predictions [B, K], or logits [B, K, C], in float64; so many prompts at a time as fit."""
    tasks, pairs, dim = batch.x.shape
    size = max(1, AT_ONCE // (pairs * (dim + 1)))
    parts = [
        np.asarray(_predict(model, params, jax.tree.map(lambda leaf: leaf[start : start + size], batch)), np.float64)  # noqa: B023
        for start in range(0, tasks, size)
    ]
    return np.concatenate(parts)


def first(batch: FunctionBatch, count: int) -> FunctionBatch:
    """The first prompts of a batch."""
    part: FunctionBatch = jax.tree.map(lambda leaf: leaf[:count], batch)
    return part


def errors_of(function: FunctionClass, predictions: np.ndarray, batch: FunctionBatch) -> np.ndarray:
    """The losses [B, K] of a model's predictions: squared errors over the variance, or log losses in nats."""
    targets, dim = np.asarray(batch.y_query, np.float64), batch.x.shape[-1]
    errors = np.stack([_error(member, predictions, targets, dim) for member in function.members])
    chosen: np.ndarray = errors[np.asarray(batch.member), np.arange(len(targets))]
    return chosen


def _error(function: FunctionClass, predictions: np.ndarray, targets: np.ndarray, dim: int) -> np.ndarray:
    """The losses [B, K] of predictions for one class."""
    errors: np.ndarray
    if function.target == NUMBER:
        errors = (predictions - targets) ** 2 / function.variance(dim)
    elif function.target == SIGN:
        errors = np.logaddexp(0, -targets * predictions)
    else:
        normed = predictions - np.logaddexp.reduce(predictions, axis=-1, keepdims=True)
        errors = -np.take_along_axis(normed, targets.astype(int)[..., None], axis=-1)[..., 0]
    return errors


@partial(jax.jit, static_argnums=0)
def _training_loss(names: tuple[str, ...], predictions: Array, batch: FunctionBatch) -> Array:
    return jnp.mean(_errors(names, predictions, batch))


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, Any]:
    """Metrics of a record: eval_loss, which training minimises, and the losses by position [K] and their mean."""
    said = {prefix: predictions_of(model, params, batch) for prefix, batch in eval_set.sets.items()}
    loss = _training_loss(eval_set.names, jnp.asarray(said["id"], jnp.float32), eval_set.batch)
    values: dict[str, Any] = {"eval_loss": float(loss)}
    for prefix, batch in eval_set.sets.items():
        errors = errors_of(eval_set.function, said[prefix], batch)
        values |= {f"eval_{prefix}_loss": float(errors.mean()), f"eval_{prefix}_errors": errors.mean(axis=0).tolist()}
    return values


def predictions(model: Model, params: Any, eval_set: EvalSet) -> dict[str, np.ndarray]:
    """The model's predictions [B, K], or logits [B, K, C], on each set."""
    return {
        f"{prefix}_tf": predictions_of(model, params, batch).astype(np.float32)
        for prefix, batch in eval_set.sets.items()
    }


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
    batched=batched,
    predictions=predictions,
)
