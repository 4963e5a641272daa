"""Behaviour of decoders of symbols: by hand, against loops, and of predictors that are what they are compared with."""

from collections import Counter
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import entropy

from icl_lab.analysis.development import token_metrics
from icl_lab.families.tokens import markov
from icl_lab.families.tokens.task import divergence
from icl_lab.src.prng import key

RNG = np.random.default_rng(0)
K = 4
PIECES = [RNG.integers(K, size=60), RNG.integers(K, size=1), RNG.integers(K, size=40)]


# --- bigrams ---


def test_bigrams_are_counts_within_pieces() -> None:
    pairs = Counter((a, b) for piece in PIECES for a, b in pairwise(piece.tolist()))
    q = token_metrics.bigrams_of(PIECES, K + 1)
    assert not q[K].any()
    for a in range(K):
        total = sum(pairs[a, b] for b in range(K))
        np.testing.assert_allclose(q[a, :K], [pairs[a, b] / total for b in range(K)])


def test_the_bigram_divergence_is_scipys_relative_entropy() -> None:
    q, x = token_metrics.bigrams_of(PIECES, K + 1), RNG.integers(K, size=(5, 8))
    x[0, :3] = K  # which has no q
    log_p = log_softmax(RNG.normal(size=(5, 7, K + 1)), axis=-1)
    found = token_metrics.bigram_divergences(q, log_p, x)
    current = x[:, :-1]
    wanted = [entropy(q[a], np.exp(p)) for a, p in zip(current.ravel(), log_p.reshape(-1, K + 1), strict=True) if a < K]
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    assert len(found) == 5 * 7 - 3
    own = np.log(np.where(q > 0, q, 1e-30))[current]
    np.testing.assert_allclose(token_metrics.bigram_divergences(q, own, x), 0, atol=1e-12)


def test_the_least_of_a_curve_has_its_step() -> None:
    assert token_metrics.least([0, 50, 200], [3.0, 0.5, 1.0]) == (0.5, 50)


# --- n-grams ---


def test_frequent_ngrams_are_those_of_a_counter() -> None:
    for length in (2, 3):
        counted = Counter(
            tuple(piece[at : at + length].tolist()) for piece in PIECES for at in range(len(piece) - length + 1)
        )
        wanted = sorted(counted, key=lambda gram: (-counted[gram], gram))
        assert list(map(tuple, token_metrics.frequent(PIECES, length, K, 10).tolist())) == wanted[:10]
        assert len(token_metrics.frequent(PIECES, length, K)) == len(counted)


def test_an_ngram_score_is_a_ratio_of_losses_at_one_place() -> None:
    losses = np.array([[4.0, 3.0, 2.0], [6.0, 5.0, 0.0]])
    assert token_metrics.ngram_score(losses, np.array([1.0, 3.0]), 2) == 5 / 2
    assert token_metrics.ngram_score(losses, np.array([1.0, 3.0]), 3) == 4 / 2
    assert token_metrics.ngram_score(np.full((2, 3), np.log(9)), np.full(5, np.log(9)), 4) == 1  # nothing is known


# --- in context ---


def test_an_icl_score_is_paired_in_a_sequence() -> None:
    losses = np.zeros((2, 24))
    losses[0, 2:4], losses[0, 18:] = 5.0, 2.0  # positions 24/12 to 24/6, and the last 6
    losses[1, [0, 1, 4, 17]] = 100.0  # which neither has
    np.testing.assert_allclose(token_metrics.icl_scores(losses), [-3.0, 0.0])


@pytest.mark.parametrize(("num_symbols", "length", "half"), [(100, 33, 16), (9, 33, 9), (16, 32, 16)])
def test_repeats_have_no_symbol_twice(num_symbols: int, length: int, half: int) -> None:
    x, found = token_metrics.distinct_repeats(3, 20, num_symbols, length)
    assert (found, x.shape, x.max() < num_symbols) == (half, (20, length), True)
    assert all(len(set(row[:half])) == half for row in x)
    np.testing.assert_array_equal(x[:, :half], x[:, half : 2 * half])
    assert (x[0] != x[1]).any()


