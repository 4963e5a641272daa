"""One step with a step size for each position: identities in float64, a simulation in NumPy, and a published table.

The simulation draws, sorts and averages by itself: it shares no line with the library. The table is of D = N = 10,
x ~ U(-1/2, 1/2), w ~ N(0, I), clean: step sizes to two digits and losses over those of one tuned step in the same
order, each from one fit. On 65 536 tasks with sampled queries standard errors are up to .015 of a step size, .002 of a
ratio in the same order and .005 in random order.
"""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.baselines.gradient_descent import fit_step_size, gd
from icl_lab.baselines.position_weighted import (
    Moments,
    best_step_sizes,
    expected_loss,
    features,
    fit_step_sizes,
    moments,
    position_weighted_gd,
    query_averaged_moments,
    regress,
)
from icl_lab.src import prng
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import draw_contexts
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_step import one_step_loss, one_step_size
from tests import reference

SIGMAS = 4.0
DATA = DataConfig()
CHUNKS, TASKS = 8, 16_000
TABLE = {
    "easy2hard": ((0.12, 0.18, 0.25, 0.38, 0.47, 0.56, 0.68, 0.77, 0.86, 0.91), 0.910, 1.115),
    "hard2easy": ((0.91, 0.86, 0.77, 0.68, 0.56, 0.47, 0.38, 0.25, 0.18, 0.12), 0.910, 1.12),
    "smallnorm2largenorm": ((1.01, 0.84, 0.81, 0.68, 0.65, 0.63, 0.62, 0.51, 0.47, 0.43), 0.974, 1.045),
}


@lru_cache
def sets(context: ContextConfig) -> Moments:
    """Moments [CHUNKS, ...] of sets of tasks, the same tasks for all contexts."""
    found = [query_averaged_moments(drawn(context, chunk, TASKS), np.eye(10) / 12) for chunk in range(CHUNKS)]
    return Moments(*(np.stack(parts) for parts in zip(*found, strict=True)))


def drawn(context: ContextConfig, chunk: int, tasks: int) -> Batch:
    return draw_contexts(jax.random.fold_in(prng.key(31), chunk), [DATA], context, tasks)[0].batch


def in_order(ordering: str) -> Moments:
    return sets(ContextConfig(ordering))


def whole(found: Moments) -> Moments:
    return Moments(*(part.mean(axis=0) for part in found))


def standard_error(values: np.ndarray) -> np.ndarray:
    """Of the mean over sets of tasks."""
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def ratio(fitted: Moments, tested: Moments) -> np.ndarray:
    """Loss of the step sizes fitted on one set, over that of one step size fitted and tested on the other."""
    flat = tested.flat
    return expected_loss(tested, fit_step_sizes(fitted)) / expected_loss(flat, fit_step_sizes(flat))


# Identities.


def test_equal_step_sizes_are_one_step_of_gradient_descent() -> None:
    batch = reference.random_batch(0)
    with jax.enable_x64(True):
        found = position_weighted_gd(batch, np.full(6, 0.37))
        np.testing.assert_allclose(found, gd(batch, 0.37), rtol=1e-12)
    np.testing.assert_allclose(found, reference.gd(batch, 0.37, 1), rtol=1e-12)


def test_each_position_has_its_own_step_size() -> None:
    """With the step size 1 at position k and 0 elsewhere, one step from the pair at k alone."""
    batch = reference.random_batch(1)
    with jax.enable_x64(True):
        for k, unit in enumerate(np.eye(6)):
            alone = batch._replace(x=batch.x[:, k : k + 1], y=batch.y[:, k : k + 1])
            np.testing.assert_allclose(position_weighted_gd(batch, unit), reference.gd(alone, 1.0, 1), rtol=1e-12)


def test_the_fit_is_least_squares() -> None:
    """NumPy's least squares of y_query on features written out pair by pair, and its R^2 and loss."""
    batch = reference.random_batch(2, size=40)
    f = np.array([[y * (x @ q) for x, y in zip(*pairs, strict=True)] for *pairs, q in zip(*batch[:3], strict=True)])
    with jax.enable_x64(True):
        found, own = regress(batch, batch.y_query), moments(batch)
    expected, residuals, *_ = np.linalg.lstsq(f, batch.y_query, rcond=None)
    np.testing.assert_allclose(found.step_sizes, expected, rtol=1e-10)
    np.testing.assert_allclose(fit_step_sizes(own), expected, rtol=1e-10)
    assert found.r2 == pytest.approx(1 - residuals[0] / np.sum(batch.y_query**2), rel=1e-10)
    assert expected_loss(own, expected) == pytest.approx(residuals[0] / 80, rel=1e-10)


def test_the_loss_is_that_of_the_predictions() -> None:
    batch, step_sizes = reference.random_batch(3), np.linspace(-1, 2, 6)
    with jax.enable_x64(True):
        error = np.asarray(position_weighted_gd(batch, step_sizes)) - batch.y_query
        assert expected_loss(moments(batch), step_sizes) == pytest.approx(0.5 * np.mean(error**2), rel=1e-10)


