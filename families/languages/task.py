"""Membership in languages, in context: the models, the sets of tasks of a run, and what is recorded in training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.baselines.comparison import cosine, sensitivity
from icl_lab.families.autoencoder import task as autoencoder
from icl_lab.families.languages.baselines import FittedBaselines, fitted_baselines
from icl_lab.families.languages.codes import Coded, code_with, coded_pools
from icl_lab.families.languages.config import LanguagesConfig, LanguagesModel
from icl_lab.families.languages.contexts import Drawn, coded, draw, drawn_from
from icl_lab.families.languages.pools import Pool, pools_of
from icl_lab.families.task import NO_ARRAYS, TaskSpec, task_key
from icl_lab.src import layerwise
from icl_lab.src.activations import Hook
from icl_lab.src.batch import Batch
from icl_lab.src.checks import same_shape
from icl_lab.src.config import Architecture
from icl_lab.src.data import concatenated_tokens
from icl_lab.src.model import Model, as_model
from icl_lab.src.prng import Purpose
from icl_lab.src.train import BatchFn, Shared

# --- the model ---


def make_model(config: LanguagesConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The model of a config: always the same one for configs that differ in nothing it depends on."""
    return _model(config.architecture, config.code_channels)


@lru_cache
def _model(architecture: Architecture[LanguagesModel], channels: int) -> Model:
    model = architecture.model

    def stack(tokens: Array, hook: Hook) -> Array:
        if model.features:
            inputs, label = tokens[..., :channels], tokens[..., channels:]
            tokens = jnp.concatenate([learned_features(inputs, model), label], axis=-1)
        return layerwise.run_stack(tokens, architecture, hook)[-1, :, 0]

    rows = architecture.num_pairs + 1
    return as_model(stack, partial(tokens_of, query_in_keys=model.query_in_keys), (rows, channels + 1))


def tokens_of(batch: Batch, query_in_keys: bool) -> Array:
    """Rows (x_1, y_1), ..., (x_query, 0); with `query_in_keys` the query's row is appended once more.

    Only the rows before the last are keys and values, so the first copy is one of them.
    """
    tokens = concatenated_tokens(batch)
    return jnp.concatenate([tokens, tokens[:, -1:]], axis=1) if query_in_keys else tokens


def learned_features(inputs: Array, model: LanguagesModel) -> Array:
    """W_2 gelu(W_1 x + b_1) + b_2 of one-hot symbols: von Oswald et al. 2023, Prop. 2; inside `hk.transform`."""
    hidden = jax.nn.gelu(hk.Linear(model.features_width, name="features_in")(inputs))
    features: Array = hk.Linear(model.features, name="features_out")(hidden)
    return features


# --- sets of tasks ---


def batches(config: LanguagesConfig) -> BatchFn:
    """The batch function of a run's training: draws of the pool, which is shared."""
    data, size = config.data, config.training.batch_size

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> Batch:
        step_key = jax.random.fold_in(key, step)
        drawn = draw(step_key, shared["positives"], shared["negatives"], size, data.num_pairs, data.positive_share)
        return coded(drawn, jnp.asarray(shared["codes"]))

    return batch_fn


def frozen(config: LanguagesConfig, runs: list[Any]) -> dict[str, Any]:
    """The codes of all strings by the autoencoder that a run requires, scaled as the training pool asks."""
    if not runs:
        return {}
    autoencoder_config = config.required_runs()[0]
    features = partial(autoencoder.codes_of, autoencoder_config, runs[0])
    codes = code_with(features, pools_of(config.data), config.code)
    return {"codes": codes.train, "test_codes": codes.test, "unseen_codes": codes.unseen}


def codes_of(config: LanguagesConfig, shared: Shared) -> Coded:
    """The codes of a run's strings: of an autoencoder they are among the shared arrays."""
    if config.code.kind != "autoencoder":
        return coded_pools(config.data, config.code)
    names = ("codes", "test_codes", "unseen_codes")
    return Coded(*(np.asarray(shared[name]) for name in names))


def drawn_tasks(config: LanguagesConfig, pool: Pool, purpose: Purpose, count: int) -> Drawn:
    """Tasks of a pool for a purpose."""
    arrays = {"positives": jnp.asarray(pool.positives), "negatives": jnp.asarray(pool.negatives)}
    drawn: Drawn = drawn_from(
        task_key(config, purpose), arrays, count, config.data.num_pairs, config.data.positive_share
    )
    return drawn


class TaskSet(NamedTuple):
    """Tasks of a pool, as strings and as codes."""

    drawn: Drawn
    batch: Batch


class Sets(NamedTuple):
    """Tasks on unseen strings of the trained languages, and on unseen languages if the config has some."""

    strings: TaskSet
    unseen: TaskSet | None


def task_sets(config: LanguagesConfig, codes: Coded, purposes: tuple[Purpose, Purpose], count: int) -> Sets:
    """The sets of so many tasks each."""
    pools = pools_of(config.data)
    sets = []
    for pool, pool_codes, purpose in zip((pools.test, pools.unseen), (codes.test, codes.unseen), purposes, strict=True):
        if pool is not None:
            drawn = drawn_tasks(config, pool, purpose, count)
            sets.append(TaskSet(drawn, jax.tree.map(np.asarray, coded(drawn, jnp.asarray(pool_codes)))))
    return Sets(sets[0], sets[1] if len(sets) > 1 else None)


