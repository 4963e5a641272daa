import math
from dataclasses import replace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from icl_lab.baselines.gradient_descent import gd
from icl_lab.src import data as data_module
from icl_lab.src import prng
from icl_lab.src.batch import Batch
from icl_lab.src.config import TOKENS, ModelConfig
from icl_lab.src.data import positional_encoding, sample_batch, sample_other_batch, scale_inputs, take_pairs, tokenise
from icl_lab.src.data_config import DataConfig
from tests.reference import random_batch

SIGMAS = 4.0
TASKS = 20_000
SMALL = DataConfig(dim=3, num_pairs=4)


def draw(seed, data, size=TASKS):
    return Batch(*(np.asarray(part, np.float64) for part in sample_batch(prng.key(seed), data, size)))


def sigmas(values, mean):
    """How many standard errors the mean of independent values is from the expected one."""
    values = np.ravel(values)
    return abs(values.mean() - mean) / (values.std() / np.sqrt(values.size))


@pytest.mark.parametrize(
    "law",
    [
        DataConfig(dim=3, num_pairs=4),
        DataConfig(dim=3, num_pairs=4, input_range=3.0, weight_scale=0.5),
        DataConfig(dim=3, num_pairs=4, input_distribution="gaussian", input_range=2.0),
    ],
)
def test_distributions_of_inputs_and_teachers(law):
    batch = draw(1, law)
    half = law.input_range / 2
    uniform = law.input_distribution == "uniform"
    exact = stats.uniform(-half, 2 * half) if uniform else stats.norm(0, law.input_range)
    for inputs in (batch.x, batch.x_query):
        assert stats.kstest(inputs.ravel()[:50_000], exact.cdf).pvalue > 1e-4
        assert sigmas(inputs, 0) < SIGMAS
        assert sigmas(inputs**2, law.input_variance) < SIGMAS
        assert sigmas(inputs**4, law.input_fourth_moment) < SIGMAS
        assert not uniform or np.abs(inputs).max() <= half
    assert stats.kstest(batch.w.ravel(), stats.norm(0, law.weight_scale).cdf).pvalue > 1e-4


def test_shapes_and_noiseless_labels():
    """y = w.x, for the pairs and the query."""
    batch = draw(2, SMALL, 50)
    assert [part.shape for part in batch] == [(50, 4, 3), (50, 4), (50, 3), (50,), (50, 3)]
    np.testing.assert_allclose(batch.y, (batch.x * batch.w[:, None]).sum(axis=2), atol=1e-6)  # float32 sums
    np.testing.assert_allclose(batch.y_query, (batch.x_query * batch.w).sum(axis=1), atol=1e-6)


def test_inputs_query_and_teacher_are_independent():
    batch = draw(3, SMALL)
    columns = np.concatenate([batch.x.reshape(TASKS, -1), batch.x_query, batch.w], axis=1)
    table = np.corrcoef(columns.T) * np.sqrt(TASKS)
    assert np.abs(table[np.triu_indices(len(table), 1)]).max() < 4.5


def test_no_two_parts_of_a_batch_are_drawn_from_the_same_words():
    """One key gives every array the same first words; as uniforms, in the order drawn, no two may agree."""
    clean, noisy, distracted = (
        draw(6, law) for law in (SMALL, replace(SMALL, noise_std=1.0), replace(SMALL, num_distractors=SMALL.num_pairs))
    )
    noise = np.concatenate([noisy.y - clean.y, (noisy.y_query - clean.y_query)[:, None]], axis=1)
    streams = [(part + 0.5).ravel() for part in (clean.x, clean.x_query)]
    streams += [stats.norm.cdf(part).ravel() for part in (clean.w, noise, distracted.y)]
    length = min(map(len, streams)) // 2  # the rest are the blocks' second words, which begin elsewhere
    table = np.corrcoef([stream[:length] for stream in streams]) - np.eye(5)
    assert np.abs(table).max() < 4.5 / np.sqrt(length)


