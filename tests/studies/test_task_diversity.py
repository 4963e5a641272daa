"""What claims of task diversity measure, on run directories made by hand, and the curves of their figures."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.run import to_dict
from icl_lab.store import layout, rundir
from icl_lab.store.atomic import write_json
from icl_lab.store.metrics import append_metrics
from icl_lab.store.readers import StoreError
from icl_lab.studies import ledger
from icl_lab.studies.task_diversity import curves as pool_curves
from icl_lab.studies.task_diversity import measures as pools
from icl_lab.studies.task_diversity.tables import relative_distances
from icl_lab.studies.template import NOT_MEASURED
from tests.runners.tiny import ROOT

STEPS = (0, 10, 20, 40)


def made(folder: Path, num_tasks: int, ood: tuple[float, ...], delta: tuple[float, ...], **headline: Any) -> Path:
    """A finished run of so many tasks, with these losses and distances to ridge on fresh tasks over training."""
    run = folder / f"M{num_tasks}"
    config = resolve(preset("tiny"))
    rundir.begin(run, replace(config, data=replace(config.data, num_tasks=num_tasks)))
    for step, loss, apart in zip(STEPS, ood, delta, strict=True):
        values = {
            "eval_ood_loss": loss,
            "eval_ood_delta_ridge": apart,
            "eval_id_delta_dmmse": apart / 2,
            "eval_loss": 1.0,
        }
        append_metrics(run, {"step": step, "train_loss": 1.0, **values})
    write_json(run / layout.SUMMARY, {"headline": {"ood_delta_ridge": delta[-1], **headline}})
    return run


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, ...]:
    return (
        made(tmp_path, 4, (1.0, 0.8, 1.1, 1.2), (0.6, 0.5, 0.6, 0.8), id_delta_dmmse=0.01, id_apart=0.2, ood_apart=0.8),
        made(tmp_path, 16, (1.0, 0.7, 0.5, 0.6), (0.6, 0.4, 0.2, 0.3), id_delta_dmmse=0.1, id_apart=0.2, ood_apart=0.6),
        made(tmp_path, 0, (1.0, 0.7, 0.5, 0.4), (0.6, 0.4, 0.2, 0.01), ood_tf_loss=0.4),
    )


def test_runs_are_found_by_their_tasks(runs: tuple[Path, ...]) -> None:
    assert [pools.tasks_of(run) for run in runs] == [4, 16, math.inf]
    assert pools.at(runs, math.inf) == runs[2]
    assert pools.finite(runs, runs[:2]) == [4, 16]


def test_shares_of_the_way_between_the_predictors(runs: tuple[Path, ...]) -> None:
    assert pools.from_dmmse(4)(runs) == pytest.approx(0.05)
    assert pools.from_ridge(16)(runs) == pytest.approx(0.5)
    assert pools.from_ridge(math.inf)(runs) == pools.last_delta(runs[2]) == 0.01


def test_turns(runs: tuple[Path, ...]) -> None:
    assert pools.rise(runs[0]) == pytest.approx(1.2 - 0.8)
    assert [pools.critical_step(run) for run in runs] == [10, 20, 40]
    assert pools.later_critical_step(4, 16)(runs) == 1  # log2 of 20 over 10
    assert pools.deeper(4, 16)(runs) == pytest.approx(0.5 / 0.8)
    assert pools.exponent(4, 16)(runs) == pytest.approx(math.log(2) / math.log(4))


def test_a_component_is_compared_with_its_own_losses_or_those_of_others(
    runs: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = np.concatenate([pools.history(run, "eval_ood_loss") for run in runs[:2]])
    scores = np.stack([np.arange(8) % 2, -own], 1)  # of two components, the better of which is the losses' negative
    monkeypatch.setattr(pools, "joint_pca", lambda runs: SimpleNamespace(scores=scores))
    assert pools.component_of_ood_loss(runs[:2]) == pytest.approx(1)
    other = np.concatenate([pools.history(run, "eval_ood_loss") for run in runs[1:]])
    expected = max(abs(np.corrcoef(column, other)[0, 1]) for column in scores.T)
    assert pools.component_of_ood_loss(runs[:2], runs[1:]) == pytest.approx(expected)
    assert expected < 0.9


def test_two_budgets_cross_where_their_ratio_is_one(tmp_path: Path) -> None:
    """r = log2(large/small) goes from 1 at M = 4 to -1 at M = 16: the crossing is halfway, at M = 8."""
    ends = {"small": (0.2, 0.4), "large": (0.4, 0.2)}
    of = {
        name: tuple(
            made(tmp_path / name, m, (1.0,) * 4, (1.0, 1.0, 1.0, d)) for m, d in zip((4, 16), pair, strict=True)
        )
        for name, pair in ends.items()
    }
    assert pools.crossing_of(of["large"], of["small"]) == pytest.approx(3)
    assert pools.crossing_of(of["small"], of["large"]) == math.inf
    assert pools.moved_from_ridge(4)(of["large"], of["small"]) == pytest.approx(2)
    assert pools.apart_at(16)(of["large"], of["small"]) == pytest.approx(1)


def test_curves_have_infinity_at_their_end_and_leave_out_what_is_not_there(runs: tuple[Path, ...]) -> None:
    curves = pool_curves.deltas({"pools": "ours"})
    assert curves(runs[2], "pools") == {(pool_curves.FROM_RIDGE, "ours"): ([math.inf], [0.01])}
    found = curves(runs[0], "pools")
    assert found[pool_curves.FROM_RIDGE, "dMMSE"] == ([4], [0.8])
    assert found[pool_curves.FROM_DMMSE, "ours"] == ([4], [0.01])
    assert pool_curves.critical_steps(runs[2], "") == {}  # M = infinity has no turn
    over = pool_curves.over_training("", "eval_ood_loss")(runs[0], "")
    assert [list(values) for values in over["", "M = 4"]] == [[10, 20, 40], [0.8, 1.1, 1.2]]


def test_a_loss_over_training_has_ridges_beside_it_once(tmp_path: Path) -> None:
    losses, apart = (1.0, 0.8, 1.1, 1.2), (0.6, 0.5, 0.6, 0.8)
    few, more = (made(tmp_path, tasks, losses, apart, ood_ridge_loss=0.39) for tasks in (8, 16))
    curves = pool_curves.over_training_and_ridge("", 8)
    found = curves(few, "pools_long")
    steps, ridge = found["", "Ridge"]
    assert list(found["", "M = 8"][1]) == list(losses[1:])
    assert list(steps) == list(STEPS[1:])
    assert list(ridge) == [0.39] * 3
    assert list(curves(more, "pools_long")) == [("", "M = 16")]


def test_a_phase_portrait_is_the_mean_over_seeds_and_ends_beside_dmmse(runs: tuple[Path, ...]) -> None:
    rows = pool_curves.phase_portrait(runs)
    paths = [row for row in rows if row["series"] == "M = 16" and row["kind"] == "path"]
    assert [(row["step"], row["x"], row["y"]) for row in paths] == [
        (0, 0.3, 0.6),
        (10, 0.2, 0.4),
        (20, 0.1, 0.2),
        (40, 0.15, 0.3),
    ]
    points = {row["series"]: (row["x"], row["y"]) for row in rows if row["kind"] == "point"}
    assert points == {"M = 4": (0.0, 0.8), "M = 16": (0.0, 0.6)}


def test_the_gain_of_memorising_is_the_difference_of_the_exact_predictors_losses() -> None:
    assert pools.gain(4, 16, 0) == pytest.approx(
        np.diff([pools.exact(4, 16, f"id_{who}")(0) for who in ("dmmse", "ridge")])[0]
    )


@pytest.mark.parametrize(
    ("losses", "step", "censored"),
    [
        ((1.0, 0.8, 0.5, 0.6), 20, ""),
        ((1.0, 0.8, 0.5, 0.4), 40, "above"),  # still falling at the last record
        ((0.3, 0.8, 0.5, 0.4), 10, "below"),  # never below where it began; step 0 has no place on the axis
    ],
)
def test_a_turn_that_is_not_within_training_is_censored(
    losses: tuple[float, ...], step: int, censored: str, tmp_path: Path
) -> None:
    run = made(tmp_path, 8, losses, (0.6, 0.4, 0.2, 0.3))
    found = pool_curves.critical_steps(run, "")
    assert found["", "t_crit: least loss on fresh tasks"] == ([8], [step], [censored])
    assert found["", "t*: nearest to ridge"] == ([8], [20], [""])


def test_halfway_is_placed_between_ridge_and_dmmse_seed_by_seed(
    runs: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ridge loses .25 halfway and dMMSE .75; the model .5, the middle; other points do not count."""
    losses = {"tf": [9, 0.5, 9], "ridge": [0, 0.25, 0], "dmmse": [1, 0.75, 1]}
    monkeypatch.setattr(pools, "paths_of", lambda run: losses)
    found = pool_curves.halfway(runs[1], "")
    assert found == {
        ("", name): ([16], [place]) for name, place in zip((pool_curves.TF, "Ridge", "dMMSE"), (0.5, 0, 1), strict=True)
    }
    assert pool_curves.halfway(runs[2], "") == {}  # no pool has two tasks to go between


