"""Who has trained: thresholds, values that are not finite, and what a predictor of the mean sine reaches."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.layerwise import verdict
from icl_lab.analysis.trained import in_words, of_run, with_verdict
from icl_lab.baselines import preconditioned
from icl_lab.baselines.gradient_descent import fit_step_size
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.outputs import IN_CONTEXT
from icl_lab.families.diversity.task import EvalSet, measured, pool_of, pool_sequences, references
from icl_lab.families.layerwise.config import UNTRAINED, LayerwiseConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import position_steps_batch
from icl_lab.families.sine.outputs import SINE_LEFT
from icl_lab.lab.configs.columns import has_trained
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.registry import outputs_of
from icl_lab.lab.registries import FAMILIES
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig
from icl_lab.src.data_config import DataConfig, SineData
from icl_lab.src.one_step import one_step_loss, one_step_size
from icl_lab.store import layout, rundir


def layerwise(rolled_out: bool, *losses: float, zero: float = 20.0) -> dict[str, Any]:
    references = {"zero": {"mse": [zero]}}
    return {"layerwise": {"rolled_out": rolled_out, "trimmed_mean": list(losses), "references": references}}


NEXT_TO_NOTHING = "one step of gradient descent does not lower the loss of predicting zero by 1 %"
STEP = {"loss": 0.2, "zero_loss": 0.4, "align_cos": 1.0}


def regression(cosine: float | None, loss: float | None = 0.21, step: dict[str, float | None] = STEP) -> dict[str, Any]:
    """A summary of a run with this cosine with gradient descent and this loss."""
    return {"alignment": {"align_cos": cosine}, "headline": {"tf_loss": loss}, "one_step": step}


def verdict_of(config: Any, summary: dict[str, Any]) -> dict[str, Any]:
    verdict: dict[str, Any] = with_verdict(config, summary)["trained"]
    return verdict


def diversity(*errors: float | None) -> dict[str, Any]:
    """Of an infinite pool: the loss of predicting zero is 2, and ridge gains .5."""
    return {"eval_id_errors": list(errors), "headline": {"id_tf_loss": 1, "id_zero_loss": 2.0, "id_ridge_loss": 1.5}}


@pytest.mark.parametrize(
    ("family", "summary", "value", "met"),
    [
        ("regression", regression(0.6), 0.6, True),
        ("regression", regression(0.37), 0.37, False),
        ("regression", regression(None), None, False),
        ("regression", regression(math.nan), None, False),
        ("layerwise", layerwise(False, 30.0, 18.0), 0.9, True),
        ("layerwise", layerwise(False, 10.0, 18.1), 0.905, False),
        ("layerwise", layerwise(True, 10.0, 1e9), 0.5, True),  # a trained layer, whose roll-out diverges
        ("sine", {"headline": {"loss": 0.01, "zero_loss": 0.02}}, 0.5, True),
        ("sine", {"headline": {"loss": 0.0134, "zero_loss": 0.02}}, 0.67, False),
        ("diversity", diversity(2.0, 1.5), 0.5, True),
        ("diversity", diversity(3.0, 0.5), 0.5, True),  # from predicting zero, if the first prediction is worse
        ("diversity", diversity(2.0, 1.52), 0.48, False),
        ("diversity", diversity(None, 1.0), None, False),
    ],
)
def test_the_threshold_itself_is_reached(family: str, summary: dict[str, Any], value: float, met: bool) -> None:
    config = FAMILIES[family].config()
    found = verdict_of(config, summary)
    first = found["conditions"][0]
    assert found["met"] is met
    assert first["value"] == (None if value is None else pytest.approx(value))
    assert len({"at_least", "at_most"} & {*first}) == 1
    assert in_words(config, summary).startswith("trained: " if met else "NOT trained: ")


def test_every_family_has_a_criterion() -> None:
    assert all(outputs_of(family).criteria for family in FAMILIES.values())


def test_the_line_of_a_summary() -> None:
    words = in_words(RegressionConfig(), regression(0.9993, 0.201))
    assert words == (
        "trained: cosine of sensitivities 0.9993 (at least 0.6), fraction of one GD step's loss reduction 0.9950 "
        "(at least 0.9)"
    )
    words = in_words(RegressionConfig(), regression(0.37, None))
    assert words == (
        "NOT trained: cosine of sensitivities 0.3700 (at least 0.6), fraction of one GD step's loss reduction not "
        "finite (at least 0.9); train longer (--steps) or take another --seed"
    )


def test_a_stack_is_judged_as_its_verdict_is() -> None:
    for last in (17.9, 18.1):
        losses = np.array([30.0, last])
        found = verdict_of(LayerwiseConfig(), layerwise(False, *losses))["met"]
        assert found is (verdict(False, losses, losses, 20.0) != "did not train")
    assert UNTRAINED == 0.9


def test_a_predictor_that_knows_the_mean_sine_alone_is_on_the_plateau() -> None:
    """E[(y - E y)^2 | x] over E y^2 by quadrature, at the amplitudes, phases and inputs of the preset: .67."""
    low, high = SineData().amplitude_low, SineData().amplitude_high
    points, weights = np.polynomial.legendre.leggauss(40)

    def average(values: np.ndarray) -> np.ndarray:
        """Over the last axis, uniform between its ends."""
        return values @ weights / 2

    a, phi, x = ((end - start) / 2 * points + (end + start) / 2 for start, end in ((low, high), (0, np.pi), (-5, 5)))
    y = a[None, :, None] * np.sin(x[:, None, None] + phi[None, None, :])
    mean, square = (average(average(values)) for values in (y, y**2))
    share = average(square - mean**2) / average(square)
    assert share == pytest.approx(0.67, abs=0.005)
    assert share > SINE_LEFT


def test_a_finished_runs_summary_has_it_and_it_follows_from_the_rest(lsa1_run: Path, sine_run: Path) -> None:
    """So it is known of runs whose summary does not have it."""
    for run in (lsa1_run, sine_run):
        summary = json.loads((run / layout.SUMMARY).read_text())
        kept = summary.pop("trained")
        one_step = summary.pop("one_step", None)
        again = with_verdict(rundir.read_config(run), summary)
        assert again.get("one_step") == (one_step and pytest.approx(one_step))  # by another number of threads
        assert again["trained"]["met"] is kept["met"] is of_run(run) is False  # of 100 steps


def pool_run(
    num_tasks: float, seed: int = 0, **values: object
) -> tuple[DiversityConfig, dict[str, Any], dict[str, np.ndarray]]:
    """A run's config, its summary but for the model, and predictions [B, K]: exact, of zero, of the pool's mean."""
    chosen = preset("tiny")
    set_values(chosen, {"eval_tasks": 2048, "num_tasks": num_tasks, "data_seed": seed, **values})
    config = resolve(chosen)
    batch = pool_sequences(config)
    eval_set = EvalSet(batch, np.einsum("bkd,bd->bk", batch.x, batch.w), *references(config, batch))
    predictions = {**eval_set.references, "zero": np.zeros_like(eval_set.targets)}
    losses = {
        f"id_{name}_loss": measured(values, eval_set, config.data.dim)["loss"] for name, values in predictions.items()
    }
    if num_tasks < math.inf:
        mean = np.mean(np.asarray(pool_of(config), np.float64), axis=0)
        predictions["mean task"] = np.einsum("bkd,d->bk", batch.x, mean)
    return config, {"eval_set": eval_set, "headline": losses}, predictions


def judged(config: DiversityConfig, summary: dict[str, Any], predictions: np.ndarray) -> dict[str, Any]:
    found = measured(predictions, summary["eval_set"], config.data.dim)
    headline = summary["headline"] | {"id_tf_loss": found["loss"]}
    return verdict_of(config, {"headline": headline, "eval_id_errors": found["errors"]})


@pytest.mark.parametrize("num_tasks", [2, 4, 8, 16, 64, math.inf])
def test_what_ignores_the_context_is_on_the_plateau_and_exact_inference_is_not(num_tasks: float) -> None:
    """The mean task of the pool has .4 to 1 of the loss of predicting zero, and gains nothing from the context."""
    config, summary, predictions = pool_run(num_tasks)
    verdicts = {name: judged(config, summary, values) for name, values in predictions.items()}
    without = {"zero", "mean task"} & set(verdicts)
    assert {name for name, verdict in verdicts.items() if not verdict["met"]} == without
    assert all(abs(verdicts[name]["conditions"][0]["value"]) < IN_CONTEXT / 2 for name in without)
    assert all(verdicts[name]["conditions"][0]["value"] > 0.8 for name in set(verdicts) - without)


def test_in_a_pool_of_one_task_the_mean_task_is_exact_and_zero_is_the_plateau() -> None:
    config, summary, predictions = pool_run(1)
    met = {name: judged(config, summary, values)["met"] for name, values in predictions.items()}
    assert met == {"ridge": True, "dmmse": True, "mean task": True, "zero": False}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"noise_std": 20.0}, "gains next to nothing"),
        ({"noise_std": 0.0}, "no exact predictor"),
        ({}, "errors by position"),
    ],
)
def test_where_no_number_tells_nothing_is_said_but_why(values: dict[str, object], reason: str) -> None:
    config, summary, predictions = pool_run(4, **values)
    if values:
        verdict = judged(config, summary, predictions["zero"])
    else:
        verdict = verdict_of(config, {"headline": summary["headline"] | {"id_tf_loss": 1.0}})
    assert verdict["met"] is None
    assert reason in verdict["reason"]


# Regression: one step of gradient descent, whose size is the best for the training's contexts

ALL_RANDOM = ContextConfig(noise_mode="random_pairs", noise_p=1.0)
NOISY = ContextConfig(noise_mode="label_noise", noise_p=0.5, noise_sigma=2.0)
RANDOM = ContextConfig(noise_mode="random_pairs", noise_p=0.4)
TWO = DataConfig(dim=2, input_distribution="gaussian", spectrum="given", eigenvalues=(5.0, 0.1))
FIVE = DataConfig(dim=5, input_distribution="gaussian", spectrum="given", eigenvalues=(3.0, 1.0, 1.0, 1.0, 1.0))


@pytest.mark.parametrize("sd", [0.0, 0.3])
def test_on_isotropic_inputs_it_is_the_best_step_of_gradient_descent(sd: float) -> None:
    data = DataConfig(dim=4, num_pairs=6, noise_std=sd)
    a = preconditioned.closed_form(data, ContextConfig())
    np.testing.assert_allclose(a / data.num_pairs, one_step_size(data), rtol=1e-12)


@pytest.mark.parametrize(
    ("data", "context"), [(FIVE, ContextConfig()), (DataConfig(), NOISY), (FIVE, NOISY), (DataConfig(), RANDOM)]
)
def test_the_closed_form_is_the_least_squares_fit_on_contexts_of_the_training(
    data: DataConfig, context: ContextConfig
) -> None:
    """On 65 536 tasks, whose fits are within 4 % of it."""
    config = RegressionConfig(data=data, train=context)
    batch = position_steps_batch(config, context)
    a = preconditioned.closed_form(data, context)
    np.testing.assert_allclose(preconditioned.fitted(batch, preconditioned.axes_alike(data)), a, rtol=0.04)
    if data == DataConfig():
        np.testing.assert_allclose(preconditioned.fitted(batch, True) / 10, fit_step_size(batch), rtol=1e-5)


@pytest.mark.parametrize(
    ("data", "context"),
    [
        (DataConfig(dim=4, num_pairs=6, teacher="relu"), ContextConfig()),
        (DataConfig(dim=4, num_pairs=6, num_distractors=2), ContextConfig()),
    ],
)
def test_where_there_is_no_closed_form_it_is_fitted(data: DataConfig, context: ContextConfig) -> None:
    with pytest.raises(ConfigError):
        preconditioned.closed_form(data, context)
    config = RegressionConfig(data=data, train=context, step_size_tasks=4096)
    batch = position_steps_batch(config, context)
    a = preconditioned.trained_step(data, context, lambda: batch)
    np.testing.assert_allclose(a / 6, fit_step_size(batch), rtol=1e-5)


def test_of_random_pairs_alone_nothing_is_learnt() -> None:
    np.testing.assert_array_equal(preconditioned.closed_form(DataConfig(), ALL_RANDOM), np.zeros(10))


def test_its_losses_are_those_in_closed_form() -> None:
    """10 000 tasks have a standard error of 1.6 % of the loss."""
    config = RegressionConfig()
    step = with_verdict(config, {"alignment": {"align_cos": 0.9}, "headline": {"tf_loss": 0.3}})["one_step"]
    c = one_step_size(config.data)
    assert step["loss"] == pytest.approx(one_step_loss(config.data, c), rel=0.05)
    assert step["zero_loss"] == pytest.approx(one_step_loss(config.data, 0.0), rel=0.05)
    assert step["align_cos"] == pytest.approx(1)


def test_a_cosine_alone_is_no_training() -> None:
    """After 20 steps a layer's cosine is .85, for two directions are few, and its loss 2.530 where zero has 2.532."""
    config = RegressionConfig(data=TWO, data_seed=4)
    found = verdict_of(config, {"alignment": {"align_cos": 0.85}, "headline": {"tf_loss": 2.530}})
    assert (found["met"], found["conditions"][0]["value"]) == (False, 0.85)
    assert abs(found["conditions"][1]["value"]) < 0.05


