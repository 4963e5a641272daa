"""Sequences of symbols: the decoder, the sets of sequences that a run uses, and what is recorded in its training.

All losses are cross-entropies in nats, means over sequences and the predicted symbols x_2 .. x_T. A pool of M chains is
a function of the data seed, so pools of one seed are nested.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.task import NO_ARRAYS, TaskSpec
from icl_lab.families.tokens import kneser_ney
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.families.tokens.data import TokenData
from icl_lab.families.tokens.outputs import BEST, first_of
from icl_lab.families.tokens.sources import Predictor, Sequences, batched_of, chosen, source_of
from icl_lab.src import language_model
from icl_lab.src.batch import TokenBatch
from icl_lab.src.model import Model
from icl_lab.src.prng import Purpose
from icl_lab.src.statistics import means_and_errors, ratio_and_error
from icl_lab.src.train import BatchFn, Shared

NUMBERS = 2**23  # log-probabilities that are compared symbol by symbol: those of as many sequences as have so many
AT_ONCE = 2**24  # logits in memory


def make_model(config: TokensConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The decoder of a run config: always the same one for configs that differ in nothing it depends on."""
    data, model = config.data, config.model
    return language_model.make_model(model, data.num_symbols, data.rows, model.table_std, data.start_token)


# --- sets of sequences ---


def as_batch(x: Array | np.ndarray, data: TokenData) -> TokenBatch:
    """What a model reads of sequences [B, T], the start symbol being number k, and what comes next."""
    x = jnp.asarray(x)
    read = x[:, :-1]
    if data.start_token:
        read = jnp.concatenate([jnp.full((len(x), 1), data.num_symbols, x.dtype), read], axis=1)
    return TokenBatch(read, x[:, 1:])


def sequences_of(batch: TokenBatch, data: TokenData) -> np.ndarray:
    """The sequences x [B, T] of a batch."""
    read = np.asarray(batch.x)[:, int(data.start_token) :]
    return np.concatenate([read, np.asarray(batch.y_query)[:, -1:]], axis=1)


def batches(config: TokensConfig) -> BatchFn:
    """The batch function of a run's training. The pool, and how many of its chains count, may differ within a pack."""
    data, sample = config.data, source_of(config.data).sample

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> TokenBatch:
        x = sample(jax.random.fold_in(key, step), data, config.training.batch_size, batched, shared)
        return as_batch(x, data)

    return batch_fn


class EvalSet(NamedTuple):
    """Sequences, and of the first of them what predictors say: log-probabilities [b, T - 1, k] by name."""

    batch: TokenBatch
    sequences: Sequences
    references: Mapping[str, np.ndarray]


