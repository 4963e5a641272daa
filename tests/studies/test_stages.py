"""What claims of stages measure, on tables made by hand."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.develop import SETTINGS
from analysis.measures.llc_settings import Settings
from configs.overrides import resolve
from configs.presets import preset
from store import layout, rundir
from studies.stages import curves, measures
from studies.stages.runs import ANALYSES, RECIPES, RUNS
from studies.stages.study import STUDY

STEPS = np.array([0, 10, 100, 1000])
LOSSES = np.array([2.0, 1.5, 0.5, 0.4])
NBETA = SETTINGS["published"]["nbeta"]


def made(
    folder: Path, llc: Sequence[float], health: Sequence[str] = ("healthy",) * 4, tasks: float = 2, **facts: Any
) -> Path:
    """A finished decoder with this LLC at the default setting; at the published one it is the loss turned over."""
    run = folder / f"run{len(list(folder.iterdir()))}"
    config = resolve(preset("hoogland"))
    rundir.begin(run, replace(config, data=replace(config.data, num_tasks=tasks)))
    table = pd.DataFrame({"step": STEPS, "loss": LOSSES, "id_squared_prediction": [0.4, 0.1, 0.2, 0.3]})
    columns: Mapping[str, Sequence[float]] = {"default": llc, "published": [*(NBETA * (2.1 - LOSSES))]}
    for name, values in columns.items():
        table[f"llc_{name}"], table[f"loss_{name}"] = values, LOSSES
        table[f"health_{name}"], table[f"norm_{name}"] = health, [1.0, 1.0, 2.0, 4.0]
    (run / layout.DEVELOP).parent.mkdir(parents=True)
    table.to_csv(run / layout.DEVELOP_TABLE, index=False)
    settings = {name: asdict(Settings(**own)) for name, own in SETTINGS.items() if name != "tight"}
    (run / layout.DEVELOP).write_text(json.dumps({"settings": settings, **facts}))
    return run


def test_the_rise_of_a_saturated_curve_is_the_loss(tmp_path: Path) -> None:
    run = made(tmp_path, [0.0, 1.0, 4.0, 2.0])
    assert measures.loss_slope_of_rise("published")(run) == pytest.approx(1.0, rel=1e-9)
    assert math.isnan(measures.loss_slope_of_rise("default")(made(tmp_path, [1.0, 2.0, 0.0, 0.0])))  # two checkpoints
    assert measures.loss_slope_of_rise("default")(run) == pytest.approx(
        -np.polyfit(LOSSES[:3], [0.0, 1.0, 4.0], 1)[0] / NBETA, rel=1e-9
    )


def test_late_llcs_are_of_healthy_checkpoints_alone(tmp_path: Path) -> None:
    run = made(tmp_path, [9.0, 1.0, 4.0, 2.0], ("moving: 3", "healthy", "healthy", "healthy"))
    other = made(tmp_path, [0.0, 0.0, 0.0, 0.5])
    assert measures.late_llc("default")(run) == 2.0  # of steps 667 to 1000
    assert measures.late_llc_over("default")(run, other) == 4.0
    assert measures.late_over_largest("default")(run) == 0.5  # of the healthy ones
    assert measures.decline("default")(run) == pytest.approx(1 - 2 / 9)
    sick = made(tmp_path, [0.0, 1.0, 2.0, 3.0], ("healthy", "healthy", "healthy", "saturated: .5"))
    assert math.isnan(measures.late_llc("default")(sick))
    assert math.isnan(measures.late_llc_over("default")(run, sick))


def test_a_diverged_checkpoint_is_no_peak(tmp_path: Path) -> None:
    run = made(tmp_path, [0.0, math.nan, 4.0, 2.0])
    assert measures.peak_step("default")(run) == 100
    assert measures.decline("default")(run) == 0.5


def test_claimed_stages_and_the_end_of_the_first(tmp_path: Path) -> None:
    ends = {10: False, 100: True, 1000: True}
    stages, six = [{"end": end, "claimed": own} for end, own in ends.items()], [*range(6)]
    run = made(tmp_path, [0.0] * 4, stages=stages, healthy_at_all=six)
    assert measures.claimed_stages(run) == 2.0
    assert measures.end_of_first_stage(run) == 100
    without = made(tmp_path, [0.0] * 4, stages=[{"end": 10, "claimed": False}], healthy_at_all=six)
    assert measures.claimed_stages(without) == 0.0
    assert math.isnan(measures.end_of_first_stage(without))


def test_where_too_few_checkpoints_are_healthy_the_number_of_stages_is_not_known(tmp_path: Path) -> None:
    """It is not 0: a training none of whose late chains is healthy would contradict a claim that was never asked."""
    assert math.isnan(measures.claimed_stages(made(tmp_path, [0.0] * 4, stages=[], healthy_at_all=[*range(5)])))
    assert measures.claimed_stages(made(tmp_path, [0.0] * 4, stages=[], healthy_at_all=[*range(6)])) == 0.0


def test_two_curves_that_have_only_time_in_common_have_no_partial_correlation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the correlation of what ranks of time leave of the ranks, by least squares."""
    rng, steps = np.random.default_rng(0), np.arange(400)

    def partial(llc: np.ndarray, cosines: np.ndarray) -> float:
        monkeypatch.setattr(measures, "healthy", lambda run, setting: pd.DataFrame({"step": steps, "llc_default": llc}))
        rows = [{"step": step, "model_cos": cosine} for step, cosine in zip(steps, cosines, strict=True)]
        monkeypatch.setattr(measures, "read_metrics", lambda run, names: rows)
        return measures.rank_with_alignment("default")(tmp_path)

    llc, cosines = (steps + 40 * rng.normal(size=400) for _ in range(2))
    left = []
    for values in (llc, cosines):
        ranks = values.argsort().argsort()
        left.append(ranks - np.polyval(np.polyfit(steps, ranks, 1), steps))
    assert partial(llc, cosines) == pytest.approx(np.corrcoef(left)[0, 1], abs=1e-9)
    assert abs(partial(llc, cosines)) < 0.12  # two standard errors of 400 points are .1
    assert partial(llc, llc**3) == pytest.approx(1.0)
    monkeypatch.setattr(measures, "healthy", lambda run, setting: pd.DataFrame({"step": [1], "llc_default": [0.0]}))
    assert math.isnan(measures.rank_with_alignment("default")(tmp_path))


