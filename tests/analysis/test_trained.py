"""Who has left the plateau: thresholds, values that are not finite, and what a predictor of the mean sine reaches."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.measures.layerwise import verdict
from analysis.plateau import in_words, left_plateau
from baselines.linear_mmse import partly_agreeing, recovered
from configs.diversity import IN_CONTEXT, DiversityConfig
from configs.layerwise import UNTRAINED, LayerwiseConfig
from configs.overrides import resolve, set_values
from configs.presets import preset
from configs.regression import ALIGNED, RegressionConfig
from configs.sine import SINE_LEFT
from families.diversity import EvalSet, measured, pool_of, pool_sequences, references
from families.regression import NEGLIGIBLE
from src.config import ContextConfig
from src.data_config import DataConfig, SineData
from src.registries import FAMILIES, NOISE_MODES, NoiseMode
from store import layout, rundir
from studies.contrast import has_learnt


def layerwise(rolled_out: bool, *losses: float, zero: float = 20.0) -> dict[str, Any]:
    references = {"zero": {"mse": [zero]}}
    return {"layerwise": {"rolled_out": rolled_out, "trimmed_mean": list(losses), "references": references}}


def diversity(*errors: float | None) -> dict[str, Any]:
    """Of an infinite pool: the loss of predicting zero is 2, and ridge gains .5."""
    return {"eval_id_errors": list(errors), "headline": {"id_tf_loss": 1, "id_zero_loss": 2.0, "id_ridge_loss": 1.5}}


@pytest.mark.parametrize(
    ("family", "summary", "value", "met"),
    [
        ("regression", {"alignment": {"align_cos": 0.6}}, 0.6, True),
        ("regression", {"alignment": {"align_cos": 0.37}}, 0.37, False),
        ("regression", {"alignment": {"align_cos": None}}, None, False),
        ("regression", {"alignment": {"align_cos": float("nan")}}, None, False),
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
    found = left_plateau(config, summary)
    assert found["met"] is met
    assert found["value"] == (None if value is None else pytest.approx(value))
    assert f"{found['threshold']:g}" in found["criterion"]
    assert in_words(config, summary).startswith("left the plateau: " if met else "NOT off the plateau: ")


def test_every_family_has_a_criterion() -> None:
    assert all(family.criterion is not None for family in FAMILIES.values())


def test_the_line_of_a_summary() -> None:
    words = in_words(RegressionConfig(), {"alignment": {"align_cos": 0.9993}})
    assert words == "left the plateau: cosine of sensitivities 0.9993, at least 0.6"
    words = in_words(RegressionConfig(), {"alignment": {"align_cos": 0.37}})
    assert words == (
        "NOT off the plateau: cosine of sensitivities 0.3700, less than 0.6; train longer (--steps) or take another "
        "--seed"
    )


def test_a_stack_is_judged_as_its_verdict_is() -> None:
    for last in (17.9, 18.1):
        losses = np.array([30.0, last])
        found = left_plateau(LayerwiseConfig(), layerwise(False, *losses))["met"]
        assert found is (verdict(False, losses, losses, 20.0) != "did not train")
    assert UNTRAINED == 0.9


def test_the_study_of_orders_and_noise_takes_the_same_cosine() -> None:
    import pandas as pd

    table = pd.DataFrame({"align_cos": [ALIGNED, ALIGNED - 1e-9]})
    assert list(has_learnt(table)) == [True, False]
    assert [left_plateau(RegressionConfig(), {"alignment": row})["met"] for row in table.to_dict("records")] == [
        True,
        False,
    ]


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
        kept = summary.pop("left_plateau")
        assert kept == left_plateau(rundir.read_config(run), summary)
        assert kept["met"] is False  # of 100 steps


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
    return left_plateau(config, {"headline": headline, "eval_id_errors": found["errors"]})


@pytest.mark.parametrize("num_tasks", [2, 4, 8, 16, 64, math.inf])
def test_what_ignores_the_context_is_on_the_plateau_and_exact_inference_is_not(num_tasks: float) -> None:
    """The mean task of the pool has .4 to 1 of the loss of predicting zero, and gains nothing from the context."""
    config, summary, predictions = pool_run(num_tasks)
    verdicts = {name: judged(config, summary, values) for name, values in predictions.items()}
    without = {"zero", "mean task"} & set(verdicts)
    assert {name for name, verdict in verdicts.items() if not verdict["met"]} == without
    assert all(abs(verdicts[name]["value"]) < IN_CONTEXT / 2 for name in without)
    assert all(verdicts[name]["value"] > 0.8 for name in set(verdicts) - without)


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
        verdict = left_plateau(config, {"headline": summary["headline"] | {"id_tf_loss": 1.0}})
    assert verdict["met"] is None
    assert reason in verdict["reason"]


# Regression where the best predictor of the training contexts is zero

ALL_RANDOM = ContextConfig(noise_mode="random_pairs", noise_p=1.0)


def test_what_the_best_linear_predictor_recovers() -> None:
    """Against least squares on clean contexts, and by hand: with one pair and label noise x'x / (x'x + p sigma^2)."""
    data = DataConfig(dim=3, num_pairs=6)
    assert recovered(data, ContextConfig()) == pytest.approx(1, abs=1e-4)
    assert recovered(data, ALL_RANDOM) == 0
    few = [recovered(data, ContextConfig(noise_mode="random_pairs", noise_p=p)) for p in (0.25, 0.5, 0.9)]
    assert 1 > few[0] > few[1] > few[2] > NEGLIGIBLE
    one = DataConfig(dim=1, num_pairs=1, input_distribution="gaussian", input_range=1e3)
    assert recovered(one, ContextConfig(noise_mode="label_noise", noise_p=1.0, noise_sigma=1.0)) > 0.99
    assert recovered(one, ContextConfig(noise_mode="label_noise", noise_p=1.0, noise_sigma=1e6)) < NEGLIGIBLE


@pytest.mark.parametrize(
    ("train", "evaluation", "met"),
    [(ALL_RANDOM, ALL_RANDOM, None), (ALL_RANDOM, ContextConfig(), None), (ContextConfig(), ALL_RANDOM, False)],
)
def test_where_zero_is_best_a_cosine_says_nothing(
    train: ContextConfig, evaluation: ContextConfig, met: bool | None
) -> None:
    """It is the training that zero must be best for."""
    config = RegressionConfig(train=train, eval=evaluation)
    found = left_plateau(config, {"alignment": {"align_cos": 0.3}})
    assert (found["met"], found["value"]) == (met, 0.3)
    assert ("reason" in found) is (met is None)
    said = in_words(config, {"alignment": {"align_cos": 0.3}})
    assert said.startswith("left the plateau: not defined: " if met is None else "NOT off the plateau: ")
    assert ("train longer" in said) is (met is not None)


def test_it_is_known_of_a_mode_by_its_predictor_and_not_by_its_name(registered: Any) -> None:
    summary = {"alignment": {"align_cos": 0.3}}
    agreement = lambda batch, data, context: partly_agreeing(batch, data, 1 - 2 * context.noise_p)  # noqa: E731
    for name, best, met in (("told", agreement, None), ("untold", None, False)):  # None: what is best is not known
        registered(NOISE_MODES, name, NoiseMode(linear_mmse=best))
        half = RegressionConfig(train=ContextConfig(noise_mode=name, noise_p=0.5))
        assert left_plateau(half, summary)["met"] is met
