"""Shifts of prompts: what they are compared with, and what breaks a model, with models written for the purpose."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis import function_shifts
from icl_lab.analysis.function_shifts import LONGER, OTHERS, SLOW, measure, other_classes, relabelled
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.functions import task
from icl_lab.families.functions.classes.linear import Linear, NoisyLinear, SparseLinear
from icl_lab.families.functions.classes.mixtures import TwoNoiseLevels
from icl_lab.families.functions.config import Curriculum, FunctionModel, FunctionsConfig, PromptData
from icl_lab.families.functions.shifts import NONE, SHIFTS
from icl_lab.src.config import TrainConfig
from icl_lab.src.prng import Purpose, key
from icl_lab.store import layout

DIM, PAIRS, COUNT = 3, 7, 400
BASE = FunctionsConfig(
    data=PromptData(dim=DIM, num_pairs=PAIRS),
    model=FunctionModel(num_layers=1, d_model=8, mlp_width=8, num_heads=2, positions="rotary"),
    curriculum=Curriculum(start_points=3, points_every=300),
    training=TrainConfig(batch_size=8, steps=1000),
    test_tasks=COUNT,
    fitted_prompts=4,
)


def loaded(function: Any, run: Path) -> LoadedRun:
    """A model as it is drawn, whose predictions are next to 0."""
    config = replace(BASE, function=function)
    model = task.make_model(config)
    return LoadedRun(run, config, model, jax.jit(model.init)(key(0)), None)


def table(function: Any, names: list[str], run: Path, **options: Any) -> pd.DataFrame:
    measure(loaded(function, run), names, COUNT, **options)
    return pd.read_csv(run / layout.FUNCTION_SHIFTS)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> None:
    (tmp_path / layout.FUNCTION_SHIFTS).parent.mkdir(parents=True, exist_ok=True)


def last(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last position by shift and predictor."""
    found: pd.DataFrame = rows[rows["position"] == PAIRS - 1].set_index(["shift", "predictor"]).sort_index()
    return found


def test_a_model_that_ignores_the_context_is_broken_where_another_learns_from_it(tmp_path: Path) -> None:
    """Of linear functions; with labels in random places nobody learns, and the constant is the best baseline."""
    rows = last(table(Linear(), [NONE, "x_twice", "permuted_labels"], tmp_path))
    broken = {name: str(rows.loc[(name, "tf"), "breaks"]) for name in (NONE, "x_twice", "permuted_labels")}
    assert broken == {NONE: "True", "x_twice": "True", "permuted_labels": "False"}
    assert rows.loc[("permuted_labels", "tf"), "best_baseline"] in ("prior", "ridge")
    assert rows.loc[("permuted_labels", "least_squares"), "loss"] > 1.5
    assert rows.loc[("permuted_labels", "ridge"), "loss"] > 0.85


def test_of_a_mixture_errors_and_threshold_are_over_the_variance_of_its_members(tmp_path: Path) -> None:
    """It is 1 without a shift and 4 with inputs twice as large, to sampling error; the oracle is no baseline."""
    function = TwoNoiseLevels(low_noise=0.01, high_noise=0.5)
    assert not [name for name, shift in SHIFTS.items() if shift.why_not(function)]
    run = loaded(function, tmp_path)
    for name, variance in ((NONE, 1.0), ("x_twice", 4.0)):
        each = [*function_shifts.measured(run, SHIFTS[name], COUNT, SLOW)][-1]
        assert each.variance == pytest.approx(variance, rel=0.3)
        assert each.losses["prior"].mean() == pytest.approx(each.variance, rel=0.1)
    rows = last(table(TwoNoiseLevels(), [NONE], tmp_path))
    assert rows.loc[(NONE, "oracle"), "loss"] < rows.loc[(NONE, "bayes"), "loss"]
    assert {"member_0", "member_1"} <= {who for _, who in rows.index}
    assert rows.loc[(NONE, "tf"), "best_baseline"] == "bayes"


def test_noise_in_labels_leaves_their_variance_and_ridge_is_the_best_near_as_many_pairs_as_inputs(
    tmp_path: Path,
) -> None:
    """Bayes, which knows of no noise, is least squares there, whose error has no mean."""
    run = loaded(Linear(), tmp_path)
    size, pool = task.size_of(run.config), task.pool_of(run.config)
    drawn = function_shifts._draw(np.uint32(0), np.uint32(1), run.config.function, size, 4000, pool)
    test, other = (Purpose.TEST_SET, Purpose.FITTED)
    batch, noisy = (relabelled(run.config, drawn, SHIFTS["noisy_labels"], 0, purpose) for purpose in (test, other))
    noises = [np.ravel(np.asarray(each.y) - np.asarray(each.y_query)) for each in (batch, noisy)]
    assert abs(np.corrcoef(*noises)[0, 1]) < 5 / np.sqrt(noises[0].size)
    flat = [relabelled(run.config, drawn, SHIFTS["half_subspace"], 0, purpose).x for purpose in (test, other)]
    np.testing.assert_array_equal(*flat)
    assert np.var(batch.y) == pytest.approx(DIM, rel=0.1)
    assert np.var(batch.y_query) == pytest.approx(DIM**2 / (DIM + 1), rel=0.1)
    rows = table(Linear(), ["noisy_labels"], tmp_path)
    at = rows[rows["position"] == DIM + 1].set_index("predictor")
    assert at.loc["tf", "best_baseline"] == "ridge"
    assert at.loc["ridge", "loss"] < 0.5 * at.loc["least_squares", "loss"]


def test_penalties_are_chosen_on_prompts_of_the_shift(tmp_path: Path) -> None:
    """Labels three times as large need no other penalty of ridge, noise needs a larger one than none."""
    rows = last(table(SparseLinear(sparsity=1), [NONE, "noisy_labels"], tmp_path))
    for name in ("lasso", "ridge"):
        assert rows.loc[("noisy_labels", name), "loss"] < 0.9
    assert rows.loc[(NONE, "lasso"), "loss"] < 0.05


def test_longer_prompts_of_a_run_with_a_curriculum_and_other_classes(tmp_path: Path) -> None:
    """Twice as many pairs would not end the curriculum before training did."""
    rows = table(NoisyLinear(), [LONGER, OTHERS], tmp_path)
    assert rows[rows["shift"] == LONGER]["position"].max() == 2 * PAIRS - 1
    others = {function.kind for function in other_classes(replace(BASE, function=NoisyLinear()))}
    assert {*rows["shift"]} == {LONGER, *others}
    assert (rows[rows["predictor"] == "tf"]["best_baseline"] != "tf").all()
