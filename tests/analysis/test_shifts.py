"""Headline tasks under another law, against closed forms of one step of gradient descent."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.analysis.shifts import (
    SHIFTS,
    losses_on,
    model_on,
    replaced_labels,
    rows_on,
    shifted,
    shifted_batches,
    shifted_losses,
)
from icl_lab.baselines import preconditioned
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import gd
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, evaluation_context, make_model, make_test_batches
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig, ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_step import one_step_loss, one_step_size

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

    .206, .257, .316, .384 and .460 at the tuned step, from an independent derivation.
    """
    known = {0: 0.206, 2: 0.257, 4: 0.316, 6: 0.384, 8: 0.460}
    found = replaced_labels(CONFIG, {"tuned": partial(gd, step_size=STEP), "half": partial(gd, step_size=STEP / 2)})
    assert [*found] == [0, 2, 4, 6, 8]
    for count, errors in found.items():
        for name, c in (("tuned", STEP), ("half", STEP / 2)):
            expected = one_step_loss(DataConfig(num_pairs=10 - count), c) + c**2 * count * 10 / 12 / 24
            assert errors[name].mean() == pytest.approx(expected, abs=4 * errors[name].std() / np.sqrt(20_000))
            assert name != "tuned" or expected == pytest.approx(known[count], abs=5e-4)


def test_no_more_labels_are_replaced_than_there_are() -> None:
    small = RegressionConfig(data=DataConfig(dim=3, num_pairs=5), test_tasks=100)
    assert [*replaced_labels(small, {"gd": partial(gd, step_size=0.5)})] == [0, 2, 4]


# --- any fields of the data ---

ANISOTROPIC = RegressionConfig(
    data=DataConfig(4, 8, "gaussian", spectrum="power_law", noise_std=0.3), test_tasks=20_000, step_size_tasks=4096
)


def constructed(config: RegressionConfig, step: float) -> ComparedRun:
    """A layer that takes a gradient step of this size, which is also what it is compared with."""
    gd = GradientDescent(1, step, "given")
    batch = evaluation_context(config).batch
    return ComparedRun(Path(), config, make_model(config), gd_params(config.architecture, step), batch, gd)


def test_a_layer_on_other_lengths_takes_the_mean_over_the_pairs() -> None:
    loaded = constructed(ANISOTROPIC, 0.1)
    for pairs in (3, 8, 40):
        losses = losses_on(loaded, shifted(ANISOTROPIC.data, f"num_pairs={pairs}"))
        np.testing.assert_allclose(losses["tf"], losses["gd"], rtol=2e-3, atol=1e-5)


def test_losses_of_the_trained_steps_are_the_closed_forms() -> None:
    """Within four standard errors of 20 000 tasks."""
    loaded = constructed(ANISOTROPIC, 0.1)
    for text in ("num_pairs=3", "spectrum=given,eigenvalues=0.25:0.33:0.5:1", "task_mean=2", "noise_std=1"):
        rows = {row["predictor"]: row for row in rows_on(loaded, text, shifted(ANISOTROPIC.data, text))}
        row = rows["preconditioned_gd"]
        assert row["loss"] == pytest.approx(row["closed_form"], abs=4 * row["loss_se"])
        gd = preconditioned.loss(np.full(4, 0.8), shifted(ANISOTROPIC.data, text))  # .1 times eight pairs
        noise = 0.5 * shifted(ANISOTROPIC.data, text).noise_std ** 2
        assert rows["gd"]["loss"] == pytest.approx(gd + noise, abs=4 * rows["gd"]["loss_se"])


def test_where_there_is_no_closed_form_the_row_says_why() -> None:
    (row,) = [
        row
        for row in rows_on(constructed(ANISOTROPIC, 0.1), "", shifted(ANISOTROPIC.data, "axes=rotated"))
        if row["predictor"] == "preconditioned_gd"
    ]
    assert row["closed_form"] is None
    assert "share their axes" in row["reason"]


def test_recurrent_layers_at_another_depth_are_as_many_steps() -> None:
    config = RegressionConfig(model=ModelConfig(num_layers=2, recurrent=True), test_tasks=64, step_size_tasks=64)
    loaded = ComparedRun(
        Path(),
        config,
        make_model(config),
        gd_params(config.architecture, 0.2),
        evaluation_context(config).batch,
        GradientDescent(2, 0.2, "given"),
    )
    batch = make_test_batches(config, [config.data])[0]
    for layers in (1, 2, 5):
        found = model_on(loaded, 10, layers)(batch)
        np.testing.assert_allclose(found, gd(batch, 0.2, layers), atol=1e-4)


@pytest.mark.parametrize(
    ("model", "pairs", "layers", "words"),
    [
        (ModelConfig(attention=("softmax",)), 5, None, "linear layers"),
        (ModelConfig(pos_enc_size=4), 5, None, "linear layers"),
        (ModelConfig(num_layers=2), 10, 3, "have weights of their own"),
    ],
)
def test_what_has_no_other_length_or_depth_says_so(
    model: ModelConfig, pairs: int, layers: int | None, words: str
) -> None:
    config = RegressionConfig(model=model)
    loaded = ComparedRun(Path(), config, make_model(config), {}, None, GradientDescent(1, 0.1, "given"))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=words):
        model_on(loaded, pairs, layers)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("num_pair=3", "did you mean num_pairs"),
        ("num_pairs", "is not FIELD=VALUE"),
        ("num_pairs=0", "at least 1"),
        ("dim=3", "no shift changes it"),
        ("spectrum=flat", "spectrum is 'flat'"),
        ("eigenvalues=1:1:1:1", "takes 0"),
        ("spectrum=given,eigenvalues=1:1:1:-1", "a covariance is positive"),
        ("task_distribution=none", "task_distribution is 'none'"),
    ],
)
def test_a_shift_that_names_no_distribution_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        shifted(ANISOTROPIC.data, text)


def test_corrupted_pairs_are_not_drawn_from_another_distribution_than_the_shifts() -> None:
    """random_pairs draws isotropic inputs: no number, rather than one of two distributions in one context."""
    context = ContextConfig(noise_mode="random_pairs", noise_p=0.2)
    loaded = constructed(RegressionConfig(eval=context, train=context, test_tasks=64), 0.1)
    with pytest.raises(ConfigError, match="random_pairs needs linear labels"):
        losses_on(loaded, shifted(loaded.config.data, "spectrum=power_law"))
    assert "preconditioned_gd" not in losses_on(loaded, loaded.config.data)
