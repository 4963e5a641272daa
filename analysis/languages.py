"""Metrics of a run of languages on its test sets: losses and accuracies of model and baselines, and what it looks at.

All predictors see the same tasks, so losses are compared paired. A prediction is the sum of a context-free part, its
mean over contexts for one query, and a contextual part, the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.algorithm_distance import OF_LANGUAGES as MODEL
from icl_lab.analysis.algorithm_distance import Response, against, response
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.weights import construction, products, rescale
from icl_lab.baselines.iterations import why_missing
from icl_lab.families.languages.baselines import FittedBaselines, fitted_baselines, of_strings
from icl_lab.families.languages.codes import Coded, frequencies
from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.families.languages.pools import Pool, distinct_strings, pools_of
from icl_lab.families.languages.task import TaskSet, half_mean_square, make_test_sets, rights
from icl_lab.src.batch import Batch
from icl_lab.src.model import Model
from icl_lab.src.statistics import mean_and_error, not_defined, ratio_and_error, with_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_npz

SHUFFLE_SEED = 0
CONTEXTS = 32  # others in which each query is asked, for its context-free part
RATIOS = ("gd", "ridge", "optimum", "optimum_biased", "no_context")  # baselines that the loss is divided by


class Metrics(NamedTuple):
    """The metrics of a run: sections of its summary, and rows of algorithm_distance.csv."""

    sections: Mapping[str, Any]
    rows: list[dict[str, Any]]


def strings(loaded: LoadedRun) -> dict[str, Any]:
    """How many distinct strings the sets have of each language."""
    return distinct_strings(pools_of(loaded.config.data))


def write(loaded: LoadedRun) -> dict[str, Any]:
    """Writes algorithm_distance.csv, and gives the numbers on each test set."""
    metrics = metrics_of(loaded.config, loaded.model, loaded.params, loaded.eval_set.codes)
    write_csv(loaded.run / layout.ALGORITHM_DISTANCE, metrics.rows)
    return dict(metrics.sections)


def write_layer(loaded: LoadedRun) -> dict[str, Any]:
    """Writes weights.npz of a model that has products of weights on codes, and gives the spectra of one layer."""
    config, params, eval_set = loaded.config, loaded.params, loaded.eval_set
    if has_products(config):
        write_npz(loaded.run / layout.WEIGHTS, weight_arrays(config, params, eval_set.baselines))
    return spectra(config, params, eval_set.baselines, eval_set.codes.train)


def metrics_of(config: LanguagesConfig, model: Model, params: Any, codes: Coded) -> Metrics:
    """All metrics on the test sets: on unseen strings (headline), and on unseen languages."""
    baselines, sets, pools = fitted_baselines(config, codes.train), make_test_sets(config, codes), pools_of(config.data)
    predict = Partial(model.predict, params)
    sections: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for name, tasks, pool in (("headline", sets.strings, pools.test), ("unseen", sets.unseen, pools.unseen)):
        if tasks is None or pool is None:
            continue
        others = of_strings(pools.languages, pool, tasks.drawn)
        responses = {MODEL: response(predict, tasks.batch)}
        responses |= {other: response(predictor, tasks.batch) for other, predictor in baselines.predictors.items()}
        sections[name] = on_tasks(tasks, responses, others)
        if name == "headline":
            sections[name] |= of_context(predict, tasks, responses[MODEL].predictions)
            targets = np.asarray(tasks.batch.y_query, np.float64)
            rows = [row for each in responses for row in against("final", each, responses, targets)]
    return Metrics(sections, rows)


def on_tasks(tasks: TaskSet, responses: Mapping[str, Response], others: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Losses and accuracies with standard errors; ratios to some are paired; distances of the model to the rest."""
    labels, strings = np.asarray(tasks.batch.y_query, np.float64), np.asarray(tasks.drawn.strings)
    predictions = {name: task_response.predictions for name, task_response in responses.items()} | dict(others)
    errors = {name: 0.5 * (predicted - labels) ** 2 for name, predicted in predictions.items()}
    repeated = (strings[:, :-1] == strings[:, -1:]).any(axis=1)
    values: dict[str, Any] = {"tasks": len(labels), "query_in_context": float(repeated.mean())}
    for name, predicted in predictions.items():
        loss, accuracy = (number if name == MODEL else f"{name}_{number}" for number in ("loss", "accuracy"))
        if (reason := why_missing(predicted)) is not None:
            values |= not_defined(loss, reason) | not_defined(accuracy, reason)
            continue
        values |= with_error(loss, mean_and_error(errors[name]))
        values |= with_error(accuracy, mean_and_error(rights(predicted, labels)))
    for name in RATIOS:
        values |= with_error(f"{name}_ratio", ratio_and_error(errors[MODEL], errors[name]))
    losses = {name: float(errors[name].mean()) for name in (MODEL, "gd", "optimum")}
    values["way_to_optimum"] = (losses["gd"] - losses[MODEL]) / (losses["gd"] - losses["optimum"])
    model_response = responses[MODEL]
    for name, other in responses.items():
        if name != MODEL:
            values[f"{name}_preds_mse"] = float(np.mean((model_response.predictions - other.predictions) ** 2))
            values[f"{name}_cosine"] = _cosine(model_response.sensitivities, other.sensitivities)
    return values


