"""Sweeps from the command line to the CSV."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

from src.config import to_dict
from store import layout, rundir
from store.params import read_params
from sweeps.plan import cells
from tests.runners.tiny import INTERRUPTED, LSA1, Workshop, results
from tests.sweeps.tiny_sweep import GRID, SIZES, Place, copied, place, sweep, tiny_plan

FAILING = str(Path(__file__).parent / "failing")
FIRST = (
    "exp model ordering noise_mode p sigma placement seed test_mse align_cos align_l2 auroc ood_alpha3 status".split()
)


def test_the_table_has_a_row_for_every_planned_point_and_the_names_of_the_contract(swept: Place) -> None:
    rows = swept.rows()
    assert list(rows[0])[: len(FIRST)] == FIRST
    assert [(row["noise_mode"], float(row["p"])) for row in rows[::2]] == [
        ("clean", 0.0),
        ("clean", 0.0),
        ("label_noise", 0.0),
        ("label_noise", 0.5),
    ]
    assert {row["status"] for row in rows} == {"done"}
    assert {row["exp"] for row in rows} == {path.parent.name for path in swept.runs.glob(f"*/{layout.META}")}


def test_the_numbers_of_a_row_are_those_of_its_cell(swept: Place) -> None:
    for row in swept.rows():
        run = swept.runs / row["exp"]
        summary = json.loads((run / layout.SUMMARY).read_text())
        comparators = json.loads((run / layout.COMPARATORS).read_text())
        assert float(row["test_mse"]) == 2 * summary["headline"]["tf_loss"] == 2 * float(row["test_loss"])
        assert float(row["align_l2"]) == summary["alignment"]["l2_pred_diff"]
        assert float(row["ood_alpha3"]) == summary["ood"][-1]["test_mse"]
        assert float(row["mask_bayes_loss"]) == comparators["mask_bayes"]["loss"]
        assert float(row["gd_loss"]) == pytest.approx(comparators["gd_clean_step"]["loss"], rel=1e-5)
        assert (row["auroc"] == "") == (float(row["p"]) == 0)


def test_a_training_is_done_once_for_all_its_evaluations(swept: Place) -> None:
    """Cells of one seed have the same parameters, and each is evaluated on contexts of its own."""
    params = {row["exp"]: (swept.runs / row["exp"] / layout.PARAMS_PICKLE).read_bytes() for row in swept.rows()}
    assert (len(params), len(set(params.values()))) == (4, 2)
    noisy = {row["exp"]: row["test_loss"] for row in swept.rows()}
    assert len(set(noisy.values())) == 4


def test_a_cell_is_the_run_alone(workshop: Workshop, swept: Place, tmp_path: Path) -> None:
    """To the byte, of all files that both have; the cell has no figures and two files more."""
    row = next(row for row in swept.rows() if row["noise_mode"] == "label_noise" and float(row["p"]) > 0)
    words = "--eval_noise_mode label_noise --eval_noise_p 0.5 --eval_noise_sigma 0.5 --noise_mode label_noise".split()
    words += "--noise_p 0.5 --noise_sigma 0.5 --train_noise_mode clean --train_noise_p 0 --train_noise_sigma 0".split()
    done = workshop.run(LSA1, *SIZES, *words, "--seed", row["seed"], "--out", tmp_path / "alone", NPROC="1")
    assert done.returncode == 0, done.stderr
    alone, cell = results(tmp_path / "alone"), results(swept.runs / row["exp"])
    assert rundir.read_meta(tmp_path / "alone")["config_id"] == rundir.read_meta(swept.runs / row["exp"])["config_id"]
    assert set(cell) - set(alone) == {layout.ATTENTION_STATS, layout.COMPARATORS}
    assert [name for name in alone if alone[name] != cell[name]] == []


@pytest.mark.parametrize(("executor", "same"), [("process", True), ("packed", False)])
def test_executors_agree(workshop: Workshop, swept: Place, tmp_path: Path, executor: str, same: bool) -> None:
    """At width 1 to the byte; in a pack parameters to 1e-5."""
    at = place(tmp_path)
    done = sweep(workshop, at, "--seeds", "0,1", "--executor", executor)
    assert done.returncode == 0, done.stderr
    if same:
        assert at.table() == swept.table()
    for cell in cells(tiny_plan()):
        packed, alone = read_params(at.runs / cell.name), read_params(swept.runs / cell.name)
        for module, leaf in alone.items():
            for name, value in leaf.items():
                np.testing.assert_allclose(packed[module][name], value, atol=1e-5)


def test_a_dry_run_writes_nothing_and_says_what_is_left(workshop: Workshop, swept: Place, tmp_path: Path) -> None:
    fresh = sweep(workshop, place(tmp_path), "--seeds", "0,1", "--dry_run")
    assert (fresh.returncode, list(tmp_path.iterdir())) == (0, [])
    assert "8 rows of 4 cells: 4 planned" in fresh.stdout
    assert "4 cells to do: 2 trainings in 2 packs of at most 1 by process" in fresh.stdout
    before = swept.written()
    done = sweep(workshop, swept, "--seeds", "0,1,2", "--dry_run")
    assert "12 rows of 6 cells: 4 done, 2 planned" in done.stdout
    assert swept.written() == before


def test_status_and_collect_need_the_folder_alone(workshop: Workshop, swept: Place, tmp_path: Path) -> None:
    said = workshop.run("sweeps.status", "--runs_dir", swept.runs)
    assert said.stdout == "4 cells: 4 done\n"
    done = workshop.run("sweeps.collect", "--runs_dir", swept.runs, "--out", tmp_path / "again.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.csv").read_bytes() == swept.table()


def test_shards_are_parts_of_the_same_table(workshop: Workshop, swept: Place, tmp_path: Path) -> None:
    at = place(tmp_path)
    for part in ("1/2", "2/2"):
        before = at.written() if at.runs.exists() else {}
        done = sweep(workshop, at, "--seeds", "0,1", "--executor", "serial", "--shard", part)
        assert done.returncode == 0, done.stderr
        assert before.items() <= at.written().items()
    assert at.table() == swept.table()


def test_overwrite_trains_anew_and_nothing_else_does(workshop: Workshop, swept: Place, tmp_path: Path) -> None:
    at = copied(swept, tmp_path)
    before = at.written()
    assert sweep(workshop, at, "--seeds", "0,1", "--executor", "serial").returncode == 0
    assert at.written() == before
    done = sweep(workshop, at, "--seeds", "0,1", "--executor", "serial", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert not set(before.items()) & set(at.written().items())
    assert at.table() == swept.table()


def test_an_error_is_its_cells_alone_and_is_tried_again(workshop: Workshop, swept: Place, tmp_path: Path) -> None:
    at, victim = place(tmp_path), cells(tiny_plan())[2].name
    place_of_error = {"FAIL": f"*/{victim}/{layout.SUMMARY}", "PYTHONPATH": FAILING}
    failed = sweep(workshop, at, "--seeds", "0,1", "--executor", "serial", **place_of_error)
    assert failed.returncode == 1
    assert f"{victim}: RuntimeError: the sky has fallen" in failed.stderr
    assert {row["exp"] for row in at.rows() if row["status"] != "done"} == {victim}
    assert "the sky has fallen" in rundir.read_meta(at.runs / victim)["error"]
    before = at.written()
    again = sweep(workshop, at, "--seeds", "0,1", "--executor", "serial")
    assert again.returncode == 0, again.stderr
    assert before.items() <= at.written().items()
    assert at.table() == swept.table()


def test_a_run_that_diverges_has_its_row_and_is_not_tried_again(workshop: Workshop, tmp_path: Path) -> None:
    at, wild = place(tmp_path), ["--config.lr=1e30", "--config.grad_clip=0", "--executor", "serial"]
    first = sweep(workshop, at, "--seeds", "0", *wild)
    rows = at.rows()
    assert {row["status"] for row in rows} == {"diverged"}
    assert {row["test_mse"] for row in rows} == {""}
    when = {path: path.stat().st_mtime_ns for path in at.runs.glob(f"*/{layout.META}")}
    second = sweep(workshop, at, "--seeds", "0", *wild)
    assert "diverged: " in first.stderr
    assert second.returncode == first.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in at.runs.glob(f"*/{layout.META}")} == when


@pytest.mark.parametrize(("sent", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_stops_a_sweep_which_the_sentence_resumes(
    sent: str, status: int, workshop: Workshop, swept: Place, tmp_path: Path
) -> None:
    at = place(tmp_path)
    where = {"INTERRUPT": f"after:step_00000030.safetensors:{sent}", "PYTHONPATH": INTERRUPTED}
    stopped = sweep(workshop, at, "--seeds", "0,1", "--executor", "serial", **where)
    assert stopped.returncode == status, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert stopped.stdout.splitlines()[-1].startswith("stopped; the same command without --overwrite resumes it: ")
    assert {row["status"] for row in at.rows()} == {"stopped", "planned"}
    done = sweep(workshop, at, "--seeds", "0,1", "--executor", "serial")
    assert done.returncode == 0, done.stderr
    assert at.table() == swept.table()
    assert signal.Signals[sent]


def test_a_cell_is_a_run_directory_of_its_config(swept: Place) -> None:
    for cell in cells(tiny_plan()):
        run = swept.runs / cell.name
        assert to_dict(rundir.read_config(run)) == to_dict(cell.config)
        assert rundir.read_meta(run)["threads"] == rundir.read_meta(run)["pack_width"] == 1
    assert GRID
