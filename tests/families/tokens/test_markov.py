"""Markov chains and their exact predictors, against enumeration of all sequences and Dirichlet integrals in float64."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln

from icl_lab.families.tokens import markov
from icl_lab.src.prng import key

# mean losses of x_2 .. x_8 by symbols, of the posterior mean under uniform rows: enumeration by another program
PUBLISHED = {
    2: (0.69315, 0.66483, 0.62123, 0.60428, 0.58678, 0.57636, 0.56643),
    3: (1.09861, 1.07898, 1.04771, 1.02800, 1.01120, 0.99838, 0.98661),
}


def every_sequence(num_symbols: int, length: int) -> np.ndarray:
    return np.array(list(itertools.product(range(num_symbols), repeat=length)), np.int32)


def log_marginal(x: np.ndarray, num_symbols: int, order: int, alpha: float) -> float:
    """log P of one sequence: the first symbols uniform, then a Dirichlet integral for each row."""
    counts: dict[tuple[int, ...], np.ndarray] = {}
    for place in range(order, len(x)):
        row = counts.setdefault(tuple(x[place - order : place]), np.zeros(num_symbols))
        row[x[place]] += 1
    total = -min(order, len(x)) * np.log(num_symbols)
    for row in counts.values():
        total += gammaln(num_symbols * alpha) - gammaln(num_symbols * alpha + row.sum())
        total += (gammaln(alpha + row) - gammaln(alpha)).sum()
    return float(total)


def log_marginals(x: np.ndarray, *chain: Any) -> np.ndarray:
    """Of every beginning, [B, T]."""
    return np.array([[log_marginal(row[:end], *chain) for end in range(1, len(row) + 1)] for row in x])


@pytest.mark.parametrize(("num_symbols", "order", "alpha", "length"), [(2, 1, 1.0, 8), (3, 1, 0.3, 6), (2, 2, 2.0, 8)])
def test_bayes_is_the_ratio_of_marginals(num_symbols: int, order: int, alpha: float, length: int) -> None:
    x = every_sequence(num_symbols, length)
    wanted = np.diff(log_marginals(x, num_symbols, order, alpha), axis=1)
    found = markov.bayes(jnp.asarray(x), num_symbols, order, alpha)
    np.testing.assert_allclose(-markov.losses(found, jnp.asarray(x)), wanted, atol=1e-6)
    np.testing.assert_allclose(jnp.exp(found).sum(axis=-1), 1, atol=1e-6)


@pytest.mark.parametrize("num_symbols", [2, 3])
def test_its_loss_by_position_is_that_of_enumeration(num_symbols: int) -> None:
    x = every_sequence(num_symbols, 8)
    chance = np.exp(log_marginals(x, num_symbols, 1, 1.0)[:, -1])
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    found = markov.losses(markov.bayes(jnp.asarray(x), num_symbols), jnp.asarray(x))
    np.testing.assert_allclose(chance @ np.asarray(found, np.float64), PUBLISHED[num_symbols], atol=6e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_a_walk_has_its_chains_frequencies(order: int) -> None:
    chain = markov.transitions(key(3), 3, order, 1.0)
    x = markov.walks(key(4), jnp.broadcast_to(chain, (4000, *chain.shape)), order, 60)
    assert (x.dtype, x.shape) == (jnp.int32, (4000, 60))
    states = np.asarray(markov.states_of(x, 3, order))[:, order - 1 :]
    counts = np.zeros(chain.shape)
    np.add.at(counts, (states.ravel(), np.asarray(x)[:, order:].ravel()), 1)
    # 236 000 symbols over 3 or 9 rows, of which the rarest has 2 000: 5 standard errors of a share
    assert counts.sum(axis=1).min() > 2000
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), chain, atol=0.06)
    assert np.abs(counts / counts.sum(axis=1, keepdims=True) - chain)[counts.sum(axis=1) > 20_000].max() < 0.018
    first = np.bincount(np.asarray(x)[:, 0], minlength=3) / 4000
    np.testing.assert_allclose(first, 1 / 3, atol=5 * np.sqrt(2 / 9 / 4000))


def test_a_chain_of_a_number_is_the_same_in_any_company() -> None:
    many, one = (markov.chain_of(key(1), jnp.asarray(numbers), 4, 1, 0.5) for numbers in ([0, 5, 7], [5]))
    np.testing.assert_array_equal(many[1], one[0])
    np.testing.assert_allclose(many.sum(axis=-1), 1, atol=1e-6)


def test_the_pools_posterior_is_by_hand() -> None:
    chains = np.asarray(markov.chain_of(key(2), jnp.arange(3), 2, 1, 1.0), np.float64)
    x = every_sequence(2, 5)
    found = markov.pool_posterior(jnp.asarray(x), jnp.asarray(chains, jnp.float32))
    for row, predicted in zip(x, np.asarray(found), strict=True):
        weights = np.ones(3) / 3
        for place in range(4):
            said = weights @ chains[:, row[place]]
            np.testing.assert_allclose(np.exp(predicted[place]), said, atol=1e-6)
            weights = weights * chains[:, row[place], row[place + 1]]
            weights /= weights.sum()


def test_of_one_chain_it_is_the_chain_and_of_many_it_comes_to_bayes() -> None:
    chains = markov.chain_of(key(5), jnp.arange(20_000), 2, 1, 1.0)
    x = jnp.asarray(every_sequence(2, 6))
    alone = markov.pool_posterior(x, chains[:1])
    np.testing.assert_allclose(jnp.exp(alone), chains[0][x[:, :-1]], atol=1e-6)
    pool = jnp.exp(markov.pool_posterior(x, chains))
    # a mean over 20 000 chains, of which the rarest beginnings weigh some 500
    np.testing.assert_allclose(pool, jnp.exp(markov.bayes(x, 2)), atol=0.05)
    assert float(jnp.abs(pool - jnp.exp(markov.bayes(x, 2))).mean()) < 0.005


def test_unigrams_are_counts_and_their_pseudo_count_is_the_best() -> None:
    x = np.array([[0, 1, 1, 2, 0]], np.int32)
    found = np.exp(markov.unigram(jnp.asarray(x), 3, 2.0))[0]
    np.testing.assert_allclose(found * [[7], [8], [9], [10]], [[3, 2, 2], [3, 3, 2], [3, 4, 2], [3, 4, 3]], rtol=1e-6)
    drawn = markov.walks(key(6), markov.chain_of(key(7), jnp.arange(2000), 3, 1, 1.0), 1, 64)
    best = markov.fitted_pseudo_count(drawn, 3)
    around = [float(markov.losses(markov.unigram(drawn, 3, b), drawn).mean()) for b in (best / 1.3, best, best * 1.3)]
    assert around[1] == min(around)
    assert 2.0 < best < 3.0  # 2.5 by another program
    assert around[1] == pytest.approx(1.010, abs=0.008)  # four standard errors of 2000 sequences
    exact = markov.losses(markov.bayes(drawn, 3), drawn).mean()
    assert float(exact) == pytest.approx(0.905, abs=0.012)
    assert jax.tree.leaves(markov.uniform(drawn, 3))[0].shape == (2000, 63, 3)


# --- induction heads and pools' unigrams ---


def counts_by_hand(row: np.ndarray, num_symbols: int) -> np.ndarray:
    """[T - 1, k]: how often each symbol has followed the present one."""
    found = np.zeros((len(row) - 1, num_symbols))
    for place in range(len(row) - 1):
        for earlier in range(place):
            if row[earlier] == row[place]:
                found[place, row[earlier + 1]] += 1
    return found


@pytest.mark.parametrize(("scale", "constant"), [(2.0, 0.0), (1.5, 0.7)])
def test_an_induction_head_reads_shares_of_successors(scale: float, constant: float) -> None:
    x = np.random.default_rng(0).integers(0, 3, (4, 12)).astype(np.int32)
    counts = np.stack([counts_by_hand(row, 3) for row in x])
    total = counts.sum(axis=-1, keepdims=True) + constant
    logits = scale * np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    found = markov.induction_head(jnp.asarray(x), 3, 1, scale, constant)
    np.testing.assert_allclose(found, jax.nn.log_softmax(logits), atol=1e-6)


def test_the_fitted_head_is_better_than_its_neighbours_and_worse_than_bayes() -> None:
    chains = markov.chain_of(key(0), jnp.arange(512, dtype=jnp.uint32), 3, 1, 1.0)
    x = markov.walks(key(1), chains, 1, 64)

    def loss(predicted: Any) -> float:
        return float(markov.losses(predicted, x).mean())

    alone, kept = (markov.fitted_induction_head(x, 3, 1, constant) for constant in (False, True))
    assert alone[1] == 0
    best = {numbers: loss(markov.induction_head(x, 3, 1, *numbers)) for numbers in (alone, kept)}
    for scale in (0.9, 1.1):
        assert loss(markov.induction_head(x, 3, 1, scale * alone[0])) > best[alone]
        assert loss(markov.induction_head(x, 3, 1, scale * kept[0], kept[1])) > best[kept]
    exact = loss(markov.bayes(x, 3))
    # .027 and .006 of 64 symbols; 512 sequences leave .002 of these differences, which are paired
    assert best[alone] - exact == pytest.approx(0.027, abs=0.004)
    assert best[kept] - exact == pytest.approx(0.006, abs=0.003)


def test_stationary_distributions_are_those_of_a_long_walk() -> None:
    chains = markov.chain_of(key(2), jnp.arange(5, dtype=jnp.uint32), 4, 1, 1.0)
    rows = np.asarray(chains, np.float64)
    long = np.linalg.matrix_power(rows / rows.sum(axis=-1, keepdims=True), 4096)[:, 0]
    np.testing.assert_allclose(markov.stationary(chains), long, atol=1e-6)


def test_a_pools_unigrams_are_a_posterior_of_independent_symbols() -> None:
    chains = markov.chain_of(key(3), jnp.arange(3, dtype=jnp.uint32), 3, 1, 1.0)
    x = np.random.default_rng(1).integers(0, 3, (6, 9)).astype(np.int32)
    rates = np.asarray(markov.stationary(chains), np.float64)
    wanted = []
    for row in x:
        weights = np.cumprod(rates[:, row[:-1]], axis=1)
        wanted.append(np.log((weights / weights.sum(axis=0)).T @ rates))
    np.testing.assert_allclose(markov.pool_unigrams(jnp.asarray(x), chains), np.stack(wanted), atol=1e-5)
