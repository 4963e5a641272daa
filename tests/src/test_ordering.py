import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.src import config
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import draw_context
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_step import one_step_size
from icl_lab.src.ordering import ORDERINGS, leave_one_out_gd_error
from icl_lab.src.prng import key

DATA = DataConfig(dim=4, num_pairs=7)
SETTINGS = st.builds(
    ContextConfig,
    ordering=st.sampled_from(tuple(config.ORDERINGS)),
    difficulty=st.sampled_from(config.DIFFICULTIES),
    noise_mode=st.sampled_from(tuple(config.NOISE_MODES)),
    noise_p=st.sampled_from([0.0, 0.3, 1.0]),
    noise_sigma=st.sampled_from([0.0, 0.5]),
    noise_placement=st.sampled_from(config.PLACEMENTS),
)


def drawn(settings, seed=0, size=40):
    return draw_context(key(seed), DATA, settings, size)


def gd_error(batch):
    """|y_i - c sum_(j != i) y_j x_j.x_i| by explicit loops, c the closed-form step for N - 1 pairs."""
    step_size = one_step_size(dataclasses.replace(DATA, num_pairs=DATA.num_pairs - 1))
    errors = np.zeros(batch.y.shape)
    for b, (x, y) in enumerate(zip(np.asarray(batch.x, float), np.asarray(batch.y, float), strict=True)):
        for i in range(len(y)):
            others = [j for j in range(len(y)) if j != i]
            errors[b, i] = abs(y[i] - step_size * sum(y[j] * (x[j] @ x[i]) for j in others))
    return errors


def ascending(values, slack=1e-5):
    """Ascending along the context; the slack is float32's against float64's rounding."""
    return (np.diff(values, axis=1) >= -slack).all()


def test_the_registry_is_the_list_of_names():
    assert tuple(ORDERINGS) == tuple(config.ORDERINGS)


@given(SETTINGS)
def test_every_setting_permutes_whole_pairs_and_leaves_the_query(settings):
    """Corrupting alone and permuting by the index gives the context: no pair is torn apart, no query moves."""
    context = drawn(settings)
    unmoved = drawn(dataclasses.replace(settings, ordering="random", noise_placement="mixed"))
    index = np.asarray(context.index)
    assert index.dtype == np.int32
    np.testing.assert_array_equal(np.sort(index, axis=1), np.broadcast_to(np.arange(7), index.shape))
    for name in ("x", "y"):
        before = np.asarray(getattr(unmoved.batch, name))
        expected = np.stack([values[order] for values, order in zip(before, index, strict=True)])
        np.testing.assert_array_equal(getattr(context.batch, name), expected)
    np.testing.assert_array_equal(context.hit, np.take_along_axis(np.asarray(unmoved.hit), index, axis=1))
    clean = sample_batch(key(0), DATA, 40)
    for name in ("x_query", "y_query", "w"):
        np.testing.assert_array_equal(getattr(context.batch, name), getattr(clean, name))


def test_random_is_the_order_drawn():
    context = drawn(ContextConfig())
    np.testing.assert_array_equal(context.index, np.broadcast_to(np.arange(7), (40, 7)))
    np.testing.assert_array_equal(context.batch.x, sample_batch(key(0), DATA, 40).x)


def test_smallnorm2largenorm_sorts_by_norm():
    context = drawn(ContextConfig(ordering="smallnorm2largenorm"))
    assert ascending(np.linalg.norm(context.batch.x, axis=2))


def test_leave_one_out_gd_error_against_loops():
    batch = sample_batch(key(1), DATA, 20)
    np.testing.assert_allclose(leave_one_out_gd_error(batch, DATA), gd_error(batch), atol=1e-5)


def test_leave_one_out_of_a_single_pair_is_its_label():
    data = DataConfig(dim=4, num_pairs=1)
    batch = sample_batch(key(1), data, 20)
    np.testing.assert_array_equal(leave_one_out_gd_error(batch, data), np.abs(batch.y))


def test_easy2hard_and_hard2easy_sort_by_the_error():
    easy = drawn(ContextConfig(ordering="easy2hard"))
    hard = drawn(ContextConfig(ordering="hard2easy"))
    assert ascending(gd_error(easy.batch))
    assert ascending(-gd_error(hard.batch))
    np.testing.assert_array_equal(easy.index, np.asarray(hard.index)[:, ::-1])  # no two errors are equal here


@pytest.mark.parametrize("mode", ["label_noise", "random_pairs"])
def test_residual_puts_untouched_pairs_first_and_sorts_them_by_gd_error(mode):
    settings = ContextConfig("easy2hard", "residual", mode, 0.4, 0.5)
    context = drawn(settings)
    hit = np.asarray(context.hit)
    assert (np.diff(hit.astype(int), axis=1) >= 0).all()
    errors = gd_error(context.batch)
    for row, mask in zip(errors, hit, strict=True):
        assert ascending(row[~mask][None])
    injected = np.abs(np.asarray(context.batch.y) - np.einsum("bnd,bd->bn", context.batch.x, context.batch.w))
    for row, mask in zip(injected, hit, strict=True):
        assert ascending(row[mask][None])


def test_residual_backwards_breaks_ties_backwards_too():
    """hard2easy is the whole order of easy2hard reversed, ties by gd_error included."""
    easy, hard = (
        drawn(ContextConfig(name, "residual", "label_noise", 0.4, 0.5)) for name in ("easy2hard", "hard2easy")
    )
    np.testing.assert_array_equal(easy.index, np.asarray(hard.index)[:, ::-1])
    assert np.asarray(hard.hit)[:, 0].any()


def test_without_a_hit_residual_is_gd_error():
    """p = 0 is a control: all residuals are exactly 0, so ties decide, and they are decided by gd_error."""
    by_residual = drawn(ContextConfig("easy2hard", "residual", "label_noise", 0.0, 0.5))
    by_error = drawn(ContextConfig("easy2hard", "gd_error"))
    np.testing.assert_array_equal(by_residual.index, by_error.index)


def test_sorts_are_stable():
    """Pairs with equal keys keep the order drawn, in both directions."""
    batch = sample_batch(key(2), DATA, 3)
    equal = (jnp.zeros(batch.y.shape),)
    ones = batch._replace(x=jnp.ones_like(batch.x))
    for name in ("easy2hard", "hard2easy", "smallnorm2largenorm"):
        np.testing.assert_array_equal(ORDERINGS[name](ones, equal), np.broadcast_to(np.arange(7), (3, 7)))
