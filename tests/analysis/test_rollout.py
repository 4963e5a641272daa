"""Roll-outs of one layer against explicit gradient descent and against NumPy."""

import jax
import numpy as np
import pytest

from icl_lab.analysis.weights import gd_products, params_of_products, rollout
from icl_lab.baselines.gradient_descent import gd
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig, QueriesData
from icl_lab.src.layerwise import make_model, roll_out
from icl_lab.src.one_step import one_step_size

DATA = DataConfig(dim=5, num_pairs=7)
BATCH = sample_batch(jax.random.key(0), DATA, 200)


@pytest.mark.parametrize("damping", [1.0, 0.75])
def test_the_construction_rolled_out_is_damped_gradient_descent(damping: float) -> None:
    c = one_step_size(DATA)
    found = rollout(*gd_products(DATA.dim, c), BATCH, 12, damping).predictions
    for steps in (1, 2, 12):
        np.testing.assert_allclose(found[steps - 1], gd(BATCH, damping * c, steps), atol=1e-5)


def test_any_products_against_numpy() -> None:
    rng = np.random.default_rng(0)
    kq, pv = (rng.normal(0, 0.3, (6, 6)).astype(np.float32) for _ in range(2))
    rows = np.concatenate([np.asarray(BATCH.x), np.asarray(BATCH.y)[:, :, None]], axis=2).astype(float)
    query = np.concatenate([np.asarray(BATCH.x_query), np.zeros((200, 1))], axis=1).astype(float)
    rows = np.concatenate([rows, query[:, None]], axis=1)
    for prediction in np.asarray(rollout(kq, pv, BATCH, 3, 0.5).predictions):
        update = np.einsum("bjw,wv,biv->bij", rows[:, :-1], kq, rows) @ (rows[:, :-1] @ pv[-1])[:, :, None]
        rows[:, :, -1] += 0.5 * update[:, :, 0]
        np.testing.assert_allclose(prediction, -rows[:, -1, -1], rtol=1e-4, atol=1e-4)


def test_products_and_the_depth_curves_layer_roll_out_alike() -> None:
    """Two orders of the same sums: equal to float32's rounding, and not to the bit."""
    rng = np.random.default_rng(1)
    kq, pv = (rng.normal(0, 0.3, (6, 6)).astype(np.float32) for _ in range(2))
    config = LayerwiseConfig(data=QueriesData(DATA.dim, DATA.num_pairs))
    params = params_of_products(config, kq[None, None], pv[None, None])
    batch = BATCH._replace(x_query=BATCH.x_query[:, None], y_query=BATCH.y_query[:, None])
    of_layer = roll_out(make_model(config.architecture), params, batch, 4, 0.5)[:, :, 0]
    np.testing.assert_allclose(rollout(kq, pv, BATCH, 4, 0.5).predictions, of_layer, rtol=1e-4, atol=1e-4)


def test_the_share_of_tasks_on_which_undamped_gradient_descent_diverges_is_the_derived_one() -> None:
    """.034 of the paper's tasks, as in NumPy the share with c lambda_max > 2; to three standard errors and a digit."""
    data, tasks = DataConfig(), 10_000
    batch = sample_batch(jax.random.key(0), data, tasks)
    share = float(np.mean(rollout(*gd_products(data.dim, one_step_size(data)), batch, 50).unstable))
    assert share == pytest.approx(0.034, abs=3 * np.sqrt(0.034 * 0.966 / tasks) + 5e-4)


def test_unstable_tasks_are_those_whose_largest_eigenvalue_is_too_large() -> None:
    """Gradient descent diverges where c lambda_max > 2; close to that it takes more steps to show."""
    c = 1.5
    largest = np.linalg.eigvalsh(np.einsum("bnd,bne->bde", *[np.asarray(BATCH.x, float)] * 2))[:, -1]
    found = np.asarray(rollout(*gd_products(DATA.dim, c), BATCH, 200).unstable)
    clear = np.abs(c * largest - 2) > 0.1
    np.testing.assert_array_equal(found[clear], c * largest[clear] > 2)
    assert 0 < found.mean() < 1
