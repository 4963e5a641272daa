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

from icl_lab.analysis.llc.settings import SETTINGS, Settings
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.store import layout, rundir
from icl_lab.studies.figure import Figure
from icl_lab.studies.stages import curves, measures
from icl_lab.studies.stages.runs import ANALYSES, RECIPES, RUNS
from icl_lab.studies.stages.study import STUDY
from icl_lab.studies.task_diversity.measures import gain

STEPS = np.array([0, 10, 100, 1000])
LOSSES = np.array([2.0, 1.5, 0.5, 0.4])
NBETA = SETTINGS["published"]["nbeta"]
EXPECTED = pd.DataFrame({"step": STEPS[1:], "llc_default": [1.0, 4.0, 2.0]}, index=[1, 2, 3])


def made(
    folder: Path,
    llc: Sequence[float],
    verdicts: Sequence[str] = ("undecided",) * 4,
    tasks: float = 2,
    last: int = int(STEPS[-1]),
    **facts: Any,
) -> Path:
    """A finished decoder with this LLC at the default setting; at the published one it is the loss turned over."""
    run = folder / f"run{len(list(folder.iterdir()))}"
    config = resolve(preset("hoogland"))
    training = replace(config.training, steps=last)
    rundir.begin(run, replace(config, data=replace(config.data, num_tasks=tasks), training=training))
    table = pd.DataFrame({"step": STEPS, "loss": LOSSES, "id_squared_prediction": [0.4, 0.1, 0.2, 0.3]})
    columns: Mapping[str, Sequence[float]] = {"default": llc, "published": [*(NBETA * (2.1 - LOSSES))]}
    for name, values in columns.items():
        table[f"llc_{name}"], table[f"loss_{name}"] = values, LOSSES
        table[f"llc_low_{name}"], table[f"llc_high_{name}"] = np.array(values) - 0.1, np.array(values) + 0.1
        table[f"verdict_{name}"], table[f"reasons_{name}"] = verdicts, ""
        table[f"norm_{name}"] = [1.0, 1.0, 2.0, 4.0]
    (run / layout.DEVELOP).parent.mkdir(parents=True)
    table.to_csv(run / layout.DEVELOP_TABLE, index=False)
    metrics = pd.DataFrame({"step": [50], "id_squared_prediction": [0.05]})  # a record without an LLC
    pd.concat([table, metrics]).to_csv(run / layout.DEVELOPMENTAL_METRICS, index=False)
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


def test_late_llcs_are_of_usable_checkpoints_alone(tmp_path: Path) -> None:
    run = made(tmp_path, [9.0, 1.0, 4.0, 2.0], ("none", "undecided", "undecided", "undecided"))
    other = made(tmp_path, [0.0, 0.0, 0.0, 0.5])
    assert measures.late_llc("default")(run) == 2.0  # of steps 667 to 1000
    assert measures.late_llc_over("default")(run, other) == 4.0
    assert measures.late_over_largest("default")(run) == 0.5  # of the usable ones
    assert measures.decline("default")(run) == pytest.approx(1 - 2 / 9)
    sick = made(tmp_path, [0.0, 1.0, 2.0, 3.0], ("undecided", "undecided", "undecided", "none"))
    assert math.isnan(measures.late_llc("default")(sick))
    assert math.isnan(measures.late_llc("default")(made(tmp_path, [0.0] * 4, last=3000)))  # its LLCs end at a third
    assert math.isnan(measures.late_llc_over("default")(run, sick))


def test_a_development_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    own = made(tmp_path, [9.0, 1.0, 4.0, 2.0], ("none", *["undecided"] * 3), stages=[], usable_at_all=[*range(6)])
    earlier = made(tmp_path, [9.0, 1.0, 4.0, 2.0], stages=[], healthy_at_all=[*range(6)], healthy={"default": [3, 4]})
    table = pd.read_csv(earlier / layout.DEVELOP_TABLE)
    for name in ("default", "published"):
        table = table.drop(columns=[f"verdict_{name}", f"reasons_{name}"])
        table[f"health_{name}"] = ["moving: +3.0 standard errors", *["healthy"] * 3]
    table.to_csv(earlier / layout.DEVELOP_TABLE, index=False)
    for setting in ("default", "published"):
        pd.testing.assert_frame_equal(measures.usable(own, setting)[["step", "llc_default"]], EXPECTED)
        pd.testing.assert_frame_equal(measures.usable(earlier, setting)[["step", "llc_default"]], EXPECTED)
    assert measures.table(earlier)["reasons_default"].tolist() == ["not mixed: +3.0 standard errors", "", "", ""]
    assert measures.facts(earlier)["usable"] == {"default": [3, 4]}