def make_eval_set(config: TokensConfig, shared: Shared = NO_ARRAYS) -> EvalSet:
    """The evaluation set of a config: fresh sequences, or windows of held-out text."""
    source, data = source_of(config.data), config.data
    sequences = source.drawn(config, Purpose.EVAL, config.eval_tasks)
    first = sequences.x[: max(2, NUMBERS // (data.num_symbols * data.num_tokens))]
    references = {name: predictor.of_all(first) for name, predictor in source.predictors(config).items()}
    return EvalSet(as_batch(sequences.x, data), sequences, references)


# --- what a model says ---


@partial(jax.jit, static_argnums=0)
def _of_all(model: Model, params: Any, batch: TokenBatch) -> Array:
    return jax.nn.log_softmax(model.predict(params, batch))


@partial(jax.jit, static_argnums=0)
def _of_next(model: Model, params: Any, batch: TokenBatch) -> Array:
    said = jax.nn.log_softmax(model.predict(params, batch))
    return jnp.take_along_axis(said, batch.y_query[..., None].astype(jnp.int32), axis=-1)[..., 0]


def of_all(model: Model, params: Any, batch: TokenBatch) -> np.ndarray:
    """A decoder's log-probabilities [B, T - 1, k] of every symbol, float64."""
    return np.asarray(_of_all(model, params, batch), np.float64)


def of_next(model: Model, params: Any, batch: TokenBatch, num_symbols: int) -> np.ndarray:
    """A decoder's log-probabilities [B, T - 1] of the symbols that come, float64."""
    each = max(1, AT_ONCE // (num_symbols * batch.x.shape[1]))
    starts = range(0, len(batch.x), each)
    parts = [_of_next(model, params, jax.tree.map(lambda leaf: leaf[begin : begin + each], batch)) for begin in starts]  # noqa: B023
    return np.concatenate([np.asarray(part, np.float64) for part in parts])


def divergence(of: np.ndarray, one: np.ndarray) -> float:
    """KL(of || one), the mean over sequences and positions, in nats: how far predictions `one` are from those `of`."""
    likely = np.isfinite(of)  # 0 log 0 = 0
    return float(np.mean(np.sum(np.exp(of) * (np.where(likely, of, 0) - np.where(likely, one, 0)), axis=-1)))


# --- evaluation ---


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, Any]:
    """Metrics of a record: eval_loss, by position, and the divergence of the model from each predictor.

    Divergences are of the first sequences of the set, of as many as `NUMBERS` allows.
    """
    batch, references = eval_set.batch, eval_set.references
    compared, _, num_symbols = references["uniform"].shape
    said = of_all(model, params, jax.tree.map(lambda leaf: leaf[:compared], batch))
    everything = compared == len(batch.x)
    losses = -(chosen(said, eval_set.sequences.x) if everything else of_next(model, params, batch, num_symbols))
    distances = {f"eval_kl_{name}": divergence(other, said) for name, other in references.items()}
    return {"eval_loss": float(losses.mean()), **distances, "eval_losses": losses.mean(axis=0).tolist()}


def test_metrics(config: TokensConfig, model: Model, params: Any, eval_set: EvalSet | None) -> dict[str, Any]:
    """Losses with standard errors on the test sequences, the model's and the predictors', and its excess."""
    source, data = source_of(config.data), config.data
    test = source.drawn(config, Purpose.TEST_SET, config.test_tasks)
    predictors = source.predictors(config)
    said = {"": of_next(model, params, as_batch(test.x, data), data.num_symbols)}
    said |= {name: predictor.of_next(test.x) for name, predictor in predictors.items()}
    if data.source == "text":
        said |= _with_caches(config, predictors, test.x, said)
    losses = {f"{name}_loss".lstrip("_"): -values.mean(axis=1) for name, values in said.items()}
    numbers = means_and_errors(losses | {"excess": losses["loss"] - losses[first_of(BEST, losses)]})
    return {"tasks": len(test.x), **numbers, **_accuracies(config, model, params, predictors, test)}


def _with_caches(
    config: TokensConfig, predictors: Mapping[str, Predictor], x: np.ndarray, said: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Counts mixed with caches of the window's last one and two symbols, by weights fitted on evaluation windows."""
    fitted_on = source_of(config.data).drawn(config, Purpose.EVAL, config.eval_tasks).x
    found = {}
    for name in (name for name in predictors if name.startswith("kneser_ney")):
        weights = kneser_ney.fitted_weights(predictors[name].of_next(fitted_on), fitted_on)
        found[f"{name}_cached"] = kneser_ney.mixed(said[name], x, weights)
    return found


def _accuracies(
    config: TokensConfig, model: Model, params: Any, predictors: Mapping[str, Predictor], test: Sequences
) -> dict[str, float]:
    """Of triggers that came before: how often the most likely symbol of the model, and of Bayes, is the right one.

    With standard errors over sequences; empty for other sources.
    """
    if test.recurring is None:
        return {}
    of_model = of_all(model, params, as_batch(test.x, config.data))
    said = {"trigger_accuracy": of_model, "bayes_trigger_accuracy": predictors["bayes"].of_all(test.x)}
    found, of_sequence = dict[str, float](), test.recurring.sum(axis=1)
    if not of_sequence.any():  # at a rate of 0
        return {}
    for name, log_probability in said.items():
        right = (log_probability.argmax(axis=-1) == test.x[:, 1:]) & test.recurring
        found[name], found[f"{name}_se"] = ratio_and_error(right.sum(axis=1), of_sequence)
    return found


def predictions(model: Model, params: Any, eval_set: EvalSet) -> dict[str, np.ndarray]:
    """Log-probabilities [B, T - 1] of the symbols that come: the model's, and of the first sequences predictors'."""
    k, x = eval_set.references["uniform"].shape[-1], eval_set.sequences.x
    said = {"tf": of_next(model, params, eval_set.batch, k)}
    said |= {name: chosen(values, x[: len(values)]) for name, values in eval_set.references.items()}
    return {name: values.astype(np.float32) for name, values in said.items()}


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
    batched=batched_of,
    predictions=predictions,
    test_metrics=test_metrics,
)
