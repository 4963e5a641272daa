"""Whoever trains a sweep, its numbers are the same, nothing is done twice, and every planned point has its row."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_metrics
from icl_lab.sweeps.plan import runs_of, shard
from icl_lab.sweeps.plan_file import find_plan, read_plan
from tests.doors import Ran, snapshot
from tests.plots.sweep import FIRST
from tests.runners.tiny import LSA1, Workshop, results
from tests.sweeps.tiny_sweep import GRID, SIZES, Paths, copied, sweep, sweep_paths, tiny_plan

pytestmark = pytest.mark.robust

SEEDS = ["--seeds", "0,1"]
HEADLINE = ("gd_loss", "ridge_loss", "loss_ratio", "loss_ratio_se")
NOISY = "--noise_mode label_noise --noise_p 0.5 --noise_sigma 0.5 --train_noise_mode clean --train_noise_p 0".split()


def test_every_planned_point_has_its_row(swept: Paths) -> None:
    rows = swept.rows()
    assert list(rows[0])[: len(FIRST) + 1] == [*FIRST, "status"]
    assert [row["exp"] for row in rows] == [row.run.name for row in tiny_plan()]
    assert {row["status"] for row in rows} == {"done"}
    settings = [(row["noise_mode"], row["p"], row["sigma"], row["seed"]) for row in rows]
    clean = [("clean", "0.0", "0.0", seed) for _ in ("0.0", "0.5") for seed in "01"]  # in force, whatever was asked
    assert settings == clean + [("label_noise", p, "0.5", seed) for p in ("0.0", "0.5") for seed in "01"]
    assert {row["train_noise_mode"] for row in rows} == {"clean"}
    assert sorted(path.name for path in swept.runs.iterdir() if path.is_dir()) == sorted({row["exp"] for row in rows})


def test_a_rows_numbers_are_its_runs(swept: Paths) -> None:
    for row in swept.rows():
        summary = rundir.read_json(swept.runs / row["exp"] / layout.SUMMARY)
        separation = rundir.read_json(swept.runs / row["exp"] / layout.ATTENTION_STATS)
        far = next(found for found in summary["ood"] if found["alpha"] == 3)
        assert float(row["test_mse"]) == 2 * summary["headline"]["tf_loss"]
        assert float(row["align_cos"]) == summary["alignment"]["align_cos"]
        assert float(row["align_l2"]) == summary["alignment"]["l2_pred_diff"]
        assert float(row["ood_alpha3"]) == far["test_mse"]
        assert row["auroc"] == str(separation["abs_influence"]["auroc"] or "")
        assert row["loo_gd_auroc"] == str(separation["detectors"]["loo_gd"]["auroc"] or "")
        for prefix, part, names in (("test", "headline", HEADLINE), ("eval", "alignment", ("slope", "preds_diff"))):
            assert [float(row[f"{prefix}_{name}"]) for name in names] == [summary[part][name] for name in names]
        for far in summary["ood"]:
            assert float(row[f"gd_ood_alpha{far['alpha']:g}"]) == far["gd_test_mse"]
        losses = rundir.read_json(swept.runs / row["exp"] / layout.COMPARATORS)
        for name in ("gd_tuned_step", "linear_mmse", "gd_positions", "gd_positions_trained"):
            assert float(row[f"test_{name}_loss"]) == losses[name]["loss"]
    assert any(row["auroc"] and row["loo_gd_auroc"] for row in swept.rows())


def test_synonyms_share_a_run_and_what_differs_in_evaluation_alone_a_training(swept: Paths) -> None:
    by_seed = {seed: {row["exp"] for row in swept.rows() if row["seed"] == seed} for seed in "01"}
    for names in by_seed.values():
        assert len(names) == 2
        assert len({(swept.runs / name / layout.PARAMS_PICKLE).read_bytes() for name in names}) == 1
        seconds = {rundir.read_meta(swept.runs / name)["run_seconds"] for name in names}
        assert len(seconds) == 1  # two trainings of one config take a different time, to the digits of a clock


def test_a_run_is_the_run_that_the_runner_makes_of_its_config(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    """Every file that both leave, to the byte."""
    words = [*SIZES, *NOISY, "--train_noise_sigma", "0", "--difficulty", "gd_error", "--seed", "1"]
    done = workshop.run(LSA1, *words, "--keep_state=false", "--out", tmp_path / "alone", NPROC="1")
    assert done.returncode == 0, done.stderr
    alone, run = results(tmp_path / "alone"), results(next(swept.runs.glob("*label_noise*seed1*")))
    assert alone.keys() <= run.keys()
    assert {layout.PARAMS, layout.METRICS, layout.SUMMARY, layout.ALIGNMENT, layout.OOD} <= alone.keys()
    assert [name for name in alone if alone[name] != run[name]] == []


def test_in_processes_of_their_own_runs_have_the_same_bytes(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    at = sweep_paths(tmp_path)
    done = sweep(workshop, at, *SEEDS, "--executor", "process")
    assert done.returncode == 0, done.stderr
    assert at.table() == swept.table()
    for row in swept.rows():
        assert results(at.runs / row["exp"]) == results(swept.runs / row["exp"])
        assert rundir.read_meta(at.runs / row["exp"])["threads"] == 1


@pytest.mark.slow
def test_in_packs_runs_have_the_same_numbers(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    at = sweep_paths(tmp_path)
    done = sweep(workshop, at, *SEEDS, "--executor", "packed", "--width", 4)
    assert done.returncode == 0, done.stderr
    for row, expected in zip(at.rows(), swept.rows(), strict=True):
        assert rundir.read_meta(at.runs / row["exp"])["pack_width"] == 4
        for name, value in expected.items():
            try:
                np.testing.assert_allclose(float(row[name] or "nan"), float(value or "nan"), rtol=1e-5, atol=1e-5)
            except ValueError:
                assert row[name] == value
        for one, other in zip(*(read_metrics(each.runs / row["exp"]) for each in (at, swept)), strict=True):
            np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_a_seed_more_retrains_nothing(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    at = copied(swept, tmp_path)
    before = at.written()
    done = sweep(workshop, at, "--seeds", "0,2,1", "--executor", "serial")
    assert done.returncode == 0, done.stderr
    assert {name: at.written()[name] for name in before} == before
    assert len(at.written()) == len(before) * 3 // 2
    assert {row["status"] for row in at.rows()} == {"done"}
    old = [line for line, row in zip(at.table().splitlines()[1:], at.rows(), strict=True) if row["seed"] != "2"]
    assert old == swept.table().splitlines()[1:]


def test_finished_nothing_is_left_to_do_and_the_table_is_written_again(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    at = copied(swept, tmp_path)
    before = snapshot(at.runs / swept.rows()[0]["exp"]), at.written()
    at.out.unlink()
    done = ran("eval_noise", *GRID, *SEEDS, *at.flags())
    assert (done.status, done.err) == (0, "")
    assert "results.csv: 8 of 8 planned rows are done\n4 of 4 runs finished earlier (" in done.out
    assert (snapshot(at.runs / swept.rows()[0]["exp"]), at.written()) == before
    assert at.table() == swept.table()


@pytest.mark.slow
def test_overwrite_trains_anew(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    at = copied(swept, tmp_path)
    before = at.written()
    done = sweep(workshop, at, *SEEDS, "--executor", "serial", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert at.written().keys() == before.keys()
    assert all(at.written()[name] > when for name, when in before.items())
    assert at.table() == swept.table()


@pytest.mark.slow
def test_shards_do_a_sweep_in_parts(swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    at, chosen = sweep_paths(tmp_path), runs_of(tiny_plan())
    for index in (1, 2):
        done = sweep(workshop, at, *SEEDS, "--executor", "serial", "--shard", f"{index}/2")
        assert done.returncode == 0, done.stderr
        finished = {name.partition("/")[0] for name in at.written()}
        assert finished == {run.name for part in range(1, index + 1) for run in shard(chosen, part, 2)}
        statuses = {row["exp"]: row["status"] for row in at.rows()}
        assert {name for name, status in statuses.items() if status == "done"} == finished
        assert set(statuses.values()) <= {"done", "planned"}
    assert at.table() == swept.table()


def test_a_dry_run_says_what_is_left_and_does_nothing(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    at = copied(swept, tmp_path)
    lost = next(at.runs.glob("*label_noise*seed1*"))
    shutil.rmtree(lost)
    before = snapshot(tmp_path)
    done = ran("eval_noise", *GRID, *SEEDS, *at.flags(), "--dry_run", "--executor", "packed")
    assert (done.status, done.err) == (0, "")
    assert snapshot(tmp_path) == before
    *each, counts, work, places = done.out.splitlines()
    assert sorted(line.split()[0] for line in each) == ["done", "done", "done", "planned"]
    assert f"planned    {lost}" in each
    assert counts == "8 rows of 4 runs: 3 done, 1 planned"
    assert work.startswith("1 runs to do: 1 trainings in 1 packs of at most 8, executor packed; about 0 min")
    assert places.startswith("7 of 8 places in packs are empty and take as long as a training")
    assert places.endswith("with --width 1 there are fewer or none")


def test_a_dry_run_of_what_is_not_there_makes_nothing(tmp_path: Path, ran: Ran) -> None:
    done = ran("studies.run", "order_noise", "--dry-run")
    assert done.status == 0
    assert done.out.splitlines()[-1].startswith("270 runs to do: ")
    assert list(tmp_path.iterdir()) == []


def test_status_and_collect_read_what_is_there(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    at = copied(swept, tmp_path)
    assert ran("sweeps.status", "--runs_dir", at.runs).out == "4 runs: 4 done\n"
    at.out.unlink()
    assert ran("sweeps.collect", *at.flags()).out.endswith("8 of 8 planned rows are done\n")
    assert at.table() == swept.table()
    broken, lost, *_ = (at.runs / run.name for run in runs_of(tiny_plan()))
    rundir.update_meta(broken, status="failed", error="Traceback\n  line 3\nValueError: so\x1b[31m it is\n")
    shutil.rmtree(lost)
    lost.write_text("not a folder")
    said = ran("sweeps.status", "--runs_dir", at.runs).out.splitlines()
    assert f"failed: {broken}: ValueError: so\\x1b[31m it is" in said
    assert f"failed: {lost}: {lost} is a file, not a run directory" in said
    assert said[-1] == "4 runs: 2 done, 2 failed"
    ran("sweeps.collect", *at.flags())
    by_name = {row["exp"]: row for row in at.rows()}
    assert by_name[broken.name]["status"] == by_name[lost.name]["status"] == "failed"
    assert by_name[broken.name]["test_mse"] == ""


def test_the_plan_is_kept_with_the_sweep(swept: Paths) -> None:
    assert read_plan(find_plan(swept.runs, swept.out)) == tiny_plan()


def test_skipped_runs_of_other_sources_are_counted_in_one_line(
    swept: Paths, workshop: Workshop, tmp_path: Path
) -> None:
    at = copied(swept, tmp_path)
    first, *others = sorted(path.parent for path in at.runs.glob("*/meta.json"))
    rundir.update_meta(first, sources=rundir.read_meta(first)["sources"] | {"src/train.py": "0" * 16})
    for run, day in zip([first, *others], [3, 1, *[2] * len(others)], strict=False):
        rundir.update_meta(run, end=f"2026-11-0{day}T10:00:00+00:00")
    done = sweep(workshop, at, "--seeds", "0,1", "--executor", "serial")
    assert done.returncode == 0, done.stderr
    runs = len(others) + 1
    span = "2026-11-01 to 2026-11-03"
    earlier = f"{runs} of {runs} runs finished earlier ({span}) and were not trained again; --overwrite retrains them"
    line = f"src/train.py has changed since 1 of {runs} finished runs began; --overwrite retrains them"
    assert done.stdout.splitlines()[2:] == [earlier, line]  # after what is planned and what is done
    assert at.table() == swept.table()
