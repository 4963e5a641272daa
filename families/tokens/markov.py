"""Markov chains whose transitions differ from sequence to sequence, and what predicts their next symbol exactly.

A chain of order n has k^n rows of transition probabilities, each from a symmetric Dirichlet distribution with parameter
alpha; its first n symbols are uniform, so they say nothing of the rows. Edelman et al. 2024 (arXiv 2402.11004), Sec. 2,
start from the stationary distribution instead, where the counting rule is only nearly Bayes.

Predictors take symbols x [B, T] and give log-probabilities [B, T - 1, k] of x_2 .. x_T, each from the symbols before
it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy.optimize import minimize, minimize_scalar

from icl_lab.src.prng import Purpose, purpose_key

LARGEST_PSEUDO_COUNT = 1000.0  # of the unigram rule: larger ones are uniform to three digits at 1000 symbols
LEAST = float(np.finfo(np.float32).tiny)  # of a chain's probabilities, which are 0 where float32 has none


# --- chains ---


def transitions(key: Array, num_symbols: int, order: int, alpha: float) -> Array:
    """The rows [k^n, k] of one chain."""
    rows: Array = jax.random.dirichlet(key, jnp.full(num_symbols, alpha), (num_symbols**order,))
    return rows


def chain_of(key: Array, numbers: Array, num_symbols: int, order: int, alpha: float) -> Array:
    """The chains [B, k^n, k] of these numbers [B] under a key: chain i is the same whatever else is drawn."""
    return jax.vmap(lambda number: transitions(jax.random.fold_in(key, number), num_symbols, order, alpha))(numbers)


def walks(key: Array, chains: Array, order: int, length: int) -> Array:
    """A sequence of T symbols of each chain [B, k^n, k]: int32 [B, T]."""
    count, rows, num_symbols = chains.shape
    first = jax.random.randint(purpose_key(key, Purpose.INPUT), (order, count), 0, num_symbols)
    units = jax.random.uniform(purpose_key(key, Purpose.OBSERVATION), (length - order, count))
    cumulated = jnp.cumsum(chains, axis=-1)[..., :-1]

    def step(row: Array, unit: Array) -> tuple[Array, Array]:
        bounds = jnp.take_along_axis(cumulated, row[:, None, None], axis=1)[:, 0]
        symbol = jnp.sum(unit[:, None] >= bounds, axis=-1, dtype=jnp.int32)
        return (row * num_symbols + symbol) % rows, symbol

    state = jnp.zeros(count, jnp.int32)
    for symbol in first:
        state = state * num_symbols + symbol
    _, rest = lax.scan(step, state, units)
    return jnp.concatenate([first, rest]).T


# --- exact predictors ---


def uniform(x: Array, num_symbols: int) -> Array:
    """log 1/k."""
    return jnp.full((x.shape[0], x.shape[1] - 1, num_symbols), -jnp.log(float(num_symbols)))


def bayes(x: Array, num_symbols: int, order: int = 1, alpha: float = 1.0) -> Array:
    """log (c_j + alpha) / (c + k alpha), the posterior mean of the row that the last n symbols choose.

    c_j counts how often j followed these n symbols before, c is the sum. The first n symbols are uniform.
    """
    counts = counts_after(x, num_symbols, order)
    found = jnp.log(counts + alpha) - jnp.log(counts.sum(axis=-1, keepdims=True) + num_symbols * alpha)
    starts = jnp.arange(1, x.shape[1]) < order
    return jnp.where(starts[None, :, None], -jnp.log(float(num_symbols)), found)


def counts_after(x: Array, num_symbols: int, order: int = 1) -> Array:
    """[B, T - 1, k]: how often each symbol has followed the last n symbols, before x_2, ..., x_T."""
    length = x.shape[1]
    states = states_of(x, num_symbols, order)
    visible = np.tril(np.ones((length - 1, length - 1), bool), -1)  # of a place s the successor, x_{s+1}, is known
    visible[:, : order - 1] = False  # where n symbols have not been seen
    same = (states[:, :, None] == states[:, None, :]) & visible[None]
    return jnp.einsum("bts,bsj->btj", same.astype(jnp.float32), jax.nn.one_hot(x[:, 1:], num_symbols))


def states_of(x: Array, num_symbols: int, order: int) -> Array:
    """[B, T - 1]: which row the symbols up to x_1, ..., x_{T-1} choose; the first n - 1 say nothing."""
    length = x.shape[1] - 1
    states = jnp.zeros_like(x[:, 1:])
    for lag in range(order):
        states = states + num_symbols**lag * jnp.pad(x[:, : length - lag], ((0, 0), (lag, 0)))
    return states


def unigram(x: Array, num_symbols: int, pseudo_count: Array | float) -> Array:
    """log (n_j + b) / (n + k b), from how often each symbol has come among the n before: what ignores the order."""
    counts = jnp.cumsum(jax.nn.one_hot(x[:, :-1], num_symbols), axis=1)
    seen = jnp.arange(1, x.shape[1], dtype=counts.dtype)[None, :, None]
    return jnp.log(counts + pseudo_count) - jnp.log(seen + num_symbols * pseudo_count)


def fitted_pseudo_count(x: Array, num_symbols: int) -> float:
    """The b with which the unigram rule has the least loss on sequences; both ends of its range are far from it."""

    @jax.jit
    def loss(pseudo_count: Array) -> Array:
        return losses(unigram(x, num_symbols, pseudo_count), x).mean()

    ends = (-np.log(LARGEST_PSEUDO_COUNT), np.log(LARGEST_PSEUDO_COUNT))
    options = {"xatol": 1e-3}
    best = minimize_scalar(lambda found: float(loss(np.exp(found))), bounds=ends, method="bounded", options=options)
    return float(np.exp(best.x))


def induction_head(x: Array, num_symbols: int, order: int, scale: float, constant: float = 0.0) -> Array:
    """log-softmax of s c_j / (c + b): what a perfect induction head with a linear read-out s can say.

    c_j and c as in `bayes`; b is the weight of a key that always matches a little, such as a start symbol's. With b = 0
    and no match its logits are 0.
    """
    return _read_out(counts_after(x, num_symbols, order), scale, constant)


def _read_out(counts: Array, scale: Array | float, constant: Array | float) -> Array:
    seen = counts.sum(axis=-1, keepdims=True) + constant
    return jax.nn.log_softmax(scale * counts / jnp.maximum(seen, 1e-6))


def fitted_induction_head(x: Array, num_symbols: int, order: int, with_constant: bool) -> tuple[float, float]:
    """The s, and the b or 0, with which an induction head has the least loss on sequences."""
    counts = counts_after(x, num_symbols, order)

    def numbers(logarithms: np.ndarray) -> np.ndarray:
        return np.exp(logarithms) if with_constant else np.array([np.exp(logarithms[0]), 0.0])

    start = np.log([2.0, 1.0] if with_constant else [2.0])
    options = {"xatol": 1e-3, "fatol": 1e-7}
    best = minimize(
        lambda found: float(_loss_of_head(counts, x, *numbers(found))), start, method="Nelder-Mead", options=options
    )
    scale, constant = numbers(best.x)
    return float(scale), float(constant)


@jax.jit
def _loss_of_head(counts: Array, x: Array, scale: Array, constant: Array) -> Array:
    return losses(_read_out(counts, scale, constant), x).mean()


def stationary(chains: Array) -> Array:
    """The stationary distributions [M, k] of chains of order 1 [M, k, k]: the solution of pi P = pi, sum pi = 1."""
    rows, size = np.asarray(chains, np.float64), chains.shape[-1]
    equations = np.concatenate([np.swapaxes(rows, 1, 2) - np.eye(size), np.ones((len(rows), 1, size))], axis=1)
    wanted = np.append(np.zeros(size), 1.0)
    solved = np.linalg.pinv(equations) @ wanted
    return jnp.asarray(solved / solved.sum(axis=1, keepdims=True), jnp.float32)


def pool_unigrams(x: Array, chains: Array) -> Array:
    """The same from how often symbols come alone: the posterior of M sources of independent symbols.

    Each has the stationary distribution of a chain of order 1: what has memorised the chains and ignores the order.
    """
    known = jnp.log(jnp.maximum(stationary(chains), LEAST))  # [M, k]
    said = jnp.cumsum(known[:, x[:, :-1]], axis=-1)  # [M, B, T - 1]
    return jax.nn.logsumexp(jax.nn.log_softmax(said, axis=0)[..., None] + known[:, None, None], axis=0)


def pool_posterior(x: Array, chains: Array, order: int = 1) -> Array:
    """The posterior mean of M equally likely chains [M, k^n, k]: what has memorised them and infers which one it is."""
    num_symbols = chains.shape[-1]
    states = states_of(x, num_symbols, order)
    known = jnp.log(jnp.maximum(chains, LEAST))[:, states]  # [M, B, T - 1, k]
    said = jnp.take_along_axis(known, x[None, :, 1:, None], axis=-1)[..., 0]
    said = jnp.where(jnp.arange(1, x.shape[1]) < order, 0, said)
    before = jnp.cumsum(said, axis=-1) - said
    weights = jax.nn.log_softmax(before, axis=0)
    found = jax.nn.logsumexp(weights[..., None] + known, axis=0)
    starts = jnp.arange(1, x.shape[1]) < order
    return jnp.where(starts[None, :, None], -jnp.log(float(num_symbols)), found)


def losses(log_probabilities: Array, x: Array) -> Array:
    """-log p(x_t) [B, T - 1], in nats, of x_2 .. x_T."""
    return -jnp.take_along_axis(log_probabilities, x[:, 1:, None], axis=-1)[..., 0]
