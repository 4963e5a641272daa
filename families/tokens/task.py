"""Markov chains in context: the decoder, the sets of sequences that a run uses, and the exact predictors on them.

All losses are cross-entropies in nats, means over sequences and the predicted symbols x_2 .. x_T. A pool of M chains is
a function of the data seed, so pools of one seed are nested.
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

from icl_lab.families.task import NO_ARRAYS, TaskSpec
from icl_lab.families.tokens import markov
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.families.tokens.data import TokenData
from icl_lab.src import language_model
from icl_lab.src.batch import TokenBatch
from icl_lab.src.model import Model
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.prng import key as make_key
from icl_lab.src.sequences import traced_size
from icl_lab.src.statistics import means_and_errors
from icl_lab.src.train import BatchFn, Shared

FITTED_ON = 4096  # sequences, of a purpose of their own, for the unigram rule's pseudo-count
AT_ONCE = 2**24  # numbers of a pool's posterior in memory


def make_model(config: TokensConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The decoder of a run config: always the same one for configs that differ in nothing it depends on."""
    data, model = config.data, config.model
    return language_model.make_model(model, data.num_symbols, data.rows, model.table_std, data.start_token)


# --- sets of sequences ---


def sample(key: Array, pool: Array, data: TokenData, count: int, num_chains: Array) -> Array:
    """Sequences x [B, T], each of one of M chains of a pool, or of its own where `num_chains` is 0 for infinity."""
    fresh = jnp.asarray(num_chains, jnp.uint32) == 0
    most = jnp.maximum(num_chains, 1).astype(jnp.int32)
    chosen = jax.random.randint(purpose_key(key, Purpose.CHOICE), (count,), 0, most).astype(jnp.uint32)
    numbers = jnp.where(fresh, jnp.arange(count, dtype=jnp.uint32), chosen)
    drawn_from = jnp.where(fresh, purpose_key(key, Purpose.TASK), pool)
    chains = markov.chain_of(drawn_from, numbers, data.num_symbols, data.chain_order, data.concentration)
    return markov.walks(key, chains, data.chain_order, data.num_tokens)


def as_batch(x: Array, data: TokenData) -> TokenBatch:
    """What a model reads of sequences [B, T], the start symbol being number k, and what comes next."""
    read = x[:, :-1]
    if data.start_token:
        read = jnp.concatenate([jnp.full((len(x), 1), data.num_symbols, x.dtype), read], axis=1)
    return TokenBatch(read, x[:, 1:])


def symbols_of(batch: TokenBatch, data: TokenData) -> Array:
    """The sequences x [B, T] of a batch."""
    return jnp.concatenate([batch.x[:, int(data.start_token) :], batch.y_query[:, -1:]], axis=1)


def batches(config: TokensConfig) -> BatchFn:
    """The batch function of a run's training. The pool, and how many of its chains count, may differ within a pack."""

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> TokenBatch:
        step_key, size = jax.random.fold_in(key, step), config.training.batch_size
        return as_batch(sample(step_key, batched["pool"], config.data, size, batched["num_chains"]), config.data)

    return batch_fn


def batched(config: TokensConfig) -> dict[str, Any]:
    """The number of chains in the pool, and the pool's key."""
    return {"num_chains": traced_size(config.data.num_chains), "pool": _pool_key(np.uint32(config.data_seed))}


_pool_key = jax.jit(lambda seed: purpose_key(make_key(seed), Purpose.POOL))


@partial(jax.jit, static_argnames=("data", "count"))
def _drawn(seed: Array, purpose: Array, data: TokenData, count: int, num_chains: Array) -> Array:
    key = make_key(seed)
    return sample(jax.random.fold_in(key, purpose), purpose_key(key, Purpose.POOL), data, count, num_chains)


def drawn(config: TokensConfig, purpose: Purpose, count: int, num_chains: float | None = None) -> Array:
    """Sequences [B, T] for a purpose, of a run's pool or of one of another size."""
    chains = traced_size(config.data.num_chains if num_chains is None else num_chains)
    found: Array = _drawn(np.uint32(config.data_seed), np.uint32(purpose), config.data, count, chains)
    return found


def chains_of(config: TokensConfig) -> Array:
    """The chains [M, k^n, k] of a run's pool."""
    data, pool = config.data, _pool_key(np.uint32(config.data_seed))
    numbers = jnp.arange(int(data.num_chains), dtype=jnp.uint32)
    return markov.chain_of(pool, numbers, data.num_symbols, data.chain_order, data.concentration)


# --- exact predictors ---


