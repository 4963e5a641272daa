"""Task diversity: a decoder, the sets of sequences that a run uses, and the exact predictors on them.

The sets are pure functions of the config and their purpose, in training of the step. The pool of tasks is a function of
the data seed, so runs of one seed and different M have nested pools; their inputs and noise are the same.

Errors are those of noiseless labels w.x, squared, averaged over sequences and the K predictions and divided by D; Delta
is the same of two predictors' difference. Raventos et al. 2023, Eq. 4 and App. B; Carroll et al. 2025, Sec. 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from icl_lab.baselines import bayes
from icl_lab.baselines import mixture as gaussian_mixture
from icl_lab.baselines import sparse as spike_and_slab
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.own_batches import loss_unit, own_set, training_batch
from icl_lab.families.task import NO_ARRAYS, TaskSpec
from icl_lab.src import decoder
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, require, same_shape
from icl_lab.src.data import labels
from icl_lab.src.data_config import PoolData
from icl_lab.src.model import Model
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.prng import key as make_key
from icl_lab.src.registries import TASK_DISTRIBUTIONS
from icl_lab.src.registry import Functions
from icl_lab.src.sequences import sample_sequences, task_pool, traced_size
from icl_lab.src.train import BatchFn, Shared
from icl_lab.src.units import in_units, units_of

LAPLACE_SAMPLES = 4096

_labels = jax.jit(labels)
_ridge = jax.jit(bayes.ridge, static_argnums=1)
_dmmse = jax.jit(bayes.dmmse, static_argnums=2)
_laplace = jax.jit(bayes.laplace_mean, static_argnums=(1, 2, 4))
_mixture = jax.jit(gaussian_mixture.predict_sequence, static_argnums=(1, 2))
_sparse = jax.jit(spike_and_slab.predict_sequence, static_argnums=(1, 2))


def make_model(config: DiversityConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The decoder of a run config: always the same one for configs that differ in nothing it depends on."""
    model = decoder.make_model(config.model, config.data.dim, config.data.num_pairs)
    return in_units(model, units_of(config.data))


# --- sets of sequences ---


def batches(config: DiversityConfig) -> BatchFn:
    """The batch function of a run's training. The pool, and how many of its tasks count, may differ within a pack."""

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> Batch:
        size, step_key = config.training.batch_size, jax.random.fold_in(key, step)
        if config.data.file:
            return training_batch(step_key, config, size, shared)
        return sample_sequences(step_key, batched["pool"], config.data, size, batched["num_tasks"])[0]

    return batch_fn


def batched(config: DiversityConfig) -> dict[str, Any]:
    """The number of tasks in the pool, and the pool's key."""
    return {"num_tasks": traced_size(config.data.num_tasks), "pool": _pool_key(np.uint32(config.data_seed))}


_pool_key = jax.jit(lambda seed: purpose_key(make_key(seed), Purpose.POOL))


@partial(jax.jit, static_argnames=("data", "count"))
def _sample(seed: Array, purpose: Array, data: PoolData, count: int, num_tasks: Array) -> Batch:
    key = make_key(seed)
    pool = purpose_key(key, Purpose.POOL)
    return sample_sequences(jax.random.fold_in(key, purpose), pool, data, count, num_tasks)[0]


def _drawn(config: DiversityConfig, purpose: Purpose, count: int, num_tasks: float) -> Batch:
    data = _without_size(config.data)
    batch: Batch = _sample(np.uint32(config.data_seed), np.uint32(purpose), data, count, traced_size(num_tasks))
    return batch


def _without_size(data: PoolData) -> PoolData:
    """The data of a pool of any size: one program serves all sizes."""
    return replace(data, num_tasks=math.inf)


def pool_sequences(config: DiversityConfig) -> Batch:
    """The evaluation batch in distribution: fresh sequences of the run's pool."""
    return _drawn(config, Purpose.EVAL, config.eval_tasks, config.data.num_tasks)


def latent_sequences(config: DiversityConfig) -> Batch:
    """The evaluation batch out of distribution: a fresh task of the task distribution for each sequence."""
    return _drawn(config, Purpose.LATENT, config.eval_tasks, math.inf)


def make_test_sequences(config: DiversityConfig) -> tuple[Batch, Batch]:
    """The test set: sequences in distribution and out of it, none of them in the evaluation sets.

    `ConfigError` for contexts of a file, which has none out of distribution.
    """
    count = config.test_tasks
    in_distribution = _drawn(config, Purpose.TEST_SET, count, config.data.num_tasks)
    return in_distribution, _drawn(config, Purpose.LATENT_TEST_SET, count, math.inf)