def test_a_diverged_checkpoint_is_no_peak(tmp_path: Path) -> None:
    run = made(tmp_path, [0.0, math.nan, 4.0, 2.0])
    assert measures.peak_step("default")(run) == 100
    assert measures.decline("default")(run) == 0.5


def test_slopes_over_usable_checkpoints_and_after_the_first(tmp_path: Path) -> None:
    llc = [-40.0, *(NBETA * (2.1 - LOSSES[1:]))]
    run = made(tmp_path, llc, ("none", "undecided", "undecided", "undecided"))
    assert measures.loss_slope_over("default", after_first=True)(run) == pytest.approx(1.0, rel=1e-9)
    assert measures.loss_slope_over("default", usable_only=True)(run) == pytest.approx(1.0, rel=1e-9)
    assert measures.loss_slope_over("default")(run) == pytest.approx(-np.polyfit(LOSSES, llc, 1)[0] / NBETA, rel=1e-9)
    few = made(tmp_path, llc, ("undecided", "undecided", "none", "none"))
    assert math.isnan(measures.loss_slope_over("default", usable_only=True)(few))


def test_a_decline_has_the_null_of_the_norm_and_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 4 at the peak to 2; the norm alone makes 1 of it, and the loss, from .5 to .4, adds nbeta / 10."""
    run = made(tmp_path, [0.0, 1.0, 4.0, 2.0])
    asked: list[tuple[float, str]] = []

    def estimate(run: Path, own: Settings, step: str) -> Any:
        asked.append((own.gamma, step))
        yield {"llc": 1.0}

    monkeypatch.setattr(measures, "estimate_run", estimate)
    assert measures.decline_over_norm_null("default")(run) == pytest.approx(-2.0 / -3.0)
    assert measures.decline_over_norm_null("default", with_loss=True)(run) == pytest.approx(-2.0 / (-3.0 + NBETA / 10))
    assert asked == [(pytest.approx(4 * SETTINGS["default"]["gamma"]), "100")] * 2


def test_two_curves_that_have_only_time_in_common_have_no_partial_correlation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the correlation of what ranks of time leave of the ranks, by least squares."""
    rng, steps = np.random.default_rng(0), np.arange(400)

    def partial(llc: np.ndarray, cosines: np.ndarray) -> float:
        monkeypatch.setattr(measures, "usable", lambda run, setting: pd.DataFrame({"step": steps, "llc_default": llc}))
        rows = [{"step": step, "eval_model_cos": cosine} for step, cosine in zip(steps, cosines, strict=True)]
        monkeypatch.setattr(measures, "read_metrics", lambda run, names: rows)
        return measures.rank_with_alignment("default")(tmp_path, tmp_path)

    llc, cosines = (steps + 40 * rng.normal(size=400) for _ in range(2))
    left = []
    for values in (llc, cosines):
        ranks = values.argsort().argsort()
        left.append(ranks - np.polyval(np.polyfit(steps, ranks, 1), steps))
    assert partial(llc, cosines) == pytest.approx(np.corrcoef(left)[0, 1], abs=1e-9)
    assert abs(partial(llc, cosines)) < 0.12  # two standard errors of 400 points are .1
    assert partial(llc, llc**3) == pytest.approx(1.0)
    monkeypatch.setattr(measures, "usable", lambda run, setting: pd.DataFrame({"step": [1], "llc_default": [0.0]}))
    assert math.isnan(measures.rank_with_alignment("default")(tmp_path, tmp_path))


