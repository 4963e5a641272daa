"""Linear regression in context: the model, the sets of tasks that a run uses, and its baseline, gradient descent.

A set of tasks is a pure function of the config and its purpose; training batches are one of (data seed, step). No two
purposes share a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.baselines.comparison import compare
from icl_lab.baselines.gradient_descent import gd
from icl_lab.baselines.preconditioned import losses, trained_step
from icl_lab.baselines.step_size_search import search_step_size
from icl_lab.families.own_batches import loss_unit, own_set, training_batch
from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.task import NO_ARRAYS, TaskSpec, fold_in, task_key
from icl_lab.src import transformer
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import Context, arrange, arranged, draw_context, draw_contexts
from icl_lab.src.data import sample_batch, take_pairs
from icl_lab.src.data_config import DataConfig
from icl_lab.src.model import Model, Params
from icl_lab.src.prng import Purpose
from icl_lab.src.train import BatchFn, Shared
from icl_lab.src.units import Units, in_units, predictor_in_units, standardised, units_of

LOGGED = ("gd_loss", "preds_diff", "model_diff", "model_cos")  # over training, each with `eval_` in front

_sample = jax.jit(sample_batch, static_argnames=("data", "batch_size"))


def make_model(config: RegressionConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The transformer of a run config: always the same one for configs that differ in nothing it depends on."""
    return in_units(transformer.make_model(config.architecture), units_of(config.data))


# --- sets of tasks ---


def in_float64() -> bool:
    """Whether JAX computes in float64, on which what is kept of a config depends too."""
    return bool(jnp.result_type(float) == np.float64)


def of_fields(config: RegressionConfig, *names: str) -> RegressionConfig:
    """The config with these fields and all else at its default: runs alike in them share what depends on them alone.

    Other numbers of tasks are the least, 2: large contexts may not allow the defaults.
    """
    counts = dict.fromkeys({field.name for field in fields(config)} & {*config.tasks_at_once}, 2)
    return RegressionConfig(**counts | {name: getattr(config, name) for name in names})


def batches(config: RegressionConfig) -> BatchFn:
    """The batch function of a run's training contexts. Noise rate and strength may differ within a pack."""

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> Batch:
        size, step_key = config.training.batch_size, jax.random.fold_in(key, step)
        noise = batched["noise_p"], batched["noise_sigma"]
        if config.data.file:
            own = training_batch(step_key, config, size, shared)
            return arranged(step_key, own, config.data, config.train, *noise).batch
        return draw_context(step_key, config.data, config.train, size, *noise).batch

    return batch_fn


def batched(config: RegressionConfig) -> dict[str, np.float32]:
    """Rate and strength of the training noise."""
    return {"noise_p": np.float32(config.train.noise_p), "noise_sigma": np.float32(config.train.noise_sigma)}


def first_training_context(config: RegressionConfig) -> Context:
    """The context of the first training step, with what was done to it."""
    key = fold_in(task_key(config, Purpose.TRAIN), np.uint32(0))
    if config.data.file:
        size, shared = config.training.batch_size, config.shared_arrays()
        own: Batch = _training_batch(key, config, size, {name: np.asarray(part) for name, part in shared.items()})
        return arrange(key, own, config.data, config.train)
    return draw_contexts(key, [config.data], config.train, config.training.batch_size)[0]


def evaluation_context(config: RegressionConfig) -> Context:
    """The evaluation batch, which is also the analysis batch."""
    if config.data.file:
        return arrange(task_key(config, Purpose.EVAL), own_set(config, "eval"), config.data, config.eval)
    return _evaluation_context(of_fields(config, "data", "eval", "data_seed", "eval_tasks"), in_float64())


@lru_cache(maxsize=2)
def _evaluation_context(config: RegressionConfig, double: bool) -> Context:
    return draw_contexts(task_key(config, Purpose.EVAL), [config.data], config.eval, config.eval_tasks)[0]


