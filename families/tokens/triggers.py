"""A bigram language with triggers: in each sequence some symbols are always followed by one symbol of their own.

Symbol a is a trigger with probability rho; then its successor is o_a, uniform, whenever it comes. Otherwise it is drawn
from the language's bigrams pi(. | a). Triggers differ from sequence to sequence and must be read from the context:
after Bietti et al. 2023 (arXiv 2306.00802), Sec. 3. Rows are independent, so the posterior is a formula.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from icl_lab.src.prng import Purpose, purpose_key


class Language(NamedTuple):
    """pi [V, V], whose rows sum to 1, and how likely each symbol comes first [V]."""

    bigrams: Array
    first: Array


def language_of(symbols: np.ndarray, num_symbols: int, added: float = 1.0) -> Language:
    """The bigrams of a text of symbols [T], `added` to each count, and how often each symbol stands in it."""
    counts = np.full((num_symbols, num_symbols), added)
    np.add.at(counts, (symbols[:-1], symbols[1:]), 1)
    shares = np.bincount(symbols, minlength=num_symbols) / len(symbols)
    return Language(
        jnp.asarray(counts / counts.sum(axis=1, keepdims=True), jnp.float32), jnp.asarray(shares, jnp.float32)
    )


class Drawn(NamedTuple):
    """Sequences x [B, T], and whether x_1 .. x_{T-1} are triggers that have come before [B, T - 1]."""

    x: Array
    recurring: Array


def sequences(key: Array, language: Language, rate: float, batch_size: int, length: int) -> Drawn:
    """B sequences of T symbols, each with triggers of its own."""
    num_symbols = len(language.first)
    choice, task = purpose_key(key, Purpose.CHOICE), purpose_key(key, Purpose.TASK)
    triggers = jax.random.bernoulli(choice, rate, (batch_size, num_symbols))
    outputs = jax.random.randint(task, (batch_size, num_symbols), 0, num_symbols)
    first = jax.random.categorical(purpose_key(key, Purpose.INPUT), jnp.log(language.first), shape=(batch_size,))
    units = jax.random.uniform(purpose_key(key, Purpose.OBSERVATION), (length - 1, batch_size))
    cumulated, tasks = jnp.cumsum(language.bigrams, axis=-1)[:, :-1], jnp.arange(batch_size)

    def step(symbol: Array, unit: Array) -> tuple[Array, Array]:
        drawn = jnp.sum(unit[:, None] >= cumulated[symbol], axis=-1, dtype=jnp.int32)
        following = jnp.where(triggers[tasks, symbol], outputs[tasks, symbol], drawn)
        return following, following

    _, rest = lax.scan(step, first.astype(jnp.int32), units)
    x = jnp.concatenate([first.astype(jnp.int32)[None], rest]).T
    same = x[:, :-1, None] == x[:, None, :-1]
    before = np.tril(np.ones((length - 1, length - 1), bool), -1)[None]
    return Drawn(x, triggers[tasks[:, None], x[:, :-1]] & (same & before).any(axis=-1))


def bayes(x: Array, language: Language, rate: float) -> Array:
    """log-probabilities [B, T - 1, V] of x_2 .. x_T: P delta_b + (1 - P) pi(. | a), of the symbol a before.

    P is rho if a is new, and then delta_b is uniform; if all n successors of a so far were b it is
    (rho / V) / (rho / V + (1 - rho) pi(b | a)^n); else 0.
    """
    num_symbols, length = len(language.first), x.shape[1]
    current, following = x[:, :-1], jax.nn.one_hot(x[:, 1:], num_symbols)
    before = jnp.asarray(np.tril(np.ones((length - 1, length - 1), np.float32), -1))
    same = (current[:, :, None] == current[:, None, :]) * before[None]
    counts = jnp.einsum("bts,bsj->btj", same, following)
    seen = counts.sum(axis=-1)
    own = language.bigrams[current]
    only = counts == seen[..., None]  # the one that has always followed, if a has come before
    by_chance = (1 - rate) * jnp.max(jnp.where(only, own, 0), axis=-1) ** seen
    certain = jnp.any(only, axis=-1) & (seen > 0)
    trigger = jnp.where(certain, (rate / num_symbols) / (rate / num_symbols + by_chance), 0)
    trigger = jnp.where(seen > 0, trigger, rate)[..., None]
    said = jnp.where(seen[..., None] > 0, only, 1 / num_symbols)
    return jnp.log(trigger * said + (1 - trigger) * own)


def bigram(x: Array, language: Language) -> Array:
    """log pi(. | a): what knows the language and ignores the context."""
    return jnp.log(language.bigrams)[x[:, :-1]]
