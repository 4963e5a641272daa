"""A decoder against the exact predictors, in distribution (tasks of its pool) and out of it (fresh tasks).

Errors are those of noiseless labels w.x, squared, averaged over sequences and the K predictions and divided by D; Delta
is the same of two predictors' difference. Raventos et al. 2023, Eq. 4 and App. B; Carroll et al. 2025, Sec. 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

import src.config
import store
from analysis.measures.headline import mean_and_error
from analysis.measures.transience import verdict
from baselines import bayes
from configs.regression import RegressionConfig
from families.diversity import headline_sequences, latent_sequences, make_model, pool_of, pool_sequences
from src.batch import Batch
from src.checks import ConfigError, named
from src.config import DataConfig
from src.data import labels
from src.model import Model
from src.prng import Purpose, purpose_key
from src.prng import key as make_key
from store import layout, snapshots
from store.params import flattened
from store.readers import check_arrays

LAPLACE_SAMPLES = 4096
RIDGE_DELTA = 0.06  # of a model of infinitely many tasks: at most so far from ridge, it is ridge

_labels = jax.jit(labels)
_ridge = jax.jit(bayes.ridge, static_argnums=1)
_dmmse = jax.jit(bayes.dmmse, static_argnums=2)
_laplace = jax.jit(bayes.laplace_mean, static_argnums=(1, 2, 4))


class Held(NamedTuple):
    """Sequences with noiseless labels [B, K] and the exact predictors' predictions [B, K] on them."""

    batch: Batch
    targets: np.ndarray
    references: Mapping[str, np.ndarray]


class Setting(NamedTuple):
    """What a run is looked at with: sequences of its pool's tasks, and of fresh ones."""

    inside: Held
    outside: Held


def laplace(config: RegressionConfig, batch: Batch) -> Array:
    """Predictions [B, K]: the posterior mean of a Laplace prior, by importance sampling."""
    key = purpose_key(make_key(config.data_seed), Purpose.LATENT)
    return _laplace(batch, config.data.weight_scale, config.data.noise_std**2, key, LAPLACE_SAMPLES)


# task distribution -> its posterior mean, where that is not ridge and can be computed
POSTERIOR_MEANS: dict[str, Callable[[RegressionConfig, Batch], Array]] = named(src.config.POSTERIOR_MEANS, globals())


def why_no_ridge(data: DataConfig) -> str | None:
    """Why ridge regression is not defined for a task distribution; None where it is."""
    try:
        _ = data.task_variance
    except ConfigError as reason:
        return str(reason)
    return None


def references(config: RegressionConfig, batch: Batch) -> dict[str, np.ndarray]:
    """The predictors that a run's tasks allow, on sequences: ridge, dmmse for a pool, the task distribution's own mean.

    Without noise there is none: each of them weighs the noise against the prior.
    """
    data, found = config.data, {}
    if data.noise_std == 0:
        return {}
    variance = data.noise_std**2
    if why_no_ridge(data) is None:
        found["ridge"] = _ridge(batch, variance / data.task_variance)
    if data.num_tasks > 0:
        found["dmmse"] = _dmmse(batch, pool_of(config), variance)
    if data.task_law in POSTERIOR_MEANS:
        found[data.task_law] = POSTERIOR_MEANS[data.task_law](config, batch)
    return {name: np.asarray(values, np.float64) for name, values in found.items()}


def hold(config: RegressionConfig, batch: Batch) -> Held:
    """Sequences with what the exact predictors make of them."""
    return Held(batch, np.asarray(_labels(batch.x, batch.w), np.float64), references(config, batch))


def prepare(config: RegressionConfig) -> Setting:
    """The setting of a config."""
    return Setting(hold(config, pool_sequences(config)), hold(config, latent_sequences(config)))


_predict = jax.jit(lambda model, params, batch: model.predict(params, batch), static_argnums=0)


def predictions_of(model: Model, params: Any, batch: Batch) -> np.ndarray:
    """A decoder's predictions [B, K]."""
    return np.asarray(_predict(model, params, batch), np.float64)


def distance(one: np.ndarray, other: np.ndarray, dim: int) -> float:
    """Delta: the mean squared difference of two predictors [B, K] over D. Raventos et al. 2023, Eq. 4."""
    return float(np.mean((one - other) ** 2) / dim)