def clean_twin(config: RegressionConfig, context: Context) -> Batch:
    """The evaluation batch as it would be with no pair corrupted: the same keys, and the same permutation of pairs."""
    if config.data.file:
        batch = own_set(config, "eval")
    else:
        batch = _sample(task_key(config, Purpose.EVAL), config.data, config.eval_tasks)
    return take_pairs(batch, context.index)


def make_test_batch(config: RegressionConfig) -> Batch:
    """The test tasks: of the evaluation batch's distribution, none of them in it."""
    return make_test_batches(config, [config.data])[0]


def make_test_batches(config: RegressionConfig, distributions: Sequence[DataConfig]) -> tuple[Batch, ...]:
    """The test tasks under several distributions, made from the same random numbers; a file has its own alone."""
    key = task_key(config, Purpose.TEST_SET)
    if config.data.file:
        alike = all(data == config.data for data in distributions)
        require(alike, f"the contexts of {config.data.file} are fixed; no others can be drawn")
        return (arrange(key, own_set(config, "test"), config.data, config.eval).batch,) * len(distributions)
    return tuple(context.batch for context in draw_contexts(key, distributions, config.eval, config.test_tasks))


def step_size_batch(config: RegressionConfig) -> Batch:
    """Clean tasks on which step sizes are searched, shared with nothing else; of a file those of the training."""
    if config.data.file:
        return _fitted_on(config)
    batch: Batch = _sample(task_key(config, Purpose.STEP_SIZE), config.data, config.step_size_tasks)
    return batch


def corrupted_step_size_batch(config: RegressionConfig) -> Batch:
    """Tasks corrupted as the evaluation's are, on which a step size for them is searched; shared with nothing else.

    Neither ordered nor placed: gradient descent sums over the pairs.
    """
    unordered = replace(config.eval, ordering="random", noise_placement="mixed")
    key = task_key(config, Purpose.CORRUPTED_STEP_SIZE)
    if config.data.file:
        return arrange(key, _fitted_on(config), config.data, unordered).batch
    return draw_contexts(key, [config.data], unordered, config.step_size_tasks)[0].batch


def position_steps_batch(config: RegressionConfig, context: ContextConfig) -> Batch:
    """Tasks on which a step size for each position is fitted: corrupted, ordered and placed as a context's are.

    Shared with nothing else; those of two contexts are made from the same random numbers.
    """
    key = task_key(config, Purpose.POSITION_STEPS)
    if config.data.file:
        return arrange(key, _fitted_on(config), config.data, context).batch
    return draw_contexts(key, [config.data], context, config.step_size_tasks)[0].batch


def _fitted_on(config: RegressionConfig) -> Batch:
    return own_set(config, "train", config.step_size_tasks)


_training_batch = jax.jit(training_batch, static_argnums=(1, 2))

# --- gradient descent, the baseline ---


class GradientDescent(NamedTuple):
    """Gradient descent as a baseline: how many steps of which size, and where the size comes from.

    If the data are standardised it sees standardised pairs, as the model does, and its predictions are taken back.
    """

    steps: int
    step_size: float | Array
    source: str
    units: Units | None = None

    @property
    def predict(self) -> Partial:
        """Gradient descent as a predictor: batch in, predictions [B] out."""
        descent = _descent(self.steps)
        return Partial(predictor_in_units(descent, self.units) if self.units else descent, self.step_size)


@lru_cache(maxsize=64)
def _descent(steps: int) -> Callable[[float | Array, Batch], Array]:
    """Gradient descent of so many steps; always the same function, so that programs which call it are compiled once."""
    return lambda step_size, batch: gd(batch, step_size, steps)


def find_gd(config: RegressionConfig, eta: float | None = None) -> GradientDescent:
    """The gradient descent a run is compared with, at step `eta` (eta/N in the paper) or the best on other tasks."""
    steps, units = gd_steps(config.model), units_of(config.data)
    if eta is not None:
        return GradientDescent(steps, eta, "given", units)
    if config.data.file:
        step_size, count = _searched(config, steps)
        return GradientDescent(steps, step_size, f"line search on {count} training contexts", units)
    alike = of_fields(config, "data", "data_seed", "step_size_tasks")
    step_size, count = _searched_once(alike, steps, in_float64())
    return GradientDescent(steps, step_size, f"line search on {count} separate clean tasks", units)