def test_copy_scores_of_a_model_that_copies_and_of_one_that_knows_nothing() -> None:
    x, half = token_metrics.distinct_repeats(0, 6, 10, 17)
    uniform = np.full((6, 16, 10), -np.log(10))
    nothing = token_metrics.copy_scores(uniform, x, half)
    assert nothing["copy_loss"] == pytest.approx(0, abs=1e-12)
    copies = uniform.copy()
    for row, symbols in enumerate(x):
        for place in range(half, 16):  # it has seen x_place before, and what followed it
            copies[row, place] = log_softmax(5.0 * np.eye(10)[symbols[place + 1 - half]])
    found = token_metrics.copy_scores(copies, x, half)
    assert found["copy_accuracy"] == 1
    assert found["copy_loss"] == pytest.approx(-np.log(np.exp(5) / (np.exp(5) + 9)) - np.log(10))
    weights = token_metrics.copy_weights(half, 16)
    assert (weights[half - 1], weights[2 * half - 1]) == (0, 0)  # r_1 cannot be copied; the last is no more in r
    assert weights.sum() == pytest.approx(0)


# --- phases ---


@pytest.fixture(scope="module", params=[2, 3, 8])
def predicted(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    """What exact predictors say of chains of k symbols."""
    k = request.param
    chains = markov.chain_of(key(1), jnp.arange(150, dtype=jnp.uint32), k, 1, 1.0)
    x = markov.walks(key(2), chains, 1, 40)
    pseudo_count = {2: 1.6, 3: 2.5, 8: 7.8}[k]
    said = {"uniform": markov.uniform(x, k), "unigram": markov.unigram(x, k, pseudo_count), "bayes": markov.bayes(x, k)}
    return {name: np.asarray(values, float) for name, values in said.items()}


def rows_of(said: dict[str, np.ndarray], model: np.ndarray) -> dict[str, float]:
    far = {f"kl_{name}": divergence(of, model) for name, of in said.items()}
    return far | {"null_kl_unigram": token_metrics.tempered_divergence(said["unigram"], said["bayes"])}


def test_the_null_of_the_unigram_phase_is_the_least_of_a_grid(predicted: dict[str, np.ndarray]) -> None:
    grid = [
        divergence(predicted["unigram"], log_softmax(a * predicted["bayes"], axis=-1)) for a in np.linspace(0, 1, 201)
    ]
    found = token_metrics.tempered_divergence(predicted["unigram"], predicted["bayes"])
    assert found == pytest.approx(min(grid), rel=1e-4)
    assert 0 < found < min(grid[0], grid[-1])  # both ends, uniform and Bayes, are further away


def test_no_model_on_the_tempered_path_is_in_the_unigram_phase(predicted: dict[str, np.ndarray]) -> None:
    phases = token_metrics.phases_of("markov", 1, [*predicted])
    found = [
        token_metrics.phase(rows_of(predicted, log_softmax(a * predicted["bayes"], axis=-1)), phases)
        for a in np.linspace(0, 1, 21)
    ]
    assert (found[0], found[-1], {*found}) == ("uniform", "bigram", {"uniform", "bigram"})


def test_each_predictor_is_in_its_own_phase(predicted: dict[str, np.ndarray]) -> None:
    phases = token_metrics.phases_of("markov", 1, [*predicted])
    found = [token_metrics.phase(rows_of(predicted, said), phases) for said in predicted.values()]
    assert found == ["uniform", "unigram", "bigram"]


def test_phases_have_the_words_of_their_sources() -> None:
    counts = token_metrics.phases_of("text", 1, ["uniform", "kneser_ney_1", "kneser_ney_3", "kneser_ney_5"])
    assert list(counts.values()) == ["uniform", "unigram", "trigram", "5-gram"]
    chains = token_metrics.phases_of("markov", 2, ["unigram", "induction", "bayes", "pool"])
    assert list(chains.values()) == ["unigram", "trigram", "trigram", "pool"]
    assert token_metrics.phases_of("triggers", 1, ["bigram", "bayes"]) == {"bigram": "bigram", "bayes": "bayes"}
