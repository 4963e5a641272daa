"""What sequences are drawn from, by the field `source`: their training batches, their sets, and predictors of them.

A predictor gives log-probabilities of x_2 .. x_T, each from the symbols before it, in nats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.tokens import markov, text, triggers
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.families.tokens.data import TokenData
from icl_lab.families.tokens.shared import hashed, language_of
from icl_lab.lab.configs.identity import array_hash
from icl_lab.src.checks import require
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.prng import key as make_key
from icl_lab.src.sequences import traced_size
from icl_lab.src.train import Shared

FITTED_ON = 4096  # sequences, of a purpose of their own, on which rules with free numbers are fitted
AT_ONCE = 2**24  # numbers of a pool's posterior in memory


class Sequences(NamedTuple):
    """Sequences x [B, T], and of those with triggers whether x_1 .. x_{T-1} are ones that came before [B, T - 1]."""

    x: np.ndarray
    recurring: np.ndarray | None = None


class Predictor(NamedTuple):
    """of_all: sequences [B, T] -> log-probabilities [B, T - 1, k]; of_next: of the symbols that come [B, T - 1]."""

    of_all: Callable[[np.ndarray], np.ndarray]
    of_next: Callable[[np.ndarray], np.ndarray]


class Source(NamedTuple):
    """A source.

    sample(key, data, count, batched, shared): sequences [B, T] of a training batch. drawn(config, purpose, count): the
    sequences of a set. predictors(config): by name.
    """

    sample: Callable[[Array, TokenData, int, Mapping[str, Any], Shared], Array]
    drawn: Callable[[TokensConfig, Purpose, int], Sequences]
    predictors: Callable[[TokensConfig], dict[str, Predictor]]


def source_of(data: TokenData) -> Source:
    """The source of sequences."""
    return SOURCES[data.source]


def chosen(log_probability: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What log-probabilities [B, T - 1, k] say of x_2 .. x_T: [B, T - 1]."""
    found: np.ndarray = np.take_along_axis(log_probability, np.asarray(x)[:, 1:, None], axis=-1)[..., 0]
    return found


def _predictor(predict: Callable[[Array], Array]) -> Predictor:
    """Of a function of JAX."""

    def of_all(x: np.ndarray) -> np.ndarray:
        return np.asarray(predict(jnp.asarray(x)), np.float64)

    return Predictor(of_all, lambda x: chosen(of_all(x), x))


def _uniform(num_symbols: int) -> Predictor:
    return _predictor(partial(markov.uniform, num_symbols=num_symbols))


# --- chains ---


def sample_chains(key: Array, data: TokenData, count: int, batched: Mapping[str, Any], shared: Shared) -> Array:
    """Sequences, each of one of M chains of a pool, or of its own where `num_chains` is 0 for infinity."""
    fresh = jnp.asarray(batched["num_chains"], jnp.uint32) == 0
    most = jnp.maximum(batched["num_chains"], 1).astype(jnp.int32)
    numbers = jax.random.randint(purpose_key(key, Purpose.CHOICE), (count,), 0, most).astype(jnp.uint32)
    numbers = jnp.where(fresh, jnp.arange(count, dtype=jnp.uint32), numbers)
    drawn_from = jnp.where(fresh, purpose_key(key, Purpose.TASK), batched["pool"])
    chains = markov.chain_of(drawn_from, numbers, data.num_symbols, data.chain_order, data.concentration)
    return markov.walks(key, chains, data.chain_order, data.num_tokens)


def batched_of(config: TokensConfig) -> dict[str, Any]:
    """The number of chains in the pool, and the pool's key."""
    return {"num_chains": traced_size(config.data.num_chains), "pool": _pool_key(np.uint32(config.data_seed))}


_pool_key = jax.jit(lambda seed: purpose_key(make_key(seed), Purpose.POOL))


@partial(jax.jit, static_argnames=("data", "count"))
def _chains_drawn(seed: Array, purpose: Array, data: TokenData, count: int, num_chains: Array) -> Array:
    key = make_key(seed)
    batched = {"num_chains": num_chains, "pool": purpose_key(key, Purpose.POOL)}
    return sample_chains(jax.random.fold_in(key, purpose), data, count, batched, {})


def drawn_chains(config: TokensConfig, purpose: Purpose, count: int) -> Sequences:
    """Sequences for a purpose, of a run's pool."""
    return _drawn_of(config.data_seed, purpose, config.data, count)


def _drawn_of(seed: int, purpose: Purpose, data: TokenData, count: int) -> Sequences:
    chains = traced_size(data.num_chains)
    return Sequences(np.asarray(_chains_drawn(np.uint32(seed), np.uint32(purpose), data, count, chains)))


def chains_of(config: TokensConfig) -> Array:
    """The chains [M, k^n, k] of a run's pool."""
    data, pool = config.data, _pool_key(np.uint32(config.data_seed))
    numbers = jnp.arange(int(data.num_chains), dtype=jnp.uint32)
    return markov.chain_of(pool, numbers, data.num_symbols, data.chain_order, data.concentration)


class Fitted(NamedTuple):
    """The numbers of rules that have some: the pseudo-count of unigrams, scale and constant of induction heads."""

    pseudo_count: float
    head: tuple[float, float]
    head_with_constant: tuple[float, float]


@lru_cache(maxsize=8)
def fitted(data_seed: int, data: TokenData) -> Fitted:
    """The numbers that fit sequences of fresh chains best."""
    x, k = jnp.asarray(_drawn_of(data_seed, Purpose.FITTED, data, FITTED_ON).x), data.num_symbols
    heads = (markov.fitted_induction_head(x, k, data.chain_order, constant) for constant in (False, True))
    return Fitted(markov.fitted_pseudo_count(x, k), *heads)