def test_observation_noise():
    """Labels gain noise_std * N(0, 1), the query's too, and nothing else changes."""
    noisy, clean = (draw(4, replace(SMALL, noise_std=std)) for std in (0.3, 0.0))
    noise = np.concatenate([noisy.y - clean.y, (noisy.y_query - clean.y_query)[:, None]], axis=1) / 0.3
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(noise.T) - np.eye(5)).max() < 4.5 / np.sqrt(TASKS)
    for name in ("x", "x_query", "w"):
        np.testing.assert_array_equal(getattr(noisy, name), getattr(clean, name))


def test_distractors_are_standard_normal_labels():
    some, none = (draw(5, replace(SMALL, num_distractors=count)) for count in (3, 0))
    assert ((some.y != none.y).sum(axis=1) == 3).all()
    changed = some.y[some.y != none.y]
    assert stats.kstest(changed, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(changed, none.y[some.y != none.y])[0, 1]) < SIGMAS / np.sqrt(changed.size)
    for name in ("x", "x_query", "y_query", "w"):
        np.testing.assert_array_equal(getattr(some, name), getattr(none, name))


def test_distractors_stand_anywhere():
    """Every set of places is as likely as any other, so that no positional encoding tells which pairs to trust."""
    some, none = (draw(5, replace(SMALL, num_distractors=count)) for count in (2, 0))
    sets = (some.y != none.y) @ (1 << np.arange(SMALL.num_pairs))
    counts = np.unique(sets, return_counts=True)[1]
    assert len(counts) == math.comb(SMALL.num_pairs, 2)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(("count", "loss"), [(0, 0.206), (2, 0.257), (4, 0.316), (6, 0.384), (8, 0.460)])
def test_distractors_cost_gradient_descent_what_they_should(count, loss):
    """v/2 (D - 2c E tr S_k + c^2 E tr S_k^2 + c^2 n D v), k = N - n clean pairs, at D = N = 10, c = .606."""
    data = DataConfig(num_distractors=count)
    batch = sample_batch(prng.key(count), data, TASKS)
    errors = np.asarray(0.5 * (gd(batch, 25 / 41.25) - batch.y_query) ** 2, np.float64)
    assert sigmas(errors, loss) < SIGMAS