def measured(predictions: np.ndarray, held: Held, dim: int) -> dict[str, Any]:
    """loss, its value at each position (errors [K]), and delta_NAME to each of the exact predictors."""
    squared = (predictions - held.targets) ** 2 / dim
    deltas = {f"delta_{name}": distance(predictions, other, dim) for name, other in held.references.items()}
    return {"loss": float(squared.mean()), **deltas, "errors": squared.mean(axis=0).tolist()}


def look(model: Model, params: Any, setting: Setting) -> dict[str, Any]:
    """A moment of a training: test_loss (half the mean squared error, noise included, of the pool's sequences), then
    `measured` in distribution (id_) and out of it (ood_).
    """
    dim = setting.inside.batch.x.shape[-1]
    found = [predictions_of(model, params, held.batch) for held in setting]
    test_loss = 0.5 * float(np.mean((found[0] - np.asarray(setting.inside.batch.y)) ** 2))
    values = {"test_loss": test_loss}
    for prefix, predictions, held in zip(("id", "ood"), found, setting, strict=True):
        values |= {f"{prefix}_{name}": value for name, value in measured(predictions, held, dim).items()}
    return values


class Decoder(NamedTuple):
    """A stored run of this family."""

    run: Path
    config: RegressionConfig
    model: Model
    params: Any


def load_decoder(run: Path, allow_pickle: bool = False) -> Decoder:
    """Loads a finished run; `StoreError` if the parameters are another model's."""
    jax.config.update("jax_default_matmul_precision", "highest")  # as in training, see runners.common
    config, params, _ = store.load(run, allow_pickle)
    model = make_model(config)
    check_arrays(run / layout.PARAMS, flattened(params), shapes_of(model))
    return Decoder(run, config, model, params)


def shapes_of(model: Model) -> dict[str, tuple[int, ...]]:
    """The shapes of a model's parameters by name."""
    return {name: leaf.shape for name, leaf in flattened(jax.eval_shape(model.init, make_key(0))).items()}


def moments(subject: Decoder) -> Iterator[tuple[int, Decoder]]:
    """The decoder at every snapshot of its training; `StoreError` if it has none, or another model's."""
    for step, params in snapshots.read(subject.run):
        check_arrays(subject.run / layout.SNAPSHOTS, flattened(params), shapes_of(subject.model))
        yield step, subject._replace(params=params)


def headline(subject: Decoder) -> dict[str, Any]:
    """Losses and Deltas on further sequences, with standard errors over sequences, and which predictor the model is."""
    config, dim = subject.config, subject.config.data.dim
    found: dict[str, Any] = {"tasks": config.headline_tasks}
    reason = why_no_ridge(config.data)
    for prefix, batch in zip(("id", "ood"), headline_sequences(config), strict=True):
        held = hold(config, batch)
        tf = predictions_of(subject.model, subject.params, batch)
        for name, values in {"tf": tf, **held.references, "zero": np.zeros_like(tf)}.items():
            errors = np.mean((values - held.targets) ** 2, axis=1) / dim
            found[f"{prefix}_{name}_loss"], found[f"{prefix}_{name}_loss_se"] = mean_and_error(errors)
            if name in held.references:
                apart = np.mean((tf - values) ** 2, axis=1) / dim
                found[f"{prefix}_delta_{name}"], found[f"{prefix}_delta_{name}_se"] = mean_and_error(apart)
        if {"ridge", "dmmse"} <= set(held.references):
            found[f"{prefix}_apart"] = distance(held.references["ridge"], held.references["dmmse"], dim)
        for name in () if reason is None else (f"{prefix}_ridge_loss", f"{prefix}_delta_ridge"):
            found |= {name: None, f"{name}_se": None, f"{name}_reason": reason}
    return found | {"verdict": verdict_of(found)}


def verdict_of(found: Mapping[str, float]) -> str:
    """Whether a model is dmmse, ridge, or between; of an infinite pool it is ridge at a Delta of at most .06."""
    if "id_apart" in found:
        names = ("id_delta_dmmse", "id_apart", "ood_delta_ridge", "ood_apart")
        return verdict(*(found[name] for name in names))
    if found.get("ood_delta_ridge") is None:
        return "nothing to compare with"
    return "ridge" if found["ood_delta_ridge"] <= RIDGE_DELTA else "between"
