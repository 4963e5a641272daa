"""Bayes of a class, of a pool of its functions and of a mixture's members: each predicts label k from the pairs before.

Predictions are what a model gives: numbers, logits of labels -1 and 1, or C logits. The posterior over a pool's
functions is dMMSE of any class: a model that memorises its pool predicts like it, one that learns the class like Bayes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from icl_lab.baselines.functions.finite import pool_posterior
from icl_lab.baselines.functions.mixture import class_probabilities
from icl_lab.baselines.functions.posterior import Sampled, before
from icl_lab.families.functions import task
from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.classes.mixtures import members_posteriors
from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.families.functions.function_class import CLASSES, MOST_LISTED, NUMBER, FunctionClass, Parameters

CERTAIN = 1e-12  # a probability of 0 or 1 is taken to be so far from it
SAMPLED_PROMPTS = 50  # of which the error of sampling is computed
LABELS_AT_ONCE = 2**20  # of a pool's functions, in memory
MOST_LABELS = 2**27  # of a pool's functions, that are compared with labels in all
ORACLE, LIKELIER = "oracle", "likelier"

Predict = Callable[["Shown"], np.ndarray]  # -> predictions [b, K], or [b, K, C]


class Shown(NamedTuple):
    """What a predictor is shown of prompts: x [b, K, D], y [b, K], and the member that each is of, for oracles."""

    x: np.ndarray
    y: np.ndarray
    member: np.ndarray


class Predictor(NamedTuple):
    """A predictor, and the number of prompts that it is computed of; nan where it is not computed."""

    predict: Predict
    prompts: int


def as_predictions(target: str, means: np.ndarray) -> np.ndarray:
    """What a model would predict that has these mean labels [B, K], or probabilities of classes [B, K, C]."""
    means = np.asarray(means, np.float64)
    if target == NUMBER:
        return means
    logits: np.ndarray
    if target == CLASSES:
        logits = np.log(np.clip(means, CERTAIN, 1))
    else:
        certain = np.clip(means, CERTAIN - 1, 1 - CERTAIN)
        logits = np.log1p(certain) - np.log1p(-certain)
    return logits


def has_posterior(function: FunctionClass, dim: int) -> bool:
    """Whether a class's posterior is known: given by the class, or over its functions, all of which are listed."""
    if len(function.members) > 1:
        return all(has_posterior(member, dim) for member in function.members)
    return type(function).posterior is not FunctionClass.posterior or function.is_listed(dim)


def not_listed(config: FunctionsConfig) -> str:
    """Why a finite class has no posterior; "" if it has one, or is not finite."""
    function, dim = config.function, config.data.dim
    if has_posterior(function, dim) or function.count(dim) == math.inf:
        return ""
    return f"the posterior is over a list of all functions, and {function.count(dim):.3g} are more than {MOST_LISTED}"


def sampling_loss(function: FunctionClass, batch: FunctionBatch) -> float:
    """What sampling adds to the loss of Bayes, in nats: the mean of e^2 / (2 (1 - m^2)) of mean labels m of error e.

    Of a mixture it is that of the prompts whose class has labels -1 and 1. It is computed of some prompts.
    """
    part = task.first(batch, SAMPLED_PROMPTS)
    found = members_posteriors(function.members, np.asarray(part.x), np.asarray(part.y))
    added = [
        (each.standard_error**2 / (2 * (1 - each.mean**2)))[np.asarray(part.member) == number]
        for number, each in enumerate(found)
        if isinstance(each, Sampled)
    ]
    return float(np.mean(np.concatenate(added)))


def bayes(config: FunctionsConfig) -> Predictor:
    """The posterior of a class; of a mixture of numbers and signs, that of the member which labels are of."""
    function, dim = config.function, config.data.dim
    most = min(config.test_tasks, function.posterior_prompts)
    if len({member.target for member in function.members}) > 1:
        return Predictor(of_members(function)[LIKELIER], most)
    if type(function).posterior is not FunctionClass.posterior:
        return Predictor(_by_posterior(function), most)
    prior = np.asarray(function.log_prior(dim))
    return _over(config, function.every(dim), prior, int(function.count(dim)))