def test_what_two_seeds_have_in_common_is_taken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sigmoids of one step go together given the step; a run's LLC goes with its own cosine no more than that.

    Where it follows the noise of its own cosine it does.
    """
    rng, steps = np.random.default_rng(3), np.arange(200)
    own, other, llc = (1 / (1 + np.exp(-(steps - 60) / 8)) + 0.02 * rng.normal(size=200) for _ in range(3))
    curves = {tmp_path / "own": own, tmp_path / "other": other}
    monkeypatch.setattr(
        measures,
        "read_metrics",
        lambda run, names: [
            {"step": step, "eval_model_cos": one} for step, one in zip(steps, curves[run], strict=True)
        ],
    )

    def asked(llc: np.ndarray) -> tuple[float, float]:
        monkeypatch.setattr(measures, "usable", lambda run, setting: pd.DataFrame({"step": steps, "llc_default": llc}))
        rank = measures.rank_with_alignment("default")
        return rank(*curves), measures.beyond_other_seed(rank)(*curves)

    together, beyond = asked(llc)
    assert together > 0.3
    assert abs(beyond) < 0.15  # 200 checkpoints: a difference of two correlations has an error of about .1
    assert asked(own + 0.002 * rng.normal(size=200))[1] > 0.2


def test_after_the_peak_of_the_cosine_only_later_checkpoints_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to it the LLC and the cosine rise together, and after it the LLC rises while the cosine falls."""
    rng, steps = np.random.default_rng(1), np.arange(40)
    cosines = 1 - np.abs(steps - 20) / 20 + 0.1 * rng.normal(size=40)
    llc = np.where(steps < cosines.argmax(), cosines, 2 - cosines)
    monkeypatch.setattr(measures, "usable", lambda run, setting: pd.DataFrame({"step": steps, "llc_default": llc}))
    rows = [{"step": step, "eval_model_cos": cosine} for step, cosine in zip(steps, cosines, strict=True)]
    monkeypatch.setattr(measures, "read_metrics", lambda run, names: rows)
    assert measures.rank_with_alignment("default", after_peak=True)(tmp_path, tmp_path) == pytest.approx(-1.0)
    assert measures.rank_with_alignment("default")(tmp_path, tmp_path) > -0.9


def test_the_llc_of_a_pool_goes_with_its_distance_to_ridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [made(tmp_path, [0.0] * 4, tasks=m) for m in (4, 16)]
    rng, steps = np.random.default_rng(2), np.arange(30)
    distance = steps + 5 * rng.normal(size=30)
    tables = {  # of the pool that is not asked for the LLC falls
        run: pd.DataFrame({"step": steps, "llc_default": sign * distance, "id_delta_ridge": distance})
        for run, sign in zip(runs, (-1, 1), strict=True)
    }
    monkeypatch.setattr(measures, "usable", lambda run, setting: tables[run])
    monkeypatch.setattr(measures, "metrics", lambda run: tables[run])
    assert measures.rank_with_distance("default", 16)(runs, runs) == pytest.approx(1.0)
    assert measures.rank_with_distance("default", 4)(runs, runs) == pytest.approx(-1.0)


def test_the_end_of_a_metric_its_least_and_its_step(tmp_path: Path) -> None:
    """The least is looked for among all records, of which some have no LLC."""
    run = made(tmp_path, [0.0, 1.0, 4.0, 2.0])
    assert measures.end_of("id_squared_prediction", 2.0)(run) == 0.6
    assert measures.least_of("id_squared_prediction")(run) == 0.05
    assert measures.largest("llc_default")(run) == 4.0
    assert measures.dip_step(run) == 50
    assert measures.step_of_half("id_squared_prediction")(run) == 0  # which ends at .05, in the last record
    assert measures.peak_step("default")(run) == 100