def test_where_every_pair_stands_everywhere_the_fit_is_one_tuned_step() -> None:
    """Each context in all its cyclic orders: positions are exchangeable to the bit of the sample."""
    batch = reference.random_batch(4, size=50)
    turned = [batch._replace(x=np.roll(batch.x, k, 1), y=np.roll(batch.y, k, 1)) for k in range(6)]
    every = Batch(*(np.concatenate(parts) for parts in zip(*turned, strict=True)))
    with jax.enable_x64(True):
        np.testing.assert_allclose(fit_step_sizes(moments(every)), fit_step_size(batch), rtol=1e-10)
        flat = moments(batch).flat
        np.testing.assert_allclose(fit_step_sizes(flat), fit_step_size(batch), rtol=1e-10)


def test_a_reversed_context_has_reversed_step_sizes() -> None:
    batch = reference.random_batch(5, size=50)
    mirrored = batch._replace(x=batch.x[:, ::-1], y=batch.y[:, ::-1])
    with jax.enable_x64(True):
        np.testing.assert_allclose(fit_step_sizes(moments(mirrored)), fit_step_sizes(moments(batch))[::-1], rtol=1e-9)


def test_averaging_over_queries_is_the_mean_over_all_queries() -> None:
    """Of the batch: each context is asked every task's query, labelled by its own teacher."""
    batch = reference.random_batch(6)
    asked = []
    for query in batch.x_query:
        x_query = np.broadcast_to(query, (5, 4))
        asked.append(batch._replace(x_query=x_query, y_query=np.einsum("bd,bd->b", x_query, batch.w)))
    with jax.enable_x64(True):
        found, each = query_averaged_moments(batch, noise_std=0.3), [moments(part) for part in asked]
        given = query_averaged_moments(batch, batch.x_query.T @ batch.x_query / 5, noise_std=0.3)
    for name, noise in (("gram", 0), ("cross", 0), ("square", 0.09)):
        expected = np.mean([getattr(part, name) for part in each], axis=0) + noise
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-10, err_msg=name)
        np.testing.assert_allclose(getattr(given, name), expected, rtol=1e-10, err_msg=name)


def test_the_best_step_sizes_are_those_of_the_averaged_moments_with_the_spread_of_their_fits() -> None:
    """300 fits know their spread within 1/24. Inputs x ~ N(0, M), M no multiple of I, have a closed form, met by all.

    With S = sum x x^T of two pairs, c = E[tr S M] / E[tr S^2 M]: 2 tr M^2 over 2 (2 tr M^3 + tr M tr M^2) + 2 tr M^3.
    """
    rng, fits, found = np.random.default_rng(1), [], []
    scales = np.array([2.0, 1.0, 0.5])
    for _ in range(300):
        w, x, x_query = (
            rng.normal(size=(400, 3)),
            rng.normal(size=(400, 2, 3)) * scales,
            rng.normal(size=(400, 3)) * scales,
        )
        batch = Batch(x, np.einsum("bnd,bd->bn", x, w), x_query, np.einsum("bd,bd->b", x_query, w), w)
        with jax.enable_x64(True):
            fits.append(best_step_sizes(batch))
            found.append(query_averaged_moments(batch))
    np.testing.assert_allclose([fit.step_sizes for fit in fits], [fit_step_sizes(part) for part in found], rtol=1e-10)
    spread = np.std([fit.step_sizes for fit in fits], axis=0)
    np.testing.assert_allclose(np.mean([fit.standard_errors for fit in fits], axis=0), spread, rtol=0.25)
    trace, of_square, of_cube = (np.sum(scales ** (2 * power)) for power in (1, 2, 3))
    expected = 2 * of_square / (2 * (2 * of_cube + trace * of_square) + 2 * of_cube)
    every = Moments(*(np.mean(parts, axis=0) for parts in zip(*found, strict=True)))
    np.testing.assert_allclose(fit_step_sizes(every), expected, atol=SIGMAS * spread.max() / np.sqrt(300))


def test_standard_errors_are_those_of_tasks_drawn_anew() -> None:
    """The spread of 400 fits on other tasks, whose residuals are larger where f is: 400 samples know it within 1/28."""
    rng, fits = np.random.default_rng(0), []
    for _ in range(400):
        batch = reference.random_batch(rng.integers(2**32), size=300, pairs=2)
        f = np.einsum("bn,bnd,bd->bn", batch.y, batch.x, batch.x_query)
        with jax.enable_x64(True):
            fits.append(regress(batch, f @ [1.0, -0.5] + f[:, 0] * rng.normal(size=300)))
    spread = np.std([fit.step_sizes for fit in fits], axis=0)
    np.testing.assert_allclose(np.mean([fit.standard_errors for fit in fits], axis=0), spread, rtol=0.2)


