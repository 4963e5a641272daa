"""Stored contexts: a step's batch holds whole contexts, or different pairs of one, all as likely as another."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from icl_lab.src.prng import key
from icl_lab.src.stored_contexts import as_sequence, distinct, sample_stored

LENGTHS = np.array([5, 7, 4], np.int32)
STARTS = np.array([0, 5, 12], np.int32)
ROWS = int(LENGTHS.sum())
OF_ROW = np.repeat(np.arange(3), LENGTHS)  # the context of a pair
STORED = {  # a pair's number is its input, and tells its label
    "x": jnp.arange(ROWS, dtype=jnp.float32)[:, None],
    "y": 100 + jnp.arange(ROWS, dtype=jnp.float32),
    "starts": jnp.asarray(STARTS),
    "lengths": jnp.asarray(LENGTHS),
}


def test_every_sequence_of_different_numbers_is_as_likely() -> None:
    drawn = np.asarray(distinct(key(0), jnp.full(24_000, 4), 3))
    counts = Counter(map(tuple, drawn.tolist()))
    assert len(counts) == 24  # 4 x 3 x 2 sequences without a repeat, and no other
    assert all(len(set(sequence)) == 3 and set(sequence) <= set(range(4)) for sequence in counts)
    assert stats.chisquare([*counts.values()]).pvalue > 0.01  # fixed seed


def test_a_whole_context_is_a_permutation_of_it() -> None:
    drawn = np.asarray(distinct(key(1), jnp.full(50, 6), 6))
    np.testing.assert_array_equal(np.sort(drawn, axis=1), np.broadcast_to(np.arange(6), (50, 6)))


def test_pairs_are_drawn_of_one_context_anew_in_every_step() -> None:
    batches = [sample_stored(key(seed), STORED, 600, 4, drawn=True) for seed in (0, 1)]
    rows = [np.concatenate([batch.x[:, :, 0], batch.x_query], axis=1).astype(int) for batch in batches]
    for batch, drawn in zip(batches, rows, strict=True):
        assert all(len(set(context)) == 4 for context in drawn)
        assert all(len(set(OF_ROW[context])) == 1 for context in drawn)
        np.testing.assert_array_equal(batch.y, 100 + batch.x[:, :, 0])
        np.testing.assert_array_equal(batch.y_query, 100 + batch.x_query[:, 0])
    assert (rows[0] != rows[1]).any()
    counts = np.bincount(OF_ROW[rows[0][:, 0]], minlength=3)
    assert stats.chisquare(counts).pvalue > 0.01  # contexts, not pairs, are as likely as one another; fixed seed


def test_contexts_of_one_length_stay_as_they_are() -> None:
    x = jnp.arange(24, dtype=jnp.float32).reshape(12, 2)
    stored = {"x": x, "y": x[:, 0], "starts": jnp.array([0, 4, 8])}
    batch = sample_stored(key(3), stored, 30, 4, drawn=False)
    whole = np.concatenate([batch.x, batch.x_query[:, None]], axis=1)
    contexts = np.asarray(x).reshape(3, 4, 2)
    assert {int(np.flatnonzero((contexts == one).all(axis=(1, 2)))[0]) for one in whole} == {0, 1, 2}


def test_a_stored_query_is_the_contexts_own_and_a_sequences_last_pair() -> None:
    stored = {**STORED, "x_query": 50.0 + jnp.arange(3.0)[:, None], "y_query": 60.0 + jnp.arange(3.0)}
    batch = sample_stored(key(4), stored, 40, 3, drawn=True)
    contexts = OF_ROW[np.asarray(batch.x[:, 0, 0], int)]
    np.testing.assert_array_equal(batch.x_query[:, 0], 50 + contexts)
    np.testing.assert_array_equal(batch.y_query, 60 + contexts)
    sequence = as_sequence(batch)
    np.testing.assert_array_equal(sequence.y[:, -1], batch.y_query)
    np.testing.assert_array_equal(sequence.x_query, sequence.x)
    assert jax.tree.map(np.shape, tuple(sequence[:2])) == ((40, 4, 1), (40, 4))
