"""The table of a sweep: who writes it when, and what it says of runs that failed or whose numbers are not finite."""

import json
import os
import resource
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.task import Outcome, Task
from icl_lab.store import layout, rundir
from icl_lab.store.atomic import write_bytes
from icl_lab.store.lock import locked, locked_file
from icl_lab.store.readers import StoreError
from icl_lab.sweeps import collect, command, table, work
from icl_lab.sweeps.execution import Execution
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import Point, plan, runs_of
from icl_lab.sweeps.plan_file import write_plan
from icl_lab.sweeps.status import run_status, statuses
from tests.doors import Ran
from tests.runners.tiny import Workshop
from tests.sweeps.tiny_sweep import SIZES, Paths, copied, sweep, sweep_paths, tiny_plan


def changed(path: Path, *names: str) -> None:
    """A JSON file with null at a place."""
    found = inner = rundir.read_json(path)
    for name in names[:-1]:
        inner = inner[name]
    inner[names[-1]] = None
    path.write_text(json.dumps(found))


def test_numbers_that_are_not_finite_are_empty(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    at = copied(swept, tmp_path)
    run = at.runs / at.rows()[0]["exp"]
    for name in ("tf_loss", "gd_loss"):
        changed(run / layout.SUMMARY, "headline", name)
    changed(run / layout.COMPARATORS, "tuned_step_size")
    assert ran("sweeps.collect", *at.flags()).status == 0
    row = at.rows()[0]
    empty = {name for name, value in row.items() if not value}
    was = {name for name, value in swept.rows()[0].items() if not value}
    lost = {"test_mse", "test_loss", "test_gain", "gd_mse", "test_gd_loss", "gd_tuned_over_clean_step"}
    assert empty - was == lost
    assert row["status"] == "done"


@pytest.mark.slow
def test_a_run_with_an_infinite_loss_is_done_and_stops_nothing(workshop: Workshop, tmp_path: Path) -> None:
    at = sweep_paths(tmp_path)
    noise = "--models lsa1 --noise_mode label_noise --p 0.5 --sigma 0.5,1e18,1e21 --placement mixed".split()
    words = ["--train_noise_mode", "clean", "--seeds", 0, "--executor", "serial"]
    done = sweep(workshop, at, *words, grid=[*noise, *SIZES], PYTHONWARNINGS="ignore")  # numbers overflow
    assert done.returncode == 0, done.stderr
    found = {row["sigma"]: row for row in at.rows()}
    assert {row["status"] for row in found.values()} == {"done"}
    assert [sigma for sigma, row in found.items() if row["test_mse"]] == ["0.5"]
    assert any("auroc" in name and not value for name, value in found["1e+21"].items())
    undefined = {"mask_bayes_auroc"}  # of 6 pairs in 4 dimensions without noise
    assert {name for name, value in found["0.5"].items() if "auroc" in name and not value} == undefined


def test_runs_that_were_measured_without_detectors_have_no_numbers_of_them(
    swept: Paths, tmp_path: Path, ran: Ran
) -> None:
    """All else of such a run is in the table as it was."""
    at = copied(swept, tmp_path)
    for path in at.runs.glob(f"*/{layout.ATTENTION_STATS}"):
        stats = rundir.read_json(path)
        del stats["detectors"]
        path.write_text(json.dumps(stats))
    assert ran("sweeps.collect", *at.flags()).status == 0
    expected = [row | {"mask_bayes_auroc": "", "loo_gd_auroc": ""} for row in swept.rows()]
    assert at.rows() == expected
    assert expected != swept.rows()


def test_a_row_says_whether_its_run_trained_and_what_is_not_defined(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    """By the numbers of the run, whoever wrote them; 6 pairs in 4 dimensions without noise have no density."""
    at = copied(swept, tmp_path)
    rows = at.rows()
    assert {row["trained"] for row in rows} == {"false"}  # after 60 steps
    for row in rows:
        assert row["not_defined"].startswith("mask_bayes: num_pairs is 6 with dim 4") == (float(row["p"]) > 0)
    run = at.runs / rows[0]["exp"]
    summary = rundir.read_json(run / layout.SUMMARY)
    for name in ("trained", "one_step"):  # as an earlier version wrote it
        del summary[name]
    summary["alignment"]["align_cos"] = 0.6
    summary["headline"]["tf_loss"] = 0.0
    (run / layout.SUMMARY).write_text(json.dumps(summary))
    assert ran("sweeps.collect", *at.flags()).status == 0
    assert at.rows()[0]["trained"] == "true"
    rundir.update_meta(run, status="stopped")
    assert ran("sweeps.collect", *at.flags()).status == 0
    assert at.rows()[0]["trained"] == ""


@pytest.mark.parametrize(("status", "shown"), [("stopped", "failed"), ("running", "failed"), ("diverged", "diverged")])
def test_a_run_that_failed_this_time_has_failed_whatever_it_was(status: str, shown: str, tmp_path: Path) -> None:
    row = tiny_plan()[0]
    rundir.begin(tmp_path / row.run.name, row.run.config)
    rundir.update_meta(tmp_path / row.run.name, status=status)
    assert collect.row_values(row, tmp_path, {row.run.name})["status"] == shown
    assert collect.row_values(row, tmp_path)["status"] == status


def test_a_finished_run_of_another_config_in_its_place_is_no_run(tmp_path: Path) -> None:
    row = tiny_plan()[0]
    run, other = tmp_path / row.run.name, replace(row.run.config, init_seed=row.run.config.init_seed + 1)
    for config, shown in ((other, "failed"), (row.run.config, "done")):
        rundir.begin(run, config)
        rundir.update_meta(run, status="done", config_id=config_id(config))
        assert run_status(row.run, tmp_path)[0] == shown
        rundir.clear(run)


def execution(at: Paths, **changes: Any) -> Execution:
    return Execution(at.runs, at.out, "serial", 1, (1, 1), dry_run=False, overwrite=False)._replace(**changes)


def test_a_table_that_others_are_writing_is_left_to_them_while_runs_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a sweep whose packs end without an error and without being done says that it is not done."""
    at = sweep_paths(tmp_path)

    def busy(tasks: Sequence[Task], *_: object) -> Iterator[Outcome]:
        for task in tasks:
            with locked_file(at.out):
                yield Outcome(task, ({}, False))

    monkeypatch.setattr(work, "TABLE_INTERVAL", -1.0)
    monkeypatch.setattr(choice, "EXECUTORS", {"serial": choice.Kind(busy, 1)})
    assert command.carry_out(tiny_plan(), execution(at)) == 1
    assert {row["status"] for row in at.rows()} == {"planned"}
    assert "the same command without --overwrite tries the failed runs again" in capsys.readouterr().err


def test_a_table_is_collected_when_no_other_is_writing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = sweep_paths(tmp_path)
    write_plan(at.runs, at.out, tiny_plan())
    monkeypatch.setattr(table, "LOCK_TIMEOUT", 0.0)
    with locked_file(at.out), pytest.raises(StoreError, match="in use by another process"):
        collect.main([*map(str, at.flags())])
    assert not at.out.exists()
    collect.main([*map(str, at.flags())])
    assert len(at.rows()) == 8


def preview(rows: Sequence[Point], how: Execution, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert command.carry_out(rows, how._replace(dry_run=True)) == 0
    return capsys.readouterr().out.splitlines()


def test_a_dry_run_knows_what_overwriting_and_shards_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at, rows = sweep_paths(tmp_path), tiny_plan()
    for run in runs_of(rows):
        rundir.begin(at.runs / run.name, run.config)
        rundir.update_meta(at.runs / run.name, status="done")
    assert preview(rows, execution(at), capsys)[-1].startswith("0 runs to do: 0 trainings in 0 packs")
    assert preview(rows, execution(at, overwrite=True), capsys)[-1].startswith("4 runs to do: 2 trainings in 2 packs")
    shards = [preview(rows, execution(at, shard=(index, 3)), capsys)[-2] for index in (1, 2, 3)]
    counts = [tuple(map(int, line.split()[:4:3])) for line in shards]
    assert tuple(map(sum, zip(*counts, strict=True))) == (8, 4)
    assert all(8 * of == 4 * number for number, of in counts)  # each run has two rows


def test_overwriting_more_runs_than_files_may_be_open(tmp_path: Path) -> None:
    at, rows = sweep_paths(tmp_path), plan([Grid(("lsa1",), {}, tuple(range(30)), {"dim": 2})])
    for run in runs_of(rows):
        rundir.begin(at.runs / run.name, run.config)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = (number for number in range(soft) if str(number) not in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(islice(free, 20, None)), hard))
    try:
        work._start(rows, runs_of(rows), execution(at, overwrite=True))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert not any(rundir.has_begun(at.runs / run.name) for run in runs_of(rows))


def test_overwriting_changes_nothing_while_a_run_is_in_use(tmp_path: Path) -> None:
    at, rows = sweep_paths(tmp_path), tiny_plan()
    for run in runs_of(rows):
        rundir.begin(at.runs / run.name, run.config)
    with locked(at.runs / runs_of(rows)[-1].name), pytest.raises(StoreError, match="in use by another process"):
        work._start(rows, runs_of(rows), execution(at, overwrite=True))
    assert all(rundir.has_begun(at.runs / run.name) for run in runs_of(rows))
    assert not at.out.exists()


def test_checkpoints_that_a_kill_left_with_a_done_run_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, rows = sweep_paths(tmp_path), tiny_plan()
    for run in runs_of(rows):
        rundir.begin(at.runs / run.name, run.config)
        rundir.update_meta(at.runs / run.name, status="done")
        write_bytes(layout.checkpoint(at.runs / run.name, 60), b"")
    busy = runs_of(rows)[-1]
    monkeypatch.setattr(work, "start", lambda *_: [])
    monkeypatch.setattr(work, "collect", lambda *_: [])
    with locked(at.runs / busy.name):
        assert command.carry_out(rows, execution(at)) == 0
    assert set(statuses(runs_of(rows), at.runs).values()) == {"done"}
    assert [path.parent.name for path in at.runs.glob(f"*/{layout.CHECKPOINTS}")] == [busy.name]