def sequences_of_test(config: DiversityConfig) -> dict[str, Batch]:
    """The test sequences that there are, by the beginning of their numbers' names."""
    if config.data.file:
        return {"id": own_set(config, "test")}
    return dict(zip(("id", "ood"), make_test_sequences(config), strict=True))


def root_sequences(config: DiversityConfig, count: int) -> Batch:
    """Sequences of the root task, the one that pools of every size hold: the same whatever the run's M."""
    return _drawn(config, Purpose.ROOT, count, 1)


_task_pool: Callable[..., Array] = jax.jit(task_pool, static_argnums=(1, 2))


@lru_cache(maxsize=8)
def _pool(data_seed: int, data: PoolData, num_tasks: int) -> Array:
    pool: Array = _task_pool(purpose_key(make_key(data_seed), Purpose.POOL), data, num_tasks)
    return pool


def pool_of(config: DiversityConfig, num_tasks: int | None = None) -> Array:
    """The tasks [M, D] of a run's pool, or the first `num_tasks` of them; none of an infinite pool."""
    size = config.data.num_tasks if num_tasks is None else num_tasks
    return _pool(config.data_seed, _without_size(config.data), int(traced_size(size)))


# --- evaluation sets ---


class EvalSet(NamedTuple):
    """Sequences, their noiseless labels `targets` [B, K], and each exact predictor's predictions [B, K].

    undefined: why the other exact predictors of such tasks have none, by name.
    """

    batch: Batch
    targets: np.ndarray
    references: Mapping[str, np.ndarray]
    undefined: Mapping[str, str] = {}


class EvalSets(NamedTuple):
    """The evaluation sets of a run: tasks of its pool (in distribution) and fresh tasks (out of distribution).

    Contexts of a file are in distribution, and there are no fresh ones. loss: of a prediction, the decoder's.
    """

    id: EvalSet
    ood: EvalSet | None
    loss: str = "half_squared_error"

    @property
    def batch(self) -> Batch:
        """The evaluation batch: tasks of the pool."""
        return self.id.batch

    @property
    def by_name(self) -> dict[str, EvalSet]:
        """The sets that there are, by the beginning of their numbers' names."""
        return {"id": self.id} if self.ood is None else {"id": self.id, "ood": self.ood}


def ridge(batch: Batch, config: DiversityConfig) -> Array:
    """Predictions [B, K]: ridge regression, the posterior mean of a Gaussian prior."""
    means: Array = _ridge(batch, config.data.noise_std**2 / config.data.task_variance)
    return means


def dmmse(batch: Batch, config: DiversityConfig) -> Array:
    """Predictions [B, K]: the posterior mean of the pool's tasks, all as likely."""
    means: Array = _dmmse(batch, pool_of(config), config.data.noise_std**2)
    return means


def laplace(batch: Batch, config: DiversityConfig) -> Array:
    """Predictions [B, K]: the posterior mean of a Laplace prior, by importance sampling."""
    key = purpose_key(make_key(config.data_seed), Purpose.LATENT)
    means: Array = _laplace(batch, config.data.weight_scale, config.data.noise_std**2, key, LAPLACE_SAMPLES)
    return means


def mixture(batch: Batch, config: DiversityConfig) -> Array:
    """Predictions [B, K]: the posterior mean of the mixture of Gaussians."""
    means: Array = _mixture(batch, config.data.noise_std**2, config.data.weight_scale)
    return means


def sparse(batch: Batch, config: DiversityConfig) -> Array:
    """Predictions [B, K]: the posterior mean of the spike and slab; `ConfigError` for more than 12 dimensions."""
    means: Array = _sparse(batch, config.data.noise_std**2, config.data.weight_scale)
    return means


# task distribution -> its posterior mean, where that is not ridge and can be computed
POSTERIOR_MEANS: Functions[Callable[[Batch, DiversityConfig], Array]] = Functions(
    TASK_DISTRIBUTIONS, "posterior_mean", {"laplace": laplace, "mixture": mixture, "sparse": sparse}
)


def exact_predictors(config: DiversityConfig) -> dict[str, Callable[[Batch], Array]]:
    """The exact predictors of a run's tasks: ridge, dmmse for a pool, the task distribution's own mean.

    Each gives predictions [B, K], or raises `ConfigError` where it is not defined.
    """
    predictors: dict[str, Callable[..., Array]] = {"ridge": ridge}
    if config.data.num_tasks < math.inf:
        predictors["dmmse"] = dmmse
    own = config.data.task_distribution
    if own in POSTERIOR_MEANS:
        predictors[own] = POSTERIOR_MEANS[own]
    return {name: partial(predict, config=config) for name, predict in predictors.items()}


