import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from icl_lab.baselines.gradient_descent import gd_weights
from icl_lab.src import config
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import draw_context
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.noise import NOISE_MODES, corrupt
from icl_lab.src.one_step import one_step_size
from icl_lab.src.prng import key

DATA = DataConfig()
NOISY = ("label_noise", "random_pairs")
LEAST_P = 1e-3  # of each test on fixed draws: a wrong law gives values below 1e-12 at these sizes


def drawn(mode, p, sigma=0.5, size=4000, seed=0, data=DATA):
    return draw_context(key(seed), data, ContextConfig(noise_mode=mode, noise_p=p, noise_sigma=sigma), size)


def test_the_registry_is_the_list_of_names():
    assert tuple(NOISE_MODES) == tuple(config.NOISE_MODES)


@given(st.sampled_from(NOISY), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_pairs_are_hit_independently_with_probability_p(mode, p, seed):
    """Each mask entry is one pair's: rates of all positions lie in their binomial interval (6 sigma, 10 positions)."""
    hit = np.asarray(drawn(mode, p, size=2000, seed=seed).hit)
    assert hit.shape == (2000, 10)
    slack = 6 * np.sqrt(p * (1 - p) / 2000) + 1e-6
    assert (np.abs(hit.mean(axis=0) - p) <= slack).all()


def test_hits_of_one_context_are_uncorrelated():
    hit = np.asarray(drawn("label_noise", 0.3, size=20_000).hit, float)
    correlation = np.corrcoef(hit.T) - np.eye(10)
    assert np.abs(correlation).max() < 5 / np.sqrt(20_000)


@pytest.mark.parametrize("mode", NOISY)
def test_p_of_0_changes_nothing_and_p_of_1_hits_everything(mode):
    clean = sample_batch(key(0), DATA, 50)
    none, all_hit = drawn(mode, 0.0, size=50), drawn(mode, 1.0, size=50)
    assert not np.asarray(none.hit).any()
    for name in clean._fields:
        np.testing.assert_array_equal(getattr(none.batch, name), getattr(clean, name))
    assert np.asarray(all_hit.hit).all()
    assert (np.asarray(all_hit.batch.y) != np.asarray(clean.y)).all()


def test_clean_hits_nothing_whatever_p():
    context = drawn("clean", 1.0, size=50)
    assert not np.asarray(context.hit).any()
    np.testing.assert_array_equal(context.batch.y, sample_batch(key(0), DATA, 50).y)


@pytest.mark.parametrize("mode", config.NOISE_MODES)
def test_query_its_label_and_the_teacher_stay_as_they_were(mode):
    noisy, clean = drawn(mode, 1.0, size=50).batch, sample_batch(key(0), DATA, 50)
    for name in ("x_query", "y_query", "w"):
        np.testing.assert_array_equal(getattr(noisy, name), getattr(clean, name))


def test_label_noise_adds_sigma_times_a_standard_normal():
    context, clean = drawn("label_noise", 0.25, sigma=0.7), sample_batch(key(0), DATA, 4000)
    hit = np.asarray(context.hit)
    added = np.asarray(context.batch.y) - np.asarray(clean.y)
    assert (added[~hit] == 0).all()
    np.testing.assert_array_equal(context.batch.x, clean.x)
    assert stats.kstest(added[hit] / 0.7, "norm").pvalue > LEAST_P
    assert abs(np.corrcoef(added[hit], np.asarray(clean.y)[hit])[0, 1]) < 5 / np.sqrt(hit.sum())


def test_a_random_pair_alone_is_distributed_as_a_clean_one():
    context, other = drawn("random_pairs", 0.5, size=6000), sample_batch(key(77), DATA, 6000)
    hit = np.asarray(context.hit)
    x, y = np.asarray(context.batch.x)[hit], np.asarray(context.batch.y)[hit]
    fresh_x, fresh_y = np.asarray(other.x).reshape(-1, 10), np.asarray(other.y).ravel()
    for coordinate in range(10):
        assert stats.ks_2samp(x[:, coordinate], fresh_x[:, coordinate]).pvalue > LEAST_P
    assert stats.ks_2samp(y[::10], fresh_y[::10]).pvalue > LEAST_P  # every tenth: pairs of one clean task share w
    scaled, fresh_scaled = (labels / np.linalg.norm(inputs, axis=1) for inputs, labels in ((x, y), (fresh_x, fresh_y)))
    assert stats.ks_2samp(scaled[::10], fresh_scaled[::10]).pvalue > LEAST_P  # y given |x|: N(0, |x|^2)


def test_second_moments_of_random_pairs():
    """E x^2 = v and E y^2 = D v s^2, at an input range of 3 and a teacher scale of 2."""
    data = dataclasses.replace(DATA, weight_scale=2.0, input_range=3.0)
    batch = drawn("random_pairs", 1.0, data=data).batch
    for values, moment in ((batch.x, 9 / 12), (batch.y, 10 * 9 / 12 * 4)):
        squares = np.asarray(values, float).ravel() ** 2
        assert abs(squares.mean() - moment) < 4 * squares.std() / np.sqrt(squares.size)


def test_masks_and_noise_are_drawn_from_words_of_their_own():
    """As uniforms, in the order drawn, neither agrees with the teacher's nor the inputs' words (N = D here)."""
    context = drawn("label_noise", 0.5, sigma=1.0)
    clean = sample_batch(key(0), DATA, 4000)
    noisy = np.asarray(drawn("label_noise", 1.0, sigma=1.0).batch.y) - clean.y
    streams = [np.asarray(context.hit, float), stats.norm.cdf(noisy), np.asarray(clean.x), stats.norm.cdf(clean.w)]
    length = 4000 * 10 // 2
    table = np.corrcoef([stream.ravel()[:length] for stream in streams]) - np.eye(4)
    assert np.abs(table).max() < 4.5 / np.sqrt(length)


@pytest.mark.parametrize("mode", config.NOISE_MODES)
def test_the_injected_error_is_exactly_0_where_nothing_is_hit(mode):
    """And elsewhere |y - w.x| of the pair as it now is."""
    batch, hit, error = corrupt(key(0), sample_batch(key(0), DATA, 100), mode, 0.5, 0.7, DATA)
    hit, error = np.asarray(hit), np.asarray(error)
    assert (error[~hit] == 0).all()
    expected = np.abs(batch.y - np.einsum("bnd,bd->bn", batch.x, batch.w))
    np.testing.assert_allclose(error[hit], expected[hit], atol=1e-5)
    assert hit.any() == (mode != "clean")


def test_the_label_of_a_random_pair_knows_nothing_of_the_task():
    context = drawn("random_pairs", 0.5, size=8000)
    hit = np.asarray(context.hit)
    told = np.einsum("bnd,bd->bn", context.batch.x, context.batch.w)
    y = np.asarray(context.batch.y)
    assert abs(np.corrcoef(y[hit], told[hit])[0, 1]) < 5 / np.sqrt(hit.sum())
    np.testing.assert_allclose(y[~hit], told[~hit], atol=1e-5)


def test_random_pairs_of_one_context_do_not_share_a_task():
    """The mean of y_1 y_2 x_1.x_2 is 0 where each pair has a task of its own, and positive where they share one."""
    batch = drawn("random_pairs", 1.0, size=20_000).batch
    products = np.einsum("b,b,bd,bd->b", batch.y[:, 0], batch.y[:, 1], batch.x[:, 0], batch.x[:, 1])
    assert abs(products.mean()) < 5 * products.std() / np.sqrt(len(products))
    shared = sample_batch(key(0), DATA, 20_000)
    control = np.einsum("b,b,bd,bd->b", shared.y[:, 0], shared.y[:, 1], shared.x[:, 0], shared.x[:, 1])
    assert control.mean() > 5 * control.std() / np.sqrt(len(control))


def test_random_pairs_ignore_sigma_and_carry_the_observation_noise():
    first, second = (drawn("random_pairs", 0.5, sigma=sigma, size=50).batch for sigma in (0.0, 9.0))
    np.testing.assert_array_equal(first.y, second.y)
    noisy = dataclasses.replace(DATA, noise_std=2.0)
    y = np.asarray(drawn("random_pairs", 1.0, data=noisy).batch.y)
    assert y.var() == pytest.approx(10 / 12 + 4, rel=0.05)  # w'x has the variance D/12; 40 000 draws


# expected-values: half the loss of one GD step at the clean step, D = N = 10, sigma = .5
@pytest.mark.parametrize(
    ("mode", "p", "expected"),
    [
        ("label_noise", 0.1, 0.2094),
        ("label_noise", 0.25, 0.2142),
        ("label_noise", 0.5, 0.2222),
        ("random_pairs", 0.1, 0.2301),
        ("random_pairs", 0.25, 0.2696),
        ("random_pairs", 0.5, 0.3449),
    ],
)
def test_gradient_descent_on_corrupted_contexts_has_the_expected_loss(mode, p, expected):
    """Averaged over queries in closed form, v/2 |w_1 - w|^2, which makes the standard error small enough to tell p."""
    batch = drawn(mode, p, size=40_000, seed=3).batch
    distance = np.asarray(gd_weights(batch, one_step_size(DATA)), float) - np.asarray(batch.w)
    losses = 0.5 / 12 * np.sum(distance**2, axis=1)
    assert losses.std() / np.sqrt(len(losses)) < 0.001
    assert abs(losses.mean() - expected) < 4 * losses.std() / np.sqrt(len(losses))
