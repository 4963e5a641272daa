"""Headline tasks under another law, against closed forms of one step of gradient descent."""

from functools import partial

import numpy as np
import pytest

from analysis.measures.shifts import SHIFTS, replaced_labels, shifted_batches, shifted_losses
from baselines.gradient_descent import gd, one_step_loss, one_step_size
from configs.regression import RegressionConfig
from src.config import DataConfig

CONFIG = RegressionConfig(test_tasks=20_000)
STEP = one_step_size(CONFIG.data)


@pytest.mark.parametrize(("shift", "values"), [("input_range", (0.5, 1.0, 1.5)), ("weight_scale", (0.5, 2.0))])
def test_losses_are_the_closed_forms(shift: str, values: tuple[float, ...]) -> None:
    """Within four standard errors of 20 000 tasks."""
    found = shifted_losses(CONFIG, {"gd": partial(gd, step_size=STEP)}, shift, values)["gd"]
    for value, losses in zip(values, found, strict=True):
        expected = one_step_loss(SHIFTS[shift](DataConfig(), value), STEP)
        assert losses.mean() == pytest.approx(expected, abs=4 * losses.std() / np.sqrt(losses.size))


def test_distractors_raise_the_loss_as_they_should() -> None:
    """.206, .316 and .460 for 0, 4 and 8 of ten labels; within four standard errors."""
    found = shifted_losses(CONFIG, {"gd": partial(gd, step_size=STEP)}, "distractors", (0, 4, 8))["gd"]
    for losses, expected in zip(found, (0.206, 0.316, 0.460), strict=True):
        assert losses.mean() == pytest.approx(expected, abs=4 * losses.std() / np.sqrt(losses.size) + 5e-4)


def test_shifts_change_one_thing_of_the_same_tasks() -> None:
    near, far = shifted_batches(CONFIG, "input_range", (1.0, 2.0))
    np.testing.assert_array_equal(2 * near.x, far.x)
    np.testing.assert_array_equal(near.w, far.w)
    one, two = shifted_batches(CONFIG, "other_inputs", (1.0, 2.0))
    np.testing.assert_allclose(np.linalg.norm(np.asarray(one.x), axis=(1, 2)), 1, rtol=1e-5)
    np.testing.assert_allclose(two.x, 2 * one.x, rtol=1e-6)


def test_replaced_labels_are_the_closed_form_of_each_predictor() -> None:
    """One step sees N - m clean pairs, and m labels of variance 1 that add c^2 m D v; within four standard errors.

    .206, .257, .316, .384 and .460 at the tuned step.
    """
    found = replaced_labels(CONFIG, {"tuned": partial(gd, step_size=STEP), "half": partial(gd, step_size=STEP / 2)})
    assert [*found] == [0, 2, 4, 6, 8]
    for count, errors in found.items():
        for name, c in (("tuned", STEP), ("half", STEP / 2)):
            expected = one_step_loss(DataConfig(num_pairs=10 - count), c) + c**2 * count * 10 / 12 / 24
            assert errors[name].mean() == pytest.approx(expected, abs=4 * errors[name].std() / np.sqrt(20_000))


def test_no_more_labels_are_replaced_than_there_are() -> None:
    small = RegressionConfig(data=DataConfig(dim=3, num_pairs=5), test_tasks=100)
    assert [*replaced_labels(small, {"gd": partial(gd, step_size=0.5)})] == [0, 2, 4]
