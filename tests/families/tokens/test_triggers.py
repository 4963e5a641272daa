"""A language with triggers and its exact posterior, against enumeration of all triggers and what they give."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.families.tokens import triggers
from icl_lab.families.tokens.markov import losses
from icl_lab.src.prng import key

SYMBOLS, RATE = 3, 0.3
LANGUAGE = triggers.language_of(np.array([0, 1, 2, 0, 0, 1, 1, 2, 2, 0, 1]), SYMBOLS, added=0.5)


def marginals(x: np.ndarray) -> np.ndarray:
    """P of every beginning [B, T], summed over which symbols are triggers and what follows them."""
    pi, total = np.asarray(LANGUAGE.bigrams, np.float64), np.zeros(x.shape)
    for which in itertools.product((False, True), repeat=SYMBOLS):
        for outputs in itertools.product(range(SYMBOLS), repeat=SYMBOLS):
            rows = np.array([np.eye(SYMBOLS)[outputs[a]] if which[a] else pi[a] for a in range(SYMBOLS)])
            chance = np.prod([RATE if trigger else 1 - RATE for trigger in which]) / SYMBOLS**SYMBOLS
            walked = np.cumprod(rows[x[:, :-1], x[:, 1:]], axis=1)
            total += chance * np.concatenate([np.ones((len(x), 1)), walked], axis=1)
    return total


def test_bayes_is_the_ratio_of_marginals() -> None:
    x = np.array(list(itertools.product(range(SYMBOLS), repeat=6)), np.int32)
    chance = marginals(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = chance[:, 1:] / chance[:, :-1]
    found = triggers.bayes(jnp.asarray(x), LANGUAGE, RATE)
    said = np.exp(-np.asarray(losses(found, jnp.asarray(x)), np.float64))
    np.testing.assert_allclose(said, wanted, atol=2e-6)
    np.testing.assert_allclose(jnp.exp(found).sum(axis=-1), 1, atol=1e-6)


def test_a_languages_bigrams_are_its_counts() -> None:
    assert LANGUAGE.bigrams[2] == pytest.approx(np.array([2.5, 0.5, 1.5]) / 4.5)
    assert LANGUAGE.first == pytest.approx(np.array([4, 4, 3]) / 11)


def test_sequences_have_triggers_as_often_as_asked() -> None:
    drawn = triggers.sequences(key(1), LANGUAGE, RATE, 4000, 40)
    assert (drawn.x.shape, drawn.recurring.shape, drawn.x.dtype) == ((4000, 40), (4000, 39), jnp.int32)
    x = np.asarray(drawn.x)
    np.testing.assert_allclose(np.bincount(x[:, 0], minlength=3) / 4000, LANGUAGE.first, atol=0.04)
    # in a sequence a recurring trigger has one successor; without any, successors are the language's
    plain = np.asarray(triggers.sequences(key(2), LANGUAGE, 0.0, 4000, 40).x)
    counts = np.zeros((3, 3))
    np.add.at(counts, (plain[:, :-1].ravel(), plain[:, 1:].ravel()), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), LANGUAGE.bigrams, atol=0.01)
    for row, recurring in zip(x[:200], np.asarray(drawn.recurring)[:200], strict=True):
        for symbol in set(row[:-1][recurring]):
            assert len(set(row[1:][row[:-1] == symbol])) == 1
    exact = np.asarray(losses(triggers.bayes(drawn.x, LANGUAGE, RATE), drawn.x))
    plain_loss = np.asarray(losses(triggers.bigram(drawn.x, LANGUAGE), drawn.x))
    assert exact.mean() < plain_loss.mean() - 0.05
    assert exact[np.asarray(drawn.recurring)].mean() < plain_loss[np.asarray(drawn.recurring)].mean() / 2
