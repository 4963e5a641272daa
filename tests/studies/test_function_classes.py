"""The study of function classes: what its measures and tables say of records, summaries and tables made by hand."""

import csv
import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.stats import CensoredData, logrank

from icl_lab.families.functions import task
from icl_lab.families.functions.classes.mixtures import TwoNoiseLevels, members_posteriors
from icl_lab.families.functions.config import FunctionsConfig, PromptData
from icl_lab.src.registries import FUNCTION_CLASSES
from icl_lab.store import layout
from icl_lab.studies.functions import curves, measures, tables
from icl_lab.studies.functions.runs import POOL_SIZES, POOLED, RUNS, SHIFTS
from icl_lab.studies.functions.study import STUDY

DIM = 2


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of two inputs without any files."""
    made = SimpleNamespace(data=SimpleNamespace(dim=DIM, num_functions=4.0))
    monkeypatch.setattr(measures, "config_of", lambda run: made)
    folder = tmp_path / "run"
    (folder / "analysis").mkdir(parents=True)
    return folder


def summarised(run: Path, **headline: object) -> Path:
    (run / layout.SUMMARY).write_text(json.dumps({"headline": headline}))
    return run


def test_losses_and_excesses_are_taken_at_the_positions_that_claims_name(run: Path) -> None:
    """Of two inputs 2 D is position 4, and D + 2 is the first of the late ones."""
    summarised(
        run,
        id_tf_losses=[1.0, 0.8, 0.5, 0.2, 0.07, 0.09],
        id_prior_losses=[1.0] * 6,
        id_bayes_losses=[1.0, 0.5, 0.0, 0.0, 0.0, 0.0],
        id_lasso_excesses=[0.3, -0.1, 0.2, 0.4, 0.5, -0.2],
    )
    assert measures.error_at(2)(run) == 0.07
    assert measures.error_at(2, "prior")(run) == 1.0
    assert measures.largest_error_from(2)(run) == 0.09
    assert measures.largest_excess("lasso", 1, below_dim=True)(run) == -0.1
    assert measures.largest_excess("lasso")(run) == 0.5
    assert measures.last_excess("lasso")(run) == -0.2
    assert measures.largest_excess_of("prior", "bayes", 1)(run) == 1.0


@pytest.mark.parametrize(("errors", "step"), [((1.0, 0.3, 0.1, 0.2), 500.0), ((1.0, 0.3, 0.11), math.inf)])
def test_the_first_recorded_step_at_an_error(errors: tuple[float, ...], step: float, run: Path) -> None:
    lines = [
        {"step": 250 * number, "train_loss": 1.0, "eval_loss": 1.0, "eval_id_errors": [1.0, 1.0, 1.0, 1.0, error]}
        for number, error in enumerate(errors)
    ]
    (run / layout.METRICS).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert measures.steps_to_error(run) == step
    assert measures.is_sooner(run, run) == 0


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    return path


def test_a_gain_is_shown_where_the_reference_gains_and_on_functions_outside_of_a_pool(run: Path) -> None:
    """At the first position the reference gains a hundredth, which says nothing; what is undefined is None."""
    losses = {"prior": [1.0] * 5, "bayes": [1.0, 0.99, 0.5, 0.5, 0.2]}
    of_set = {f"id_{who}_losses": values for who, values in losses.items()}
    summarised(run, **of_set, id_scales=[None, -3.0, 0.5, 0.6, 0.9], id_reference="bayes")
    _, half, last = curves.PARTS.values()
    assert curves.gains(run) == {(half, ""): 0.5, (last, ""): 0.9}
    outside = {name.replace("id_", "ood_"): values for name, values in of_set.items()}
    fresh = {"ood_scales": [None, 0.1, 0.2, 0.2, 0.3], "ood_reference": "bayes"}
    pool = run / "pool"
    pool.mkdir()
    summarised(pool, **of_set, **outside, **fresh, id_scales=[0.9] * 5, id_reference="bayes")
    assert curves.gains(pool) == {(half, ""): 0.2, (last, ""): 0.3}


def test_a_shift_is_measured_over_the_variance_of_its_labels(run: Path) -> None:
    """The prior's loss is the labels' variance over that of the class: of inputs three times as large, 9."""
    rows: list[dict[str, object]] = [
        {"shift": shift, "position": k, "predictor": who, "loss": loss, "excess": excess}
        for shift, scale in (("none", 1.0), ("x_three_times", 9.0))
        for k in (1, 2)
        for who, loss, excess in (("tf", 0.5 * scale, 0.1 * k * scale), ("prior", scale, ""))
    ]
    written(run / layout.FUNCTION_SHIFTS, rows)
    for shift in ("none", "x_three_times"):
        assert measures.last_under(shift)(run) == pytest.approx(0.2, rel=1e-12)


def test_where_a_ratio_falls_to_one_half() -> None:
    """Between 2 and 4 in log2 M, from .75 to .25, half of the way; bounds beyond the ends."""
    assert measures.crossing([0.0, 2.0, 4.0], [1.0, 0.75, 0.25]) == 3.0
    assert measures.crossing([0.0, 2.0, 4.0], [0.4, 0.9, 0.1]) == 0.0
    assert measures.crossing([0.0, 2.0, 4.0], [1.0, 0.9, 0.6]) == math.inf
    assert measures.crossing([0.0, 2.0, 4.0], [1.0, 0.5, 0.9]) == 2.0
    assert measures.crossing([0.0, 1.0, 2.0, 4.0], [1.0, math.inf, 0.75, 0.25]) == 3.0
    assert measures.crossing([0.0, 2.0], [math.inf, math.inf]) == math.inf


def test_the_distance_to_a_reference_is_taken_over_that_of_the_pools_posterior(run: Path) -> None:
    summarised(run, ood_tf_loss=0.5, ood_bayes_loss=0.1, ood_pool_loss=0.9, ood_reference="bayes")
    lines = [
        {"step": step, "train_loss": 1.0, "eval_loss": 1.0, "eval_ood_loss": loss}
        for step, loss in ((0, 1), (5000, 0.3))
    ]
    (run / layout.METRICS).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert measures.distance_over_pool(run) == pytest.approx(0.5, rel=1e-12)
    assert measures.distance_over_pool(run, 5000) == pytest.approx(0.25, rel=1e-12)


def test_there_is_no_half_of_the_distance_of_a_pools_posterior_that_is_as_good_as_the_reference(run: Path) -> None:
    """A quotient by a negative distance would be below one half, as of a model that knows the class."""
    summarised(run, ood_tf_loss=0.5, ood_bayes_loss=0.1, ood_pool_loss=0.09, ood_reference="bayes")
    assert measures.distance_over_pool(run) == math.inf


@pytest.mark.parametrize(("chooses", "place"), [(True, 0.0), (False, 1.0)])
def test_a_model_that_chooses_is_at_0_and_one_that_averages_at_1(
    chooses: bool, place: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = FunctionsConfig(function=TwoNoiseLevels(), data=PromptData(dim=DIM, num_pairs=6), test_tasks=64)

    def said(model: object, params: object, batch: task.FunctionBatch) -> np.ndarray:
        parts = members_posteriors(config.function.members, np.asarray(batch.x), np.asarray(batch.y))
        evidence = np.stack([part.log_evidence for part in parts])
        weights = np.exp(evidence - evidence.max(axis=0))
        means = np.stack([part.mean for part in parts])
        if chooses:
            return np.where(weights[0] >= weights[1], means[0], means[1])
        return (weights * means).sum(axis=0) / weights.sum(axis=0)

    monkeypatch.setattr(measures, "load_run", lambda run: SimpleNamespace(config=config, model=None, params=None))
    monkeypatch.setattr(task, "predictions_of", said)
    assert measures.share_of_averaging(Path("run")) == pytest.approx(place, abs=1e-9)


def test_the_table_of_a_curriculum_has_the_log_rank_test_of_scipy(tmp_path: Path) -> None:
    """Three runs come to the error at 500 steps with a curriculum; without one, one does at 1000, two never do."""
    times = {"all inputs": (1000, None, None), "curriculum": (500, 500, 500)}
    rows: list[dict[str, object]] = [
        {"panel": "", "series": words, "x": x, "mean": 0.1 if step and x >= step else 0.5, "seed": seed}
        for words, steps in times.items()
        for seed, step in enumerate(steps)
        for x in (500, 1000, 1500)
    ]
    written(tmp_path / tables.TRAINING, rows)
    expected = logrank(CensoredData([1000.0], right=[1500.0] * 2), CensoredData([500.0] * 3)).pvalue
    text = tables.log_rank(tmp_path)
    assert "all inputs, 1 of 3, median step above 1500; curriculum, 3 of 3, median step 500 " in text
    assert text.endswith(f" (log-rank test, p = {expected:.2g}).")


def test_the_table_of_sizes_has_a_row_for_each_and_a_column_for_each_number_of_inputs(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"panel": "", "series": words, "x": x, "mean": mean, "low": mean / 2, "high": 2 * mean}
        for words, means in {"one block": (0.5, 0.8), "two blocks": (0.02, 0.3)}.items()
        for x, mean in zip((3, 8), means, strict=True)
    ]
    written(tmp_path / tables.SIZES, rows)
    assert tables.sizes(tmp_path).splitlines() == [
        "| model | 3 inputs | 8 inputs |",
        "|---|---|---|",
        "| one block | 0.5 [0.25, 1] | 0.8 [0.4, 1.6] |",
        "| two blocks | 0.02 [0.01, 0.04] | 0.3 [0.15, 0.6] |",
    ]


def test_the_table_of_pools_says_in_how_many_seeds_there_is_no_half(tmp_path: Path) -> None:
    """From .75 at 4 to .25 at 16 the half is at 8, which is the geometric mean of 4, 8 and 16 too."""
    ratios = {
        ("linear", None): ((1.0, 0.75, 0.25),) * 3,
        ("linear", measures.EARLIER): ((0.4, 0.3, 0.2), (1.0, 0.5, 0.2), (1.0, 0.5, 0.2)),
        ("quadratic", None): ((1.0, 0.9, 0.8), (1.0, 0.75, 0.25), (1.0, 0.9, 0.8)),
        ("quadratic", measures.EARLIER): ((1.0, 0.5, 0.2), (1.0, 0.75, 0.25), (1.0, 1.0, 0.5)),
        ("fourier", None): ((1.0, 0.9, 0.8),) * 3,
        ("fourier", measures.EARLIER): ((0.4, 0.3, 0.2),) * 3,
    }
    rows: list[dict[str, object]] = [
        {"panel": curves.DISTANCES[at], "series": kind, "x": x, "mean": value, "seed": seed}
        for (kind, at), of_seeds in ratios.items()
        for seed, values in enumerate(of_seeds)
        for x, value in zip((1, 4, 16), values, strict=True)
    ]
    written(tmp_path / tables.HALVES, rows)
    lines = tables.halves(tmp_path).splitlines()
    assert lines[0] == "| functions | 20 000 steps | 5000 steps |"
    half = stats.sem([2, 3, 4]) * stats.t.ppf(0.95, 2)  # in log2 M
    of_three = f"| 8 [{2 ** (3 - half):.2g}, {2 ** (3 + half):.2g}] |"
    assert lines[2] == "| linear | 8 [8, 8] | at most 1 in 1 of 3 seeds |"
    assert lines[3] == f"| quadratic | never in 2 of 3 seeds {of_three}"
    assert lines[4] == "| fourier | never | at most 1 |"


def test_the_classes_of_the_figure_are_those_that_are_trained() -> None:
    assert {*curves.CLASSES} <= {*RUNS}
    assert {cell.config.function.kind for name in curves.CLASSES for cell in RUNS[name].cells} == {*curves.WORDS}
    assert {*curves.WORDS} == {*FUNCTION_CLASSES.built_in}
    assert {*curves.SHIFTS} == {*SHIFTS}
    assert all(len(RUNS[f"pools_{kind}"].cells) == 3 * len(POOL_SIZES) for kind in POOLED)
    assert 15 <= len(STUDY.claims) <= 25