def make_test_sets(config: LanguagesConfig, codes: Coded) -> Sets:
    """The test sets: none of their tasks is in the evaluation sets."""
    return task_sets(config, codes, (Purpose.TEST_SET, Purpose.LATENT_TEST_SET), config.test_tasks)


# --- the evaluation set ---


class EvalSet(NamedTuple):
    """What a run is evaluated on: tasks, baselines, and what these say of the first set.

    predictions [B], sensitivities [B, D] and losses by name.
    """

    codes: Coded
    sets: Sets
    baselines: FittedBaselines
    predictions: Mapping[str, np.ndarray]
    sensitivities: Mapping[str, np.ndarray]
    losses: Mapping[str, float]

    @property
    def batch(self) -> Batch:
        """The evaluation batch: unseen strings of the trained languages."""
        return self.sets.strings.batch


def make_eval_set(config: LanguagesConfig, shared: Shared) -> EvalSet:
    """The evaluation set of a config, whose codes may be shared arrays."""
    codes = codes_of(config, shared)
    sets = task_sets(config, codes, (Purpose.EVAL, Purpose.LATENT), config.eval_tasks)
    baselines = fitted_baselines(config, codes.train)
    batch, predictors = sets.strings.batch, baselines.predictors
    predictions = {name: np.asarray(_predict(predict, batch)) for name, predict in predictors.items()}
    sensitivities = {name: np.asarray(_sensitivity(predict, batch)) for name, predict in predictors.items()}
    losses = {name: half_mean_square(values - batch.y_query) for name, values in predictions.items()}
    return EvalSet(codes, sets, baselines, predictions, sensitivities, losses)


@jax.jit
def _predict(predict: Partial, batch: Batch) -> Array:
    predictions: Array = predict(batch)
    return predictions


@jax.jit
def _sensitivity(predict: Partial, batch: Batch) -> Array:
    return sensitivity(predict, batch)


def predictions_of(predict: Partial, batch: Batch) -> np.ndarray:
    """A predictor's predictions [B], float64."""
    return np.asarray(_predict(predict, batch), np.float64)


def half_mean_square(values: np.ndarray) -> float:
    """Half the mean of squares."""
    return 0.5 * float(np.mean(np.asarray(values, np.float64) ** 2))


def accuracy(predictions: np.ndarray, labels: np.ndarray) -> float:
    """The share of predictions with the label's sign; one of 0 counts as half."""
    return float(np.mean(rights(predictions, labels)))


def rights(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """1 for a prediction with the label's sign, 0 for another, 1/2 for 0: [B]."""
    same_shape(predictions=predictions, labels=labels)
    return np.asarray(0.5 * (1 + np.sign(predictions) * labels))


@partial(jax.jit, static_argnums=0)
def _seen(model: Model, params: Any, batch: Batch) -> tuple[Array, Array]:
    predict = partial(model.predict, params)
    return predict(batch), sensitivity(predict, batch)


_plain: Callable[..., Array] = jax.jit(lambda model, params, batch: model.predict(params, batch), static_argnums=0)
_cosine = jax.jit(cosine)


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, float]:
    """Metrics of a record: loss and accuracy on unseen strings and unseen languages, and distances to all baselines.

    eval_NAME_preds_mse and eval_NAME_cosine are the model's row of the algorithm-distance matrix; the other rows stay.
    eval_way_to_optimum is (L_GD - L) / (L_GD - L_optimum): 0 for one step of gradient descent, 1 for the best layer.
    """
    batch, unseen = eval_set.sets.strings.batch, eval_set.sets.unseen
    predictions, sensitivities = _seen(model, params, batch)
    outputs, labels = np.asarray(predictions, np.float64), np.asarray(batch.y_query)
    loss, losses = half_mean_square(outputs - labels), eval_set.losses
    values = {"eval_loss": loss, "eval_accuracy": accuracy(outputs, labels)}
    values |= {f"eval_{name}_loss": baseline_loss for name, baseline_loss in losses.items()}
    values["eval_way_to_optimum"] = (losses["gd"] - loss) / (losses["gd"] - losses["optimum"])
    for name in eval_set.predictions:
        values[f"eval_{name}_preds_mse"] = float(np.mean((outputs - eval_set.predictions[name]) ** 2))
        values[f"eval_{name}_cosine"] = float(np.mean(_cosine(sensitivities, eval_set.sensitivities[name])))
    if unseen is not None:
        others = np.asarray(_plain(model, params, unseen.batch), np.float64)
        labels = np.asarray(unseen.batch.y_query)
        values |= {
            "eval_unseen_loss": half_mean_square(others - labels),
            "eval_unseen_accuracy": accuracy(others, labels),
        }
    return values


def predictions(model: Model, params: Any, eval_set: EvalSet) -> dict[str, np.ndarray]:
    """The predictions [B] of the model and of its baselines on the evaluation batch."""
    predictors = {"tf": Partial(model.predict, params), **eval_set.baselines.predictors}
    return {name: predictions_of(predict, eval_set.batch).astype(np.float32) for name, predict in predictors.items()}


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
    predictions=predictions,
    frozen=frozen,
)