@pytest.mark.parametrize(("times", "met"), [(1.0, True), (1.15, True), (1.22, False), (1.86, False)])
def test_the_step_is_preconditioned_where_inputs_are_not_isotropic(times: float, met: bool) -> None:
    """Zero has 2.77 times the preconditioned step's loss, one step of plain gradient descent 1.22 times."""
    step = with_verdict(RegressionConfig(data=FIVE), regression(0.95) | {"headline": {"tf_loss": 1.0}})
    assert step["one_step"] is STEP  # what a summary has is not computed again
    summary = {"alignment": {"align_cos": 0.95}, "headline": {"tf_loss": 1.0}}
    reference = with_verdict(RegressionConfig(data=FIVE), summary)["one_step"]
    loss = times * reference["loss"]
    assert verdict_of(RegressionConfig(data=FIVE), summary | {"headline": {"tf_loss": loss}})["met"] is met


STEEP = DataConfig(
    num_pairs=100,
    input_distribution="gaussian",
    spectrum="log_spaced",
    condition_number=1000.0,
    task_covariance="inverse",
)


@pytest.mark.parametrize(
    ("data", "train", "evaluation", "reason"),
    [
        (
            DataConfig(),
            ALL_RANDOM,
            ALL_RANDOM,
            NEXT_TO_NOTHING,
        ),
        (
            DataConfig(),
            ALL_RANDOM,
            ContextConfig(),
            NEXT_TO_NOTHING,
        ),
        (
            DataConfig(),
            ContextConfig(),
            ALL_RANDOM,
            NEXT_TO_NOTHING,
        ),
        (
            DataConfig(noise_std=100.0),
            ContextConfig(),
            ContextConfig(),
            NEXT_TO_NOTHING,
        ),
        (STEEP, ContextConfig(), ContextConfig(), "preconditioned step"),
    ],
)
def test_where_no_number_can_tell_there_is_a_reason_and_no_verdict(
    data: DataConfig, train: ContextConfig, evaluation: ContextConfig, reason: str
) -> None:
    config = RegressionConfig(data=data, train=train, eval=evaluation, test_tasks=2000, step_size_tasks=8192)
    summary = {"alignment": {"align_cos": 0.99}, "headline": {"tf_loss": 0.0}}
    found = verdict_of(config, summary)
    assert found["met"] is None
    assert reason in found["reason"]
    assert in_words(config, summary).startswith("trained: not defined: ")


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["cosine", "loss", *STEP])
def test_a_number_that_is_missing_never_passes(name: str, missing: float | None) -> None:
    summaries = {
        "cosine": regression(missing),
        "loss": regression(0.99, missing),
        **{key: regression(0.99, 0.21, STEP | {key: missing}) for key in STEP},
    }
    assert verdict_of(RegressionConfig(), summaries[name])["met"] is not True


def test_a_table_judges_a_training_by_its_own_contexts() -> None:
    """Where it has that test; else by the test that it has. Without a verdict nothing passes."""
    rows = [
        ("random", "random", "true"),
        ("random", "easy2hard", "false"),
        ("easy2hard", "random", "false"),
        ("hard2easy", "hard2easy", ""),
        ("hard2easy", "random", "true"),
    ]
    table = pd.DataFrame(rows, columns=["train_ordering", "eval_ordering", "trained"])
    table = table.assign(model="lsa1", seed=0, steps=100, status="done")
    assert list(has_trained(table)) == [True, True, False, False, False]
    assert list(has_trained(table.assign(trained=[True, False, False, None, True]))) == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert not has_trained(table.drop(columns="trained")).any()