@pytest.mark.parametrize(("rising", "step"), [([0.0, 0.1, 0.5, 1.0], 100), ([0.0, -0.6, -0.4, -1.0], 10)])
def test_the_step_of_half_is_the_first_of_so_much(
    rising: list[float], step: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Scores that end negative, whatever their sign means, are compared in size."""
    monkeypatch.setattr(measures, "metrics", lambda run: pd.DataFrame({"step": STEPS, "score": rising}))
    assert measures.step_of_half("score")(tmp_path) == step


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
    assert math.isnan(measures.moves_with_length(lambda run: math.nan)([*lengths]))


def test_variance_and_forms_are_ranked_among_those_of_walks(tmp_path: Path) -> None:
    dynamics = {"explained_rank": [0.3, 0.8, 0.1], "p_forms": 0.7, "checkpoints": 50}
    run = made(tmp_path, [0.0] * 4, dynamics=dynamics)
    assert measures.rank_of_first_share(run) == 0.3
    assert measures.p_of_forms(run) == 0.7
    assert math.isnan(measures.p_of_forms(made(tmp_path, [0.0] * 4, dynamics=dynamics | {"p_forms": None})))


def test_the_llc_ranks_pools_by_their_tasks(tmp_path: Path) -> None:
    runs = [
        made(tmp_path, [0.0, 0.0, 0.0, llc], tasks=m) for m, llc in ((16, 3.0), (1, 1.0), (math.inf, 4.0), (4, 2.0))
    ]
    assert measures.rank_with_tasks("default", 64)(runs) == pytest.approx(1.0)
    low = made(tmp_path, [0.0] * 4, tasks=16)
    assert measures.rank_with_tasks("default", 64)([*runs[1:], low]) < 1.0
    assert measures.rank_with_tasks("default", 4)([*runs[1:], low]) == pytest.approx(1.0)
    swapped = [made(tmp_path, [0.0, 0.0, 0.0, llc], tasks=m) for m, llc in ((1, 1.0), (4, 3.0), (16, 2.0), (64, 4.0))]
    assert measures.rank_with_tasks("default", 64)(swapped) == 0.8  # and not .7999999999999999
    assert measures.pool_over_infinite("default", 4)(runs) == pytest.approx(0.5)


def test_a_curve_of_the_llc_leaves_out_unusable_checkpoints(tmp_path: Path) -> None:
    run = made(tmp_path, [0.0, 1.0, 4.0, 2.0], ("none", "undecided", "undecided", "undecided"))
    steps, values = curves.llc({"two": "M = 2"}, "default")(run, "two")["LLC, default", "M = 2"]
    np.testing.assert_array_equal(values, [1.0, 4.0, 2.0])
    np.testing.assert_array_equal(steps, STEPS[1:] + 1)
    _, null = curves.published({"two": "M = 2"})(run, "two")["M = 2", curves.NULL]
    np.testing.assert_allclose(null, NBETA * (2.1 - LOSSES))


def test_pools_are_drawn_by_their_tasks_beside_what_memorising_gains(tmp_path: Path) -> None:
    few, infinite = (made(tmp_path, [0.0, 1.0, 4.0, 2.0], tasks=tasks) for tasks in (4, math.inf))
    found = curves.llc_of_tasks("default")(few, "pools")
    assert found["LLC, default", "last third"] == ([4], [2.0])
    ((tasks, (gap,)),) = [curve for (panel, _), curve in found.items() if panel == "ridge's loss less dMMSE's"]
    config = rundir.read_config(few)
    assert tasks == [4]
    assert gap == pytest.approx(gain(config.data.dim, 4, config.init_seed))
    assert gap > 0.05  # four tasks are worth knowing
    assert curves.llc_of_tasks("default")(infinite, "pools")["ridge's loss less dMMSE's", "exact"] == (
        [math.inf],
        [0.0],
    )


def test_pools_over_training_have_a_series_for_each_m(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path, [0.0, 1.0, 4.0, 2.0], ("none", "undecided", "undecided", "undecided"), tasks=16)
    with_ridge = measures.table(run).assign(id_delta_ridge=[1.0, 0.5, 0.2, 0.3])
    monkeypatch.setattr(measures, "metrics", lambda run: with_ridge)
    found = curves.over_training_by_tasks("default")(run, "pools")
    assert set(found) == {("LLC, default", "M = 16"), ("distance to ridge", "M = 16")}
    np.testing.assert_array_equal(found["LLC, default", "M = 16"][1], [1.0, 4.0, 2.0])
    np.testing.assert_array_equal(found["distance to ridge", "M = 16"], [STEPS + 1, [1.0, 0.5, 0.2, 0.3]])


def test_the_papers_llc_stands_beside_ours_at_all_checkpoints(tmp_path: Path) -> None:
    run = made(tmp_path, [0.0] * 4, ("none",) * 4)
    found = curves.beside_the_papers({"long": "batch 64"})(run, "long")
    np.testing.assert_allclose(found["LLC, published", "batch 64"][1], NBETA * (2.1 - LOSSES))
    steps, middle = found["LLC, published", curves.PAPERS]
    assert dict(zip(steps, middle, strict=True))[40_001] == 170.0


def test_the_smoothed_curve_is_drawn_where_there_is_one(tmp_path: Path) -> None:
    curve = {"step": [0.0, 9.0], "llc": [1.0, 2.0], "llc_se": [0.1, 0.1]}
    run, without = (made(tmp_path, [0.0] * 4, curve=own) for own in (curve, {name: [] for name in curve}))
    drawn = curves.together(curves.llc({"one": "one"}, "default"), curves.smoothed({"one": "one"}))
    assert set(drawn(without, "one")) == {("LLC, default", "one")}
    steps, values = drawn(run, "one")[curves.SMOOTHED, "one"]
    np.testing.assert_array_equal([steps, values], [[1.0, 10.0], [1.0, 2.0]])


def test_a_cell_is_analysed_in_one_way() -> None:
    """Runs that share cells share the recipe: a later one would replace the measurements of the earlier."""
    recipes: dict[str, Any] = {}
    for name, recipe in RECIPES.items():
        for cell in RUNS[name].cells:
            assert recipes.setdefault(cell.name, recipe) == recipe, (name, cell.name)


def test_an_llc_or_a_norm_above_100_is_drawn() -> None:
    assert all(figure.limit == math.inf for figure in STUDY.figures if isinstance(figure, Figure))


def test_every_run_has_its_analysis_and_it_has_what_its_claims_ask() -> None:
    of_their_own = {name for name in RUNS if not name.endswith("_next")}
    assert set(ANALYSES) == set(RECIPES) == of_their_own
    for name in set(RUNS) - of_their_own:  # the same cells in other places
        own = RUNS[name.removesuffix("_next")]
        assert {cell.name for cell in RUNS[name].cells} == {cell.name for cell in own.cells}
        assert all(one != other for one, other in zip(RUNS[name].seeds, own.seeds, strict=True))
    for claim in STUDY.claims:
        if "published" in claim.says:
            assert "published" in RECIPES[claim.runs]["settings"], claim.name
    assert all(runs.cells[0].config.snapshots for runs in RUNS.values())


def test_a_plane_has_the_path_of_the_first_seed_and_a_walks_with_their_forms(tmp_path: Path) -> None:
    forms = [{"checkpoint": 2}, {"checkpoint": 3}]
    dynamics = {"forms": forms, "null": {"example": forms[:1]}}
    run, later = (made(tmp_path, [0.0] * 4, dynamics=dynamics) for _ in range(2))
    config = rundir.read_config(later)
    rundir.begin(tmp_path / "later", replace(config, init_seed=1))
    table = pd.DataFrame({"series": ["trajectory"] * 4 + ["random walk"] * 4, "step": [*STEPS] * 2})
    table["pc1_smooth"], table["pc2_smooth"] = np.arange(8) * 1.0, np.arange(8) * -2.0
    table.to_csv(run / layout.ESSENTIAL_DYNAMICS, index=False)
    rows = curves.plane([tmp_path / "later", run])
    points = [(row["panel"], row["step"], row["x"], row["y"]) for row in rows if row["kind"] == "point"]
    walk = "random walk, forms: 1"
    assert points == [("trajectory, forms: 2", 100, 2.0, -4.0), ("trajectory, forms: 2", 1000, 3.0, -6.0)] + [
        (walk, 100, 6.0, -12.0)
    ]
    paths = [(row["panel"], row["x"]) for row in rows if row["kind"] == "path"]
    assert paths == [("trajectory, forms: 2", x) for x in range(4)] + [(walk, x) for x in range(4, 8)]