def test_of_too_few_tasks_it_is_the_least_norm_solution() -> None:
    batch = reference.random_batch(7, size=3)
    with jax.enable_x64(True):
        f = np.asarray(features(Batch(*map(jnp.asarray, batch))))
        found = fit_step_sizes(moments(batch))
    np.testing.assert_allclose(found, np.linalg.pinv(f) @ batch.y_query, rtol=1e-6)


def test_labels_that_are_not_finite_are_one_sentence() -> None:
    batch = reference.random_batch(8)
    batch.y[0, 0] = np.inf
    with (
        pytest.raises(ConfigError, match="step sizes are fitted to labels that are not finite"),
        np.errstate(all="ignore"),
    ):
        fit_step_sizes(moments(batch))


# What orders do.


def test_in_random_order_all_step_sizes_are_the_closed_form_one() -> None:
    """c* = 8.333/13.75, and the loss is one step's in closed form; both within 4 standard errors."""
    found = in_order("random")
    step_sizes = fit_step_sizes(found)
    surprise = fit_step_sizes(whole(found)) - one_step_size(DATA)
    assert (np.abs(surprise) < SIGMAS * standard_error(step_sizes)).all()
    assert (standard_error(step_sizes) < 0.004).all()
    losses = expected_loss(found, np.full(10, one_step_size(DATA)))
    assert abs(losses.mean() - one_step_loss(DATA, one_step_size(DATA))) < SIGMAS * standard_error(losses)


def test_the_opposite_order_has_the_reversed_step_sizes() -> None:
    """The same tasks sorted the other way, no two alike: float32 sums in another order."""
    easy, hard = (fit_step_sizes(whole(in_order(name))) for name in ("easy2hard", "hard2easy"))
    np.testing.assert_allclose(hard, easy[::-1], rtol=1e-4)


@pytest.mark.parametrize("ordering", TABLE)
def test_the_table_is_met(ordering: str) -> None:
    """Within 4 standard errors of the table's fits; those of the sets here are a tenth of them."""
    step_sizes, same, elsewhere = TABLE[ordering]
    found, random = whole(in_order(ordering)), whole(in_order("random"))
    np.testing.assert_allclose(fit_step_sizes(found), step_sizes, atol=SIGMAS * 0.015)
    assert ratio(found, found) == pytest.approx(same, abs=SIGMAS * 0.002)
    assert ratio(found, random) == pytest.approx(elsewhere, abs=SIGMAS * 0.005)


def simulated(tasks: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Gram and cross moments, over v, of contexts sorted by their leave-one-out error, in NumPy alone."""
    rng = np.random.default_rng(seed)
    w, x = rng.normal(size=(tasks, 10)), rng.uniform(-0.5, 0.5, size=(tasks, 10, 10))
    y = np.einsum("bnd,bd->bn", x, w)
    trace, trace_of_square = 9 * 10 / 12, 9 * 8 * 10 / 144 + 9 * (10 / 80 + 90 / 144)  # of nine pairs
    others = np.einsum("bmn,bn->bm", (x @ x.transpose(0, 2, 1)) * (1 - np.eye(10)), y)
    order = np.argsort(np.abs(y - trace / trace_of_square * others), axis=1)
    moved = np.take_along_axis(x * y[:, :, None], order[:, :, None], axis=1)
    return np.einsum("bkd,bld->kl", moved, moved) / tasks, np.einsum("bkd,bd->k", moved, w) / tasks


def test_easy_first_is_what_a_simulation_in_numpy_says() -> None:
    """Step sizes and the gain over one step size, within 4 standard errors of both samples."""
    theirs = [simulated(8000, seed) for seed in range(6)]
    gram, cross = (np.mean(parts, axis=0) for parts in zip(*theirs, strict=True))
    expected = np.linalg.solve(gram, cross)
    spread = np.std([np.linalg.solve(*part) for part in theirs], axis=0, ddof=1) / np.sqrt(6)
    found = in_order("easy2hard")
    error = np.hypot(spread, standard_error(fit_step_sizes(found)))
    assert (error < 0.01).all()
    np.testing.assert_array_less(np.abs(fit_step_sizes(whole(found)) - expected), SIGMAS * 1.5 * error)
    gain, expected_gain = 1 - ratio(whole(found), whole(found)), expected @ cross - cross.sum() ** 2 / gram.sum()
    loss = 0.5 / 12 * (10 - cross.sum() ** 2 / gram.sum())
    assert gain == pytest.approx(0.5 / 12 * expected_gain / loss, abs=0.004)


@pytest.mark.parametrize("mode", ["label_noise", "random_pairs"])
def test_clean_positions_get_larger_steps_where_corrupted_pairs_stand_at_one_end(mode: str) -> None:
    """With the clean pairs first, the first is hit only if all are, the last in all but .75^10 of the contexts."""
    first, last = (
        fit_step_sizes(whole(sets(ContextConfig("random", "gd_error", mode, 0.25, 0.5, place))))
        for place in ("clean_first", "noisy_first")
    )
    assert first[0] > first[-1] + 0.05
    assert last[-1] > last[0] + 0.05