def predictors_of_chains(config: TokensConfig) -> dict[str, Predictor]:
    """Those of a fresh chain, and of a finite pool those that know its chains."""
    data = config.data
    k, order = data.num_symbols, data.chain_order
    found = fitted(config.data_seed, with_fresh_chains(data))
    of_heads = {"induction": found.head, "induction_constant": found.head_with_constant}
    predictors = {
        "uniform": _uniform(k),
        "unigram": _predictor(partial(markov.unigram, num_symbols=k, pseudo_count=found.pseudo_count)),
        **{
            name: _predictor(
                partial(markov.induction_head, num_symbols=k, order=order, scale=numbers[0], constant=numbers[1])
            )
            for name, numbers in of_heads.items()
        },
        "bayes": _predictor(partial(markov.bayes, num_symbols=k, order=order, alpha=data.concentration)),
    }
    if data.num_chains < math.inf:
        chains = chains_of(config)
        if order == 1:
            predictors["pool_unigram"] = _predictor(partial(_some_at_a_time, _pool_unigrams, chains, 1))
        predictors["pool"] = _predictor(partial(_some_at_a_time, _pool_posterior, chains, order))
    return predictors


def with_fresh_chains(data: TokenData) -> TokenData:
    """The same without a pool."""
    return replace(data, num_chains=math.inf)


def _some_at_a_time(posterior: Callable[..., Array], chains: Array, order: int, x: Array) -> Array:
    each = max(1, AT_ONCE // (len(chains) * x.shape[1] * chains.shape[-1]))
    parts = [posterior(x[begin : begin + each], chains, order) for begin in range(0, len(x), each)]
    return jnp.concatenate(parts)


_pool_posterior = jax.jit(markov.pool_posterior, static_argnums=2)


def _pool_unigrams(x: Array, chains: Array, order: int) -> Array:
    return markov.pool_unigrams(x, chains)


# --- triggers ---


def sample_triggers(key: Array, data: TokenData, count: int, batched: Mapping[str, Any], shared: Shared) -> Array:
    """Sequences, each with triggers of its own."""
    language = triggers.Language(jnp.asarray(shared["bigrams"]), jnp.asarray(shared["first"]))
    return triggers.sequences(key, language, data.trigger_rate, count, data.num_tokens).x


@partial(jax.jit, static_argnames=("data", "count"))
def _triggers_drawn(
    seed: Array, purpose: Array, language: triggers.Language, data: TokenData, count: int
) -> triggers.Drawn:
    key = jax.random.fold_in(make_key(seed), purpose)
    return triggers.sequences(key, language, data.trigger_rate, count, data.num_tokens)


def drawn_triggers(config: TokensConfig, purpose: Purpose, count: int) -> Sequences:
    """Sequences for a purpose."""
    check_unchanged(config)
    seed, language = np.uint32(config.data_seed), language_of(config.data)
    found = _triggers_drawn(seed, np.uint32(purpose), language, config.data, count)
    return Sequences(np.asarray(found.x), np.asarray(found.recurring))


def predictors_of_triggers(config: TokensConfig) -> dict[str, Predictor]:
    """What knows the language and ignores the context, and the exact posterior."""
    language = language_of(config.data)
    return {
        "uniform": _uniform(config.data.num_symbols),
        "bigram": _predictor(partial(triggers.bigram, language=language)),
        "bayes": _predictor(partial(triggers.bayes, language=language, rate=config.data.trigger_rate)),
    }


# --- text ---


def sample_text(key: Array, data: TokenData, count: int, batched: Mapping[str, Any], shared: Shared) -> Array:
    """Windows of the training text."""
    x = text.windows(key, {name: jnp.asarray(array) for name, array in shared.items()}, count, data.num_tokens)
    if not data.repeated_share:
        return x
    return text.with_repeated(key, x, data.repeated_share, data.num_symbols, data.shortest_repeat)


WINDOWS_OF = {Purpose.EVAL: 0, Purpose.TEST_SET: 1}


def drawn_text(config: TokensConfig, purpose: Purpose, count: int) -> Sequences:
    """Held-out windows: of the evaluation set or of the test set."""
    check_unchanged(config)
    data = config.data
    found = text.held_out(text.text_of(data.file, data.num_symbols), data.num_tokens)
    return Sequences(text.spread(found[WINDOWS_OF[purpose]], count))


def predictors_of_text(config: TokensConfig) -> dict[str, Predictor]:
    """Counts of the training text, of one symbol to five."""
    data = config.data
    counted = {
        f"kneser_ney_{order}": text.kneser_ney_of(data.file, data.num_symbols, order)
        for order in range(1, text.HIGHEST_ORDER + 1)
    }
    of_counts = {name: Predictor(counts.distributions, counts.log_probabilities) for name, counts in counted.items()}
    return {"uniform": _uniform(data.num_symbols), **of_counts}


SOURCES: Mapping[str, Source] = {
    "markov": Source(sample_chains, drawn_chains, predictors_of_chains),
    "triggers": Source(sample_triggers, drawn_triggers, predictors_of_triggers),
    "text": Source(sample_text, drawn_text, predictors_of_text),
}


# --- the text that a run began with ---


def check_unchanged(config: TokensConfig) -> None:
    """`ConfigError` if the text is another than when the run began."""
    was, now = {entry.partition(":")[2] for entry in config.shared}, array_hash(hashed(config.data))
    said = f"{text.place_of(config.data.file)} has changed since the run began; bring it back, or train another run"
    require(not was or was == {now}, said)