def test_after_the_peak_of_the_cosine_only_later_checkpoints_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to it the LLC and the cosine rise together, and after it the LLC rises while the cosine falls."""
    rng, steps = np.random.default_rng(1), np.arange(40)
    cosines = 1 - np.abs(steps - 20) / 20 + 0.1 * rng.normal(size=40)
    llc = np.where(steps < cosines.argmax(), cosines, 2 - cosines)
    monkeypatch.setattr(measures, "healthy", lambda run, setting: pd.DataFrame({"step": steps, "llc_default": llc}))
    rows = [{"step": step, "model_cos": cosine} for step, cosine in zip(steps, cosines, strict=True)]
    monkeypatch.setattr(measures, "read_metrics", lambda run, names: rows)
    assert measures.rank_with_alignment("default", after_peak=True)(tmp_path) == pytest.approx(-1.0)
    assert measures.rank_with_alignment("default")(tmp_path) > -0.9


def test_the_llc_of_a_pool_goes_with_its_distance_to_ridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [made(tmp_path, [0.0] * 4, tasks=m) for m in (4, 16)]
    rng, steps = np.random.default_rng(2), np.arange(30)
    distance = steps + 5 * rng.normal(size=30)
    tables = {  # of the pool that is not asked for the LLC falls
        run: pd.DataFrame({"step": steps, "llc_default": sign * distance, "id_delta_ridge": distance})
        for run, sign in zip(runs, (-1, 1), strict=True)
    }
    monkeypatch.setattr(measures, "healthy", lambda run, setting: tables[run])
    assert measures.rank_with_distance("default", 16)(runs) == pytest.approx(1.0)
    assert measures.rank_with_distance("default", 4)(runs) == pytest.approx(-1.0)


def test_the_end_of_a_metric_its_least_and_its_step(tmp_path: Path) -> None:
    run = made(tmp_path, [0.0, 1.0, 4.0, 2.0])
    assert measures.end_of("id_squared_prediction", 2.0)(run) == 0.6
    assert measures.least_of("id_squared_prediction")(run) == 0.1
    assert measures.largest("llc_default")(run) == 4.0
    assert measures.dip_step(run) == 10
    assert measures.peak_step("default")(run) == 100


def test_losses_by_position_are_compared_at_the_last_checkpoint_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {f"id_mse_noisy_{k}": [9.0, value] for k, value in enumerate((2.0, 1.1, 0.45), 1)}
    monkeypatch.setattr(measures, "table", lambda run: pd.DataFrame({"step": [0, 10], **columns}))
    assert measures.off_losses_by_position((2.0, 1.0, 0.5))(tmp_path) == pytest.approx(0.1)
    assert measures.off_losses_by_position((1.0, 1.1))(tmp_path) == pytest.approx(1.0)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_how_a_milestone_moves_with_the_schedule(
    exponent: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lengths = {tmp_path / str(length): length for length in (70_000, 200_000, 500_000)}
    config = resolve(preset("hoogland"))
    monkeypatch.setattr(
        measures, "read_config", lambda run: replace(config, training=replace(config.training, steps=lengths[run]))
    )
    moved = measures.moves_with_length(lambda run: 3.0 * lengths[run] ** exponent)
    assert moved([*lengths]) == pytest.approx(exponent, abs=1e-9)


def test_variance_and_forms_are_ranked_among_those_of_walks(tmp_path: Path) -> None:
    dynamics = {"explained_rank": [0.3, 0.8, 0.1], "p_forms": 0.7, "checkpoints": 50}
    run = made(tmp_path, [0.0] * 4, dynamics=dynamics)
    assert measures.rank_of_first_share(run) == 0.3
    assert measures.p_of_forms(run) == 0.7
    assert math.isnan(measures.p_of_forms(made(tmp_path, [0.0] * 4, dynamics=dynamics | {"checkpoints": 49})))


def test_the_llc_ranks_pools_by_their_tasks(tmp_path: Path) -> None:
    runs = [
        made(tmp_path, [0.0, 0.0, 0.0, llc], tasks=m) for m, llc in ((16, 3.0), (1, 1.0), (math.inf, 4.0), (4, 2.0))
    ]
    assert measures.rank_with_tasks("default")(runs) == pytest.approx(1.0)
    assert measures.rank_with_tasks("default")([*runs[1:], made(tmp_path, [0.0] * 4, tasks=16)]) < 1.0
    assert measures.few_over_infinite("default", 4)(runs) == pytest.approx(0.5)


def test_a_curve_of_the_llc_leaves_out_unhealthy_checkpoints(tmp_path: Path) -> None:
    run = made(tmp_path, [0.0, 1.0, 4.0, 2.0], ("moving: 3", "healthy", "healthy", "healthy"))
    steps, values = curves.llc({"two": "M = 2"}, "default")(run, "two")["LLC, default", "M = 2"]
    np.testing.assert_array_equal(values, [1.0, 4.0, 2.0])
    np.testing.assert_array_equal(steps, STEPS[1:] + 1)
    _, null = curves.published({"two": "M = 2"})(run, "two")["M = 2", curves.NULL]
    np.testing.assert_allclose(null, NBETA * (2.1 - LOSSES))


def test_every_run_has_its_analysis_and_it_has_what_its_claims_ask() -> None:
    assert set(ANALYSES) == set(RECIPES) == set(RUNS)
    for claim in STUDY.claims:
        if "published" in claim.says:
            assert "published" in RECIPES[claim.runs]["settings"], claim.name
        if claim.measure is measures.claimed_stages:
            assert {"default", "tight"} <= set(RECIPES[claim.runs]["settings"]), claim.name
    assert all(runs.cells[0].config.snapshots for runs in RUNS.values())