def of_context(predict: Partial, tasks: TaskSet, predictions: np.ndarray) -> dict[str, Any]:
    """What the model takes from the context: its two parts, and its accuracy with the labels in another order."""
    labels = np.asarray(tasks.batch.y_query, np.float64)
    shuffled = np.asarray(_predict(predict, shuffled_labels(tasks.batch)), np.float64)
    free = context_free_square(predict, tasks.batch)
    return {
        "context_free": float(np.sqrt(free)),
        "contextual": float(np.sqrt(max(float(np.mean(predictions**2)) - free, 0.0))),
        "shuffled_loss": half_mean_square(shuffled - labels),
        **with_error("shuffled_accuracy", mean_and_error(rights(shuffled, labels))),
    }


def shuffled_labels(batch: Batch, seed: int = SHUFFLE_SEED) -> Batch:
    """The batch with the labels of each context in another order, drawn from a seed."""
    order = np.argsort(np.random.default_rng(seed).random(np.shape(batch.y)), axis=1)
    return batch._replace(y=jnp.asarray(np.take_along_axis(np.asarray(batch.y), order, axis=1)))


def context_free_square(predict: Partial, batch: Batch, contexts: int = CONTEXTS) -> float:
    """The mean square of the context-free part g(x_q) = E f(context, x_q), contexts being those of other tasks.

    Each query is asked in two separate halves of so many other contexts. The mean of the product of the two halves'
    means is unbiased, unlike the square of a mean over few contexts.
    """
    size = len(batch.y_query)
    step = max(size // (contexts + 1), 1)
    halves = np.zeros((2, size))
    for number in range(contexts):
        moved = np.roll(np.arange(size), (number + 1) * step)
        halves[number % 2] += np.asarray(_predict(predict, batch._replace(x=batch.x[moved], y=batch.y[moved])))
    means = halves / (contexts / 2)
    return max(float(np.mean(means[0] * means[1])), 0.0)


@jax.jit
def _predict(predict: Partial, batch: Batch) -> Array:
    predictions: Array = predict(batch)
    return predictions


def _cosine(one: np.ndarray, other: np.ndarray) -> float | None:
    if not (one.any() and other.any()):
        return None
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return float(np.mean(np.sum(one * other, axis=1) / np.maximum(norms, 1e-8)))


# --- weights of one linear layer ---


def has_products(config: LanguagesConfig) -> bool:
    """Whether a model's weight products act on codes: linear layers on tokens that are not embedded."""
    model = config.model
    plain = not (model.d_model or model.features or model.layer_norm or model.mlp_width or model.bias)
    return plain and all(model.kind(layer) == "linear" for layer in range(model.num_layers))


def weight_arrays(config: LanguagesConfig, params: Any, baselines: FittedBaselines) -> dict[str, np.ndarray]:
    """weights.npz: products as trained and rescaled, gradient descent's construction (empty where
    there is none), and the optimum's, [L, H, W, W].

    beta, the mean of the first D diagonal entries of W_K^T W_Q, is moved from one product to the other: with it all
    stand on one scale.
    """
    dim, kq_pv = config.architecture.dim, products(config, params)
    arrays = dict(zip(("kq", "pv"), kq_pv, strict=True))
    arrays |= dict(zip(("rescaled_kq", "rescaled_pv"), rescale(*kq_pv, dim), strict=True))
    arrays |= dict(zip(("construction_kq", "construction_pv"), construction(config, baselines.step_size), strict=True))
    kq, pv = (np.zeros((1, 1, dim + 1, dim + 1)) for _ in range(2))
    kq[0, 0, :dim, :dim], pv[0, 0, dim, dim] = baselines.layer, -1.0
    arrays |= dict(zip(("optimum_kq", "optimum_pv"), rescale(kq, pv, dim), strict=True))
    return arrays


def layer_of(config: LanguagesConfig, params: Any) -> np.ndarray | None:
    """A [D, D] of one linear layer's prediction s^T A x_q + ...; None of other models."""
    if not has_products(config) or config.model.num_layers != 1 or config.model.num_heads != 1:
        return None
    kq, pv = products(config, params)
    dim = config.architecture.dim
    return np.asarray(-pv[0, 0, dim, dim] * kq[0, 0, :dim, :dim])


def singular_values(layer: np.ndarray, codes: np.ndarray, pool: Pool) -> list[float]:
    """Those of Sigma^1/2 A Sigma^1/2, Sigma = E x x^T over the training pool, which no basis of codes changes."""
    shares = frequencies(pool) / frequencies(pool).sum()
    second = (shares[:, None] * codes.astype(np.float64)).T @ codes.astype(np.float64)
    values, vectors = np.linalg.eigh(second)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return [float(value) for value in np.linalg.svd(root @ layer @ root, compute_uv=False)]


def spectra(config: LanguagesConfig, params: Any, baselines: FittedBaselines, codes: np.ndarray) -> dict[str, Any]:
    """The singular values of the model, the optimum and gradient descent, for one linear layer."""
    layer, pool = layer_of(config, params), pools_of(config.data).train
    if layer is None:
        return {}
    layers = {MODEL: layer, "optimum": baselines.layer, "gd": baselines.step_size * np.eye(len(layer))}
    return {"singular_values": {name: singular_values(matrix, codes, pool) for name, matrix in layers.items()}}