@lru_cache(maxsize=256)
def _searched_once(config: RegressionConfig, steps: int, double: bool) -> tuple[float, int]:
    return _searched(config, steps)  # of tasks that are drawn: those of a file may have gone


def _searched(config: RegressionConfig, steps: int) -> tuple[float, int]:
    """The best step size on the clean tasks of a config, and how many these are."""
    batch = standardised(step_size_batch(config), units_of(config.data))
    return search_step_size(batch, steps), len(batch.y_query)


@partial(jax.jit, static_argnums=(0, 1, 5))
def compare_with_gd(
    model: Model, gd_steps: int, params: Params, step_size: float | Array, batch: Batch, units: Units | None = None
) -> dict[str, Array]:
    """A model compared with gradient descent on the same tasks: one program for all checkpoints."""
    descent = partial(_descent(gd_steps), step_size)
    return compare(partial(model.predict, params), predictor_in_units(descent, units) if units else descent, batch)


# --- the evaluation set ---


class EvalSet(NamedTuple):
    """What a run is evaluated on: its evaluation context, and the gradient descent it is compared with."""

    context: Context
    gd: GradientDescent

    @property
    def batch(self) -> Batch:
        """The evaluation batch."""
        return self.context.batch


def make_eval_set(config: RegressionConfig, shared: Shared = NO_ARRAYS) -> EvalSet:
    """The evaluation set of a config."""
    return EvalSet(evaluation_context(config), find_gd(config))


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, float]:
    """Metrics of a record: losses on the evaluation batch, and how far the model is from gradient descent."""
    gd = eval_set.gd
    values = compare_with_gd(model, gd.steps, params, np.float32(gd.step_size), eval_set.context.batch, gd.units)
    return {"eval_loss": float(values["tf_loss"])} | {f"eval_{name}": float(values[name]) for name in LOGGED}


@jax.jit
def _predictions(predictors: dict[str, Partial], batch: Batch) -> dict[str, Array]:
    return {name: predict(batch) for name, predict in predictors.items()}


def predictions(model: Model, params: Any, eval_set: EvalSet) -> dict[str, Array]:
    """The predictions [B] of the transformer and of gradient descent on the evaluation batch."""
    predictors = {"tf": Partial(model.predict, params), "gd": eval_set.gd.predict}
    values = _predictions(predictors, jax.tree.map(np.asarray, eval_set.batch))
    return {name: values[name] for name in predictors}


# --- what one step of gradient descent reaches ---


def references(config: RegressionConfig, summary: Mapping[str, Any]) -> dict[str, Any]:
    """What one step of gradient descent reaches on the test tasks, its size the best for the training's contexts."""
    return {} if "one_step" in summary else {"one_step": dict(_one_step(_of_tasks(config)))}


def _of_tasks(config: RegressionConfig) -> RegressionConfig:
    """The config of the same tasks with all else at its default, so that runs on them share what is computed."""
    tasks = ["data", "train", "eval", "data_seed", "test_tasks", "step_size_tasks"]
    tasks += ["shared", "eval_tasks"] * bool(config.data.file)  # on which the split of its contexts depends
    return of_fields(config, *tasks)


@lru_cache(maxsize=256)
def _one_step(config: RegressionConfig) -> dict[str, float]:
    units = units_of(config.data)
    batch = partial(position_steps_batch, config, config.train)
    a = trained_step(config.data, config.train, lambda: standardised(batch(), units))
    values, unit = losses(standardised(make_test_batch(config), units), a), loss_unit(config)
    return {name: value * unit if name.endswith("loss") else value for name, value in values.items()}


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
    batched=batched,
    predictions=predictions,
    references=references,
    loss_unit=loss_unit,
)