@given(st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_a_batch_is_a_function_of_its_key(seed, step):
    key = prng.key(seed)
    other = jax.random.fold_in(key, step)
    one, again, different = (sample_batch(k, SMALL, 4) for k in (key, prng.key(seed), other))
    for mine, same, theirs in zip(one, again, different, strict=True):
        np.testing.assert_array_equal(mine, same)
        assert not np.any(np.asarray(mine) == np.asarray(theirs))


@given(st.integers(0, 1000))
def test_take_pairs_moves_pairs_whole(seed):
    batch = random_batch(seed)
    rng = np.random.default_rng(seed)
    index = np.stack([rng.permutation(6) for _ in range(5)])
    taken = take_pairs(batch, index)
    for task in range(5):
        for place in range(6):
            np.testing.assert_array_equal(taken.x[task, place], batch.x[task, index[task, place]].astype(np.float32))
            np.testing.assert_array_equal(taken.y[task, place], batch.y[task, index[task, place]].astype(np.float32))
    for name in ("x_query", "y_query", "w"):
        assert getattr(taken, name) is getattr(batch, name)


def test_scale_inputs_keeps_the_labels():
    batch = random_batch(0)
    scaled = scale_inputs(batch, 3.0)
    np.testing.assert_array_equal(scaled.x, 3 * batch.x)
    np.testing.assert_array_equal(scaled.x_query, 3 * batch.x_query)
    for name in ("y", "y_query", "w"):
        assert getattr(scaled, name) is getattr(batch, name)


# Inputs of another law.


def test_other_inputs_have_the_wanted_norm():
    """Each context's inputs have Frobenius norm alpha; labels follow them."""
    for alpha in (1.0, 2.5):
        batch = sample_other_batch(prng.key(1), SMALL, 200, alpha)
        np.testing.assert_allclose(np.linalg.norm(batch.x, axis=(1, 2)), alpha, rtol=1e-5)
        np.testing.assert_allclose(batch.y, np.einsum("bnd,bd->bn", batch.x, batch.w), atol=1e-5)
        np.testing.assert_allclose(batch.y_query, np.einsum("bd,bd->b", batch.x_query, batch.w), atol=1e-5)


def test_other_inputs_are_a_mixture_of_three_laws():
    """Each third: exponential (all positive), normal and Laplace, which E x^2 / (E |x|)^2 tells: pi/2 and 2."""
    data, tasks = DataConfig(dim=10, num_pairs=99), 900
    batch = sample_other_batch(prng.key(2), data, tasks)
    inputs = np.concatenate([batch.x, batch.x_query[:, None]], axis=1).reshape(tasks, -1).astype(float)
    ratio = (inputs**2).mean(axis=1) / np.abs(inputs).mean(axis=1) ** 2
    exponential = (inputs > 0).all(axis=1)
    normal = ~exponential & (ratio < (np.pi / 2 + 2) / 2)
    laplace = ~exponential & ~normal
    for law, exact, square in ((exponential, "expon", 2), (normal, "norm", 1), (laplace, "laplace", 2)):
        low, high = stats.binom(tasks, 1 / 3).interval(1 - 1e-4)
        assert low <= law.sum() <= high
        standard = inputs[law, ::7] * np.sqrt(data.num_pairs * data.dim * square)  # E x^2 is `square`
        assert stats.kstest(standard.ravel()[:5000], exact).pvalue > 1e-4


def test_the_other_query_takes_its_contexts_factor():
    """Its mean square is that of the context: alpha^2 / (N D)."""
    data = DataConfig(dim=4, num_pairs=200)
    batch = sample_other_batch(prng.key(3), data, 4000, 2.0)
    assert sigmas(np.asarray(batch.x_query, float).ravel() ** 2, 4 / 800) < SIGMAS


# Tokens.

PAIRS = Batch(*(np.float32(part) for part in ([[[1, 2], [3, 4]]], [[5, 6]], [[7, 8]], [9], [[0, 0]])))
CONCATENATED = [[1, 2, 5], [3, 4, 6], [7, 8, 0]]
INTERLEAVED = [[1, 2, 0], [0, 0, 5], [3, 4, 0], [0, 0, 6], [7, 8, 0]]
SHARED = [[1, 2], [0, 5], [3, 4], [0, 6], [7, 8]]
LAYOUTS = {"concatenated": CONCATENATED, "interleaved": INTERLEAVED, "interleaved_shared": SHARED}


@pytest.mark.parametrize(("tokens", "rows"), LAYOUTS.items())
def test_layout_of_tokens(tokens, rows):
    """Input first, label in channel D, or shared in D - 1, the positional encoding behind it; y_query is nowhere."""
    np.testing.assert_array_equal(tokenise(PAIRS, ModelConfig(tokens=tokens)), [rows])
    coded = np.asarray(tokenise(PAIRS, ModelConfig(tokens=tokens, pos_enc_size=4)))
    width = len(rows[0])
    np.testing.assert_array_equal(coded[:, :, :width], [rows])
    np.testing.assert_array_equal(coded[0, :, width:], positional_encoding(len(rows), 4).astype(np.float32))
    assert 9 not in coded


def test_every_name_of_tokens_has_a_tokeniser():
    assert set(data_module.TOKENISERS) == set(TOKENS) == set(LAYOUTS)


@pytest.mark.parametrize("size", [2, 6, 20])
def test_positional_code(size):
    """Vaswani et al. 2017, Sec. 3.5, entry by entry; sines in the first half, cosines in the second."""
    encoding = positional_encoding(7, size)
    assert encoding.shape == (7, size)
    for row in range(7):
        for i in range(size // 2):
            angle = row / 10_000 ** (2 * i / size)
            assert encoding[row, i] == pytest.approx(np.sin(angle), abs=1e-12)
            assert encoding[row, size // 2 + i] == pytest.approx(np.cos(angle), abs=1e-12)


def test_no_positional_encoding_is_no_channel():
    assert positional_encoding(7, 0).shape == (7, 0)
    assert tokenise(PAIRS, ModelConfig()).shape == (1, 3, 3)