@lru_cache(maxsize=8)
def pseudo_count(data_seed: int, data: TokenData) -> float:
    """The unigram rule's b, fitted on sequences of fresh chains."""
    x = _drawn(np.uint32(data_seed), np.uint32(Purpose.FITTED), data, FITTED_ON, traced_size(math.inf))
    return markov.fitted_pseudo_count(x, data.num_symbols)


def exact_predictors(config: TokensConfig) -> dict[str, Any]:
    """The exact predictors of a run's sequences, by name: each gives log-probabilities [B, T - 1, k] of x [B, T]."""
    data = config.data
    fitted = pseudo_count(config.data_seed, data)
    predictors: dict[str, Any] = {
        "uniform": partial(markov.uniform, num_symbols=data.num_symbols),
        "unigram": partial(markov.unigram, num_symbols=data.num_symbols, pseudo_count=fitted),
        "bayes": partial(markov.bayes, num_symbols=data.num_symbols, order=data.chain_order, alpha=data.concentration),
    }
    if data.num_chains < math.inf:
        predictors["pool"] = partial(_of_pool, chains=chains_of(config), order=data.chain_order)
    return predictors


def _of_pool(x: Array, chains: Array, order: int) -> Array:
    """The pool's posterior, some sequences at a time."""
    each = max(1, AT_ONCE // (len(chains) * x.shape[1] * chains.shape[-1]))
    parts = [_pool_posterior(x[begin : begin + each], chains, order) for begin in range(0, len(x), each)]
    return jnp.concatenate(parts)


_pool_posterior = jax.jit(markov.pool_posterior, static_argnums=2)


# --- evaluation ---


class EvalSet(NamedTuple):
    """Sequences, and what exact predictors say of them: log-probabilities [B, T - 1, k] by name."""

    batch: TokenBatch
    references: Mapping[str, np.ndarray]


def eval_set_of(config: TokensConfig, x: Array) -> EvalSet:
    """The set of sequences."""
    found = {name: np.asarray(predict(x), np.float64) for name, predict in exact_predictors(config).items()}
    return EvalSet(as_batch(x, config.data), found)


def make_eval_set(config: TokensConfig, shared: Shared = NO_ARRAYS) -> EvalSet:
    """The evaluation set of a config: fresh sequences of its pool."""
    return eval_set_of(config, drawn(config, Purpose.EVAL, config.eval_tasks))


_predict = jax.jit(lambda model, params, batch: model.predict(params, batch), static_argnums=0)


def log_probabilities(model: Model, params: Any, batch: TokenBatch) -> np.ndarray:
    """What a decoder says [B, T - 1, k]."""
    return np.asarray(jax.nn.log_softmax(_predict(model, params, batch)), np.float64)


def losses_of(log_probability: np.ndarray, batch: TokenBatch) -> np.ndarray:
    """-log p [B, T - 1] of what comes next."""
    chosen = np.take_along_axis(log_probability, np.asarray(batch.y_query)[..., None], axis=-1)
    return -chosen[..., 0]


def divergence(of: np.ndarray, one: np.ndarray) -> float:
    """KL(of || one), the mean over sequences and positions, in nats: how far predictions `one` are from those `of`."""
    return float(np.mean(np.sum(np.exp(of) * (of - one), axis=-1)))


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, Any]:
    """Metrics of a record: eval_loss, by position, and the divergence of the model from each exact predictor."""
    said = log_probabilities(model, params, eval_set.batch)
    losses = losses_of(said, eval_set.batch)
    distances = {f"eval_kl_{name}": divergence(said, other) for name, other in eval_set.references.items()}
    return {"eval_loss": float(losses.mean()), **distances, "eval_losses": losses.mean(axis=0).tolist()}


def test_metrics(config: TokensConfig, model: Model, params: Any, eval_set: EvalSet | None) -> dict[str, Any]:
    """Losses with standard errors on the test sequences, the model's and the exact predictors', and its excess."""
    test = eval_set_of(config, drawn(config, Purpose.TEST_SET, config.test_tasks))
    said = {"": log_probabilities(model, params, test.batch), **test.references}
    of = {f"{name}_loss".lstrip("_"): losses_of(values, test.batch).mean(axis=1) for name, values in said.items()}
    best = "pool_loss" if "pool_loss" in of else "bayes_loss"
    return {"tasks": config.test_tasks, **means_and_errors(of | {"excess": of["loss"] - of[best]})}


def predictions(model: Model, params: Any, eval_set: EvalSet) -> dict[str, np.ndarray]:
    """Log-probabilities [B, T - 1, k] of the model and of the exact predictors, on the evaluation set."""
    all_of_them = {"tf": log_probabilities(model, params, eval_set.batch), **eval_set.references}
    return {name: values.astype(np.float32) for name, values in all_of_them.items()}


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
    batched=batched,
    predictions=predictions,
    test_metrics=test_metrics,
)