def _by_posterior(function: FunctionClass) -> Predict:
    def predict(batch: Shown) -> np.ndarray:
        found = function.posterior(batch.x, batch.y)
        assert found is not None
        return as_predictions(function.members[0].target, found.mean)

    return predict


def of_pool(config: FunctionsConfig) -> Predictor:
    """The posterior over the functions of a run's pool."""
    size = int(config.data.num_functions)
    return _over(config, task.functions_of_pool(config), np.full(size, -math.log(size)), size)


def _over(config: FunctionsConfig, functions: Parameters, log_prior: np.ndarray, size: int) -> Predictor:
    function, most = config.function, max(2, MOST_LABELS // (size * config.data.num_pairs))

    def predict(batch: Shown) -> np.ndarray:
        return as_predictions(function.target, posterior_over(function, functions, log_prior, batch.x, batch.y))

    return Predictor(predict, min(config.test_tasks, most))


def posterior_over(
    function: FunctionClass, functions: Parameters, log_prior: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Mean labels of the posterior over functions with a leading axis [M], of these prior log probabilities [M]."""
    found = []
    size = max(1, LABELS_AT_ONCE // (len(log_prior) * y.shape[1]))
    for start in range(0, len(x), size):
        inputs, labels = x[start : start + size], y[start : start + size]
        f, log_inputs = (np.asarray(part) for part in _values(function, functions, np.asarray(inputs, np.float32)))
        given = log_inputs if function.planted else None
        if function.target == CLASSES:
            found.append(_class_probabilities(f, labels, log_prior, log_inputs))
        else:
            found.append(pool_posterior(f, labels, function.likelihood(x.shape[-1]), log_prior, given).mean)
    return np.concatenate(found)


@partial(jax.jit, static_argnums=0)
def _values(function: FunctionClass, functions: Parameters, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What each function gives at a prompt's inputs [B, M, K], and the inputs' log densities [B, M, K]."""

    def of_one(parameters: Parameters, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return function.label(parameters, x), function.log_density(parameters, x)

    found: tuple[jax.Array, jax.Array] = jax.vmap(lambda x: jax.vmap(lambda one: of_one(one, x))(functions))(x)
    return found


def _class_probabilities(
    logits: np.ndarray, y: np.ndarray, log_prior: np.ndarray, log_inputs: np.ndarray
) -> np.ndarray:
    """p(class) [B, K, C] under the posterior over functions whose classes have these logits [B, M, K, C]."""
    normed = logits - np.logaddexp.reduce(logits, axis=3, keepdims=True)
    told = np.take_along_axis(normed, y.astype(int)[:, None, :, None], axis=3)[..., 0]
    scores = log_prior[None, :, None] + before(told) + np.cumsum(log_inputs, axis=2)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    mean: np.ndarray = np.einsum("bmk,bmkc->bkc", weights / weights.sum(axis=1, keepdims=True), np.exp(normed))
    return mean


def of_members(function: FunctionClass) -> dict[str, Predict]:
    """Of a mixture: each member's posterior; the likelier one's; and that of an oracle, which is told the member.

    All of a class whose members have none are left out. Where labels are numbers in some members and signs in others,
    the first label tells which member it is.
    """
    members = function.members
    if any(type(member).posterior is FunctionClass.posterior for member in members):
        return {}

    def of_each(batch: Shown) -> np.ndarray:
        parts = members_posteriors(members, batch.x, batch.y)
        return np.stack([as_predictions(m.target, part.mean) for m, part in zip(members, parts, strict=True)])

    def likelier(batch: Shown) -> np.ndarray:
        probabilities = class_probabilities(members_posteriors(members, batch.x, batch.y))
        return _chosen(of_each(batch), probabilities.argmax(axis=1))

    def oracle(batch: Shown) -> np.ndarray:
        return _chosen(of_each(batch), batch.member[:, None])

    def of_member(number: int) -> Predict:
        return lambda batch: of_each(batch)[number]

    return {ORACLE: oracle, LIKELIER: likelier} | {f"member_{i}": of_member(i) for i in range(len(members))}


def _chosen(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """values[numbers[b, k], b, k] of values [M, B, K] and numbers [B, K] or [B, 1]."""
    found: np.ndarray = np.take_along_axis(values, np.broadcast_to(numbers, values.shape[1:])[None], axis=0)[0]
    return found