def references(config: DiversityConfig, batch: Batch) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The exact predictors' predictions on sequences, by name, and why each of the others is not defined."""
    predictions, undefined = dict[str, np.ndarray](), dict[str, str]()
    for name, predict in exact_predictors(config).items():
        try:
            config.data.check_drawn(name)
            require(
                config.data.noise_std > 0,
                "noise_std is 0; this predictor needs noise in the labels, to weigh it against its prior",
            )
            with np.errstate(over="ignore"):  # of a penalty, as weights may be tiny
                values = np.asarray(predict(batch), np.float64)
            require(bool(np.isfinite(values).all()), "its predictions on these sequences are not finite in float32")
            predictions[name] = values
        except ConfigError as reason:
            undefined[name] = str(reason)
    return predictions, undefined


def make_eval_set(config: DiversityConfig, batch: Batch) -> EvalSet:
    """The evaluation set of a batch of sequences. The targets of contexts from a file are their labels."""
    targets = batch.y if config.data.file else _labels(batch.x, batch.w)
    return EvalSet(batch, np.asarray(targets, np.float64), *references(config, batch))


def make_eval_sets(config: DiversityConfig, shared: Shared = NO_ARRAYS) -> EvalSets:
    """The evaluation sets of a config: in distribution and out of it."""
    if config.data.file:
        return EvalSets(make_eval_set(config, own_set(config, "eval")), None, config.model.loss)
    sets = (make_eval_set(config, pool_sequences(config)), make_eval_set(config, latent_sequences(config)))
    return EvalSets(*sets, config.model.loss)


_predict = jax.jit(lambda model, params, batch: model.predict(params, batch), static_argnums=0)


def predictions_of(model: Model, params: Any, batch: Batch) -> np.ndarray:
    """A decoder's predictions [B, K]."""
    return np.asarray(_predict(model, params, batch), np.float64)


def distance(one: np.ndarray, other: np.ndarray, dim: int) -> float:
    """Delta: the mean squared difference of two predictors [B, K] over D. Raventos et al. 2023, Eq. 4."""
    same_shape(one=one, other=other)
    return float(np.mean((one - other) ** 2) / dim)


def measured(predictions: np.ndarray, eval_set: EvalSet, dim: int) -> dict[str, Any]:
    """loss, its value at each position (errors [K]), and delta_NAME to each exact predictor, None if undefined."""
    same_shape(predictions=predictions, targets=eval_set.targets)
    squared = (predictions - eval_set.targets) ** 2 / dim
    deltas: dict[str, Any] = {f"delta_{name}": None for name in eval_set.undefined}
    deltas |= {f"delta_{name}": distance(predictions, other, dim) for name, other in eval_set.references.items()}
    return {"loss": float(squared.mean()), **deltas, "errors": squared.mean(axis=0).tolist()}


def eval_metrics(model: Model, params: Any, eval_sets: EvalSets) -> dict[str, Any]:
    """Metrics of a record: eval_loss, and `measured` in distribution (eval_id_) and out of it (eval_ood_).

    eval_loss is that of the pool's sequences, noise included, in what training minimises: half the mean squared error
    or, of a decoder on that loss, the mean absolute error.
    """
    dim = eval_sets.id.batch.x.shape[-1]
    sets = eval_sets.by_name
    predictions_by_set = {prefix: predictions_of(model, params, eval_set.batch) for prefix, eval_set in sets.items()}
    errors = predictions_by_set["id"] - np.asarray(eval_sets.id.batch.y)
    loss = float(np.mean(np.abs(errors))) if eval_sets.loss == "absolute_error" else 0.5 * float(np.mean(errors**2))
    values: dict[str, Any] = {"eval_loss": loss}
    for prefix, eval_set in sets.items():
        numbers = measured(predictions_by_set[prefix], eval_set, dim)
        values |= {f"eval_{prefix}_{name}": value for name, value in numbers.items()}
    return values


def predictions(model: Model, params: Any, eval_sets: EvalSets) -> dict[str, np.ndarray]:
    """The predictions [B, K] of the model and of the exact predictors, on tasks of the pool and on fresh ones."""
    return {
        f"{prefix}_{name}": values.astype(np.float32)
        for prefix, eval_set in eval_sets.by_name.items()
        for name, values in {"tf": predictions_of(model, params, eval_set.batch), **eval_set.references}.items()
    }


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_sets,
    eval_metrics=eval_metrics,
    batched=batched,
    predictions=predictions,
    loss_unit=loss_unit,
)
