"""Contexts with several queries: their law, their tokens, and sets of tasks gone through in chunks."""

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.src import data as single
from icl_lab.src.data_config import DataConfig, QueriesData
from icl_lab.src.prng import Purpose, key
from icl_lab.src.queries import CHUNK, sample_batch, task_chunks, tokenise

DATA = QueriesData(dim=3, num_pairs=5, num_queries=4, input_distribution="gaussian", noise_std=0.5)


def test_shapes_and_repeatability() -> None:
    batch, again, other = (sample_batch(key(seed), DATA, 7) for seed in (0, 0, 1))
    shapes = [leaf.shape for leaf in batch]
    assert shapes == [(7, 5, 3), (7, 5), (7, 4, 3), (7, 4), (7, 3)]
    for a, b, c in zip(batch, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)


@pytest.mark.parametrize("noise_std", [0.0, 0.5])
def test_one_query_is_the_batch_of_the_regression_family(noise_std: float) -> None:
    same = {"dim": 3, "num_pairs": 5, "input_distribution": "gaussian", "noise_std": noise_std}
    ours, theirs = sample_batch(key(2), QueriesData(**same), 6), single.sample_batch(key(2), DataConfig(**same), 6)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a).reshape(b.shape), b, rtol=1e-6, atol=1e-6)


def test_pairs_and_queries_carry_the_same_noise() -> None:
    """The variance of y - w.x is noise_std^2 for both; 4 standard errors of a variance of M normals, 4 sqrt(2/M)."""
    batch = sample_batch(key(3), DATA, 4000)
    for x, y in ((batch.x, batch.y), (batch.x_query, batch.y_query)):
        noise = np.asarray(y) - np.einsum("bnd,bd->bn", x, batch.w)
        assert noise.var() / 0.25 == pytest.approx(1, abs=4 * np.sqrt(2 / noise.size))
        assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 4 / np.sqrt(len(noise))


def test_tokens_hold_pairs_then_queries_without_labels() -> None:
    batch = sample_batch(key(4), DATA, 2)
    rows = np.asarray(tokenise(batch))
    np.testing.assert_array_equal(rows[:, :5], np.concatenate([batch.x, np.asarray(batch.y)[:, :, None]], axis=2))
    np.testing.assert_array_equal(rows[:, 5:, :3], batch.x_query)
    assert (rows[:, 5:, 3] == 0).all()


def test_a_task_does_not_depend_on_how_many_are_asked_for() -> None:
    few, many = list(task_chunks(DATA, 5, 10)), list(task_chunks(DATA, 5, CHUNK + 1))
    assert [count for _, count in few] == [10]
    assert [count for _, count in many] == [CHUNK, 1]
    np.testing.assert_array_equal(few[0][0].x[:10], many[0][0].x[:10])
    assert not jnp.array_equal(many[0][0].x, many[1][0].x)


def test_seeds_and_purposes_share_no_task() -> None:
    drawn = [
        next(task_chunks(DATA, seed, 10, purpose))[0].w
        for seed in (0, 1)
        for purpose in (Purpose.TEST_SET, Purpose.STEP_SIZE)
    ]
    assert len({np.asarray(w).tobytes() for w in drawn}) == 4