def test_lines_are_measured_from_the_chord_of_their_own_ends(
    runs: tuple[Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 3 to 1 the chord is 2 halfway, where the loss is 5; only the M that are shown have a panel."""
    twin = made(tmp_path / "twin", 0, (1.0,) * 4, (1.0,) * 4)
    config = rundir.read_config(twin)
    write_json(twin / layout.CONFIG, to_dict(replace(config, data_seed=100)))
    pools.config_of.cache_clear()
    monkeypatch.setattr(pools, "losses_on_line", lambda run, other: np.array([3.0, 5.0, 1.0]))
    ((place, (shares, values)),) = pool_curves.lines(4.0)([*runs, twin], "").items()
    assert place == ("M = 4", pool_curves.TF)
    np.testing.assert_array_equal(shares, [0, 0.5, 1])
    np.testing.assert_array_equal(values, [0, 3, 0])


@pytest.mark.parametrize(
    ("losses", "rise"),
    [([1.0, 1.5], 0.5), ([1.5, 1.0], 0.0), ([4.0, 1.0, 1.0, 1.0, 4.0], 1.5), ([3.0, 2.0, 1.0], 0.0)],
)
def test_the_rise_of_means_over_three_records_and_of_two_records(losses: list[float], rise: float) -> None:
    """Means of 4, 1, 1, 1, 4 are 2.5, 2, 1, 2, 2.5; an untrained run has two records."""
    assert pools.smoothed_rise(np.array(losses)) == pytest.approx(rise, rel=1e-12)


def test_the_table_of_relative_distances_has_the_means_of_the_claims_on_the_same_seeds(tmp_path: Path) -> None:
    """M = 8 to dMMSE is the claim `some_tasks`, measured seed by seed; a table of other means is refused."""
    assert relative_distances(tmp_path) == NOT_MEASURED
    tasks, _, to_dmmse, to_ridge = relative_distances(ROOT / "report/task_diversity").splitlines()
    column = tasks.split(" | ").index("8")
    by_seed = ledger.read_measurements(ROOT / "report/claims.csv")["some_tasks"].values
    assert float(to_dmmse.split(" | ")[column]) == pytest.approx(np.exp(np.mean(np.log(by_seed))), abs=0.005)
    assert 0 < float(to_ridge.split(" | ")[column]) < 1
    text = (ROOT / "report/task_diversity/budgets.csv").read_text()
    (tmp_path / "budgets.csv").write_text(text.replace("geometric", "arithmetic"))
    with pytest.raises(StoreError, match="geometric means"):
        relative_distances(tmp_path)
