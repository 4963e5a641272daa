"""Behaviour of predictions, on numbers that are worked out by hand and on exact predictors."""

import numpy as np
import pytest

from icl_lab.analysis.development.behaviour import (
    icl_scores,
    of_gain,
    on_sequences,
    position_losses,
    squared_prediction,
    with_gain,
)
from icl_lab.src.batch import Batch

RNG = np.random.default_rng(0)


def sequences(size: int = 6, pairs: int = 5, dim: int = 3) -> tuple[Batch, np.ndarray]:
    """Sequences with noise, and their noiseless labels."""
    x, w = (RNG.standard_normal(shape).astype(np.float32) for shape in ((size, pairs, dim), (size, dim)))
    clean = np.einsum("bkd,bd->bk", x, w)
    y = (clean + 0.3 * RNG.standard_normal(clean.shape)).astype(np.float32)
    return Batch(x, y, x, y, w), clean


def test_losses_by_position_are_means_over_sequences() -> None:
    predictions, targets = np.array([[1.0, 0.0], [3.0, 1.0]]), np.array([[0.0, 0.0], [1.0, 4.0]])
    np.testing.assert_allclose(position_losses(predictions, targets), [(1 + 4) / 2, (0 + 9) / 2])
    assert squared_prediction(predictions) == pytest.approx((1 + 0 + 9 + 1) / 4)


def test_icl_scores_have_both_signs_and_count_positions_from_one() -> None:
    losses = np.array([8.0, 6.0, 5.0, 4.5])
    expected = {"1_k": 3.5, "1_d": 2.0, "d_k": 1.5}
    scores = icl_scores(losses, dim=2)
    assert scores == {
        f"icl_{name}_{which}": sign * value
        for name, value in expected.items()
        for which, sign in (("text", 1), ("figure", -1))
    }
    assert scores["icl_1_d_text"] + scores["icl_d_k_text"] == scores["icl_1_k_text"]


@pytest.mark.parametrize("dim", [1, 4, 7])
def test_without_a_position_between_there_is_one_score(dim: int) -> None:
    assert set(icl_scores(np.ones(4), dim)) == {"icl_1_k_text", "icl_1_k_figure"}


def test_a_gain_scales_inputs_and_keeps_the_noise() -> None:
    batch, clean = sequences()
    larger = with_gain(batch, 5)
    np.testing.assert_allclose(larger.x, 5 * batch.x, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(larger.y) - 5 * clean, batch.y - clean, atol=1e-5)
    np.testing.assert_array_equal(larger.x_query, larger.x)
    np.testing.assert_array_equal(larger.y_query, larger.y)


def test_the_score_of_a_gain_is_over_the_gain() -> None:
    labels = np.array([[3.0, 0.0, 1.0]])
    values = of_gain(np.zeros((1, 3)), labels, 4)
    assert values == {"mse_noisy": 10 / 3, "icl_over_g_text": 2.0, "icl_over_g_figure": -2.0}


def test_predictions_are_measured_on_noisy_and_noiseless_labels() -> None:
    batch, clean = sequences()
    ridge = clean + 0.5
    values = on_sequences(clean, batch.y, clean, {"ridge": ridge}, dim=3)
    noise = np.mean((batch.y - clean) ** 2, axis=0)
    assert values["mse_noiseless"] == 0
    assert [values[f"mse_noisy_{k}"] for k in range(1, 6)] == pytest.approx(noise)
    assert values["mse_noisy"] == pytest.approx(noise.mean())
    assert values["icl_1_d_text"] == pytest.approx(noise[0] - noise[2])
    assert values["delta_ridge"] == pytest.approx(0.25 / 3)
    assert values["squared_prediction"] == pytest.approx(np.mean(clean**2))
