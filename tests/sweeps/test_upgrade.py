"""A sweep's folder of an earlier version: its cells have the names of then, and are renamed."""

import csv
import json
import os
from pathlib import Path

import pytest

from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.store import StoreError, layout, ownership, rundir
from icl_lab.store.atomic import replace_file
from icl_lab.store.lock import locked
from icl_lab.sweeps import upgrade
from icl_lab.sweeps.plan import Row, cell_of
from icl_lab.sweeps.plan_file import find_plan, read_plan
from icl_lab.sweeps.upgrade import earlier_cells, rename_cells
from tests.doors import Ran, snapshot
from tests.runners.schema_1 import config_of, put_back
from tests.sweeps.tiny_sweep import GRID, Paths, copied

DRIVER = "eval_noise"


@pytest.fixture
def earlier(swept: Paths, tmp_path: Path) -> tuple[Paths, dict[str, str]]:
    """The finished sweep as an earlier version left it, and the earlier names by today's."""
    at, names = copied(swept, tmp_path), {}
    for meta in sorted(at.runs.glob(f"*/{layout.META}")):
        today = meta.parent.name
        names[today] = f"{today.rpartition('-')[0]}-{put_back(meta.parent)[:8]}"
        meta.parent.rename(at.runs / names[today])
    table = at.out.read_text()
    for today, then in names.items():
        assert table.count(today) > 0
        table = table.replace(today, then)
    at.out.write_text(table)
    (plan,) = at.runs.glob("plan_*.json")
    rows = [{"asked": config_of(row.asked), "cell": config_of(row.cell.config)} for row in read_plan(plan)]
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"rows": rows}))
    return at, names


def contents(runs: Path, names: dict[str, str]) -> dict[str, object]:
    """Every file of the cells, under today's names."""
    return {
        f"{today}/{file}": value
        for today, then in names.items()
        for file, value in snapshot(runs / (then if (runs / then).exists() else today)).items()
        if file != layout.LOCK
    }


@pytest.mark.parametrize("command", [DRIVER, "sweeps.collect"])
def test_its_cells_and_rows_get_the_names_of_today_and_nothing_is_trained(
    command: str, earlier: tuple[Paths, dict[str, str]], swept: Paths, ran: Ran
) -> None:
    at, names = earlier
    before = contents(at.runs, names)
    assert at.table() != swept.table()
    done = ran(command, *([*GRID, "--seeds", "0,1"] if command == DRIVER else []), *at.flags())
    assert (done.status, done.err) == (0, "")
    if command == DRIVER:
        assert f"renamed {len(names)} cells of an earlier version" in done.out
    assert {path.name for path in at.runs.iterdir() if path.is_dir()} == {*names}
    assert contents(at.runs, names) == before
    assert at.table() == swept.table()


def test_status_and_a_dry_run_count_them_and_touch_nothing(earlier: tuple[Paths, dict[str, str]], ran: Ran) -> None:
    at, names = earlier
    before = snapshot(at.runs)
    said = f"{len(names)} cells of an earlier version: the sweep renames and does not retrain them\n"
    for done in (
        ran("sweeps.status", "--runs_dir", at.runs),
        ran(DRIVER, *GRID, "--seeds", "0,1", *at.flags(), "--dry_run"),
    ):
        assert (done.status, done.out.endswith(said)) == (0, True)
    assert snapshot(at.runs) == before


@pytest.mark.parametrize("renamed", [0, 1])
def test_what_a_kill_leaves_undone_is_done_by_the_next(
    renamed: int, earlier: tuple[Paths, dict[str, str]], swept: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is written before the first cell is renamed."""
    at, names = earlier
    rows, done = read_plan(find_plan(at.runs, at.out)), []
    rename = os.rename

    def cut_short(old: Path, new: Path) -> None:
        if len(done) == renamed:
            raise KeyboardInterrupt
        rename(old, new)
        done.append(new)

    monkeypatch.setattr(os, "rename", cut_short)
    with pytest.raises(KeyboardInterrupt):
        rename_cells(rows, at.runs, at.out)
    monkeypatch.undo()
    assert (len(done), at.table()) == (renamed, swept.table())
    left = len(names) - renamed
    assert rename_cells(rows, at.runs, at.out) == f"renamed {left} cells of an earlier version"
    assert {path.name for path in at.runs.iterdir() if path.is_dir()} == {*names}
    assert rename_cells(rows, at.runs, at.out) == ""


def test_while_another_process_has_a_cell_nothing_is_renamed(earlier: tuple[Paths, dict[str, str]], ran: Ran) -> None:
    at, names = earlier
    held = at.runs / max(names.values())
    with locked(held):
        before = snapshot(held), at.table()
        done = ran(DRIVER, *GRID, "--seeds", "0,1", *at.flags())
        assert (done.status, done.out) == (2, "")
        assert done.err == f"error: {held} is in use by another process\n"
        assert (snapshot(held), at.table()) == before
    assert {path.name for path in at.runs.iterdir() if path.is_dir()} == {*names.values()}


def test_who_has_lost_the_folder_renames_nothing(
    earlier: tuple[Paths, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    at, names = earlier

    def then_lost(path: Path, content: bytes) -> None:
        replace_file(path, content)
        (at.runs / layout.LOCK).write_bytes(ownership.Owner("0" * 16, "elsewhere boot 1", 1, "1").content())

    monkeypatch.setattr(upgrade, "replace_file", then_lost)
    with pytest.raises(StoreError, match="was taken over by another process"):
        rename_cells(read_plan(find_plan(at.runs, at.out)), at.runs, at.out)
    assert {path.name for path in at.runs.iterdir() if path.is_dir()} == {*names.values()}


def test_another_table_over_the_same_cells_is_renamed_too(
    earlier: tuple[Paths, dict[str, str]], swept: Paths, ran: Ran
) -> None:
    at, names = earlier
    second = Paths(at.runs, at.out.with_name("second.csv"))
    second.out.write_text(at.out.read_text())
    line = [DRIVER, *GRID, "--seeds", "0,1"]
    done = ran(*line, *at.flags())
    assert (done.status, done.err, at.table()) == (0, "", swept.table())
    before = snapshot(at.out.parent)
    said = f"{second.out} has cell names of an earlier version: the sweep renames them\n"
    done = ran(*line, *second.flags(), "--dry_run")
    assert (done.status, done.out.endswith(said)) == (0, True)
    few = ran(*line[:-1], "0", *second.flags(), "--dry_run")
    assert (few.status, "that this sweep does not plan" in few.err) == (2, True)  # as the sweep itself would be
    assert snapshot(at.out.parent) == before
    with locked(at.runs):  # of which nothing is renamed
        done = ran("sweeps.collect", *second.flags(), "--plan", find_plan(at.runs, at.out))
    assert (done.status, done.err, second.table()) == (0, "", swept.table())
    assert {path.name for path in at.runs.iterdir() if path.is_dir()} == {*names}


def test_rows_of_another_folder_keep_their_names(earlier: tuple[Paths, dict[str, str]], ran: Ran) -> None:
    """In one table with those of this folder: their cells are not renamed either."""
    at, names = earlier
    rows = [row | {"runs_dir": "elsewhere", "seed": f"1{row['seed']}"} for row in at.rows()]
    assert len(rows) == 8
    with at.out.open("a") as file:
        csv.DictWriter(file, rows[0]).writerows(rows)
    done = ran(DRIVER, *GRID, "--seeds", "0,1", *at.flags(), "--append")
    assert (done.status, done.err) == (0, "")
    cells = {
        row["runs_dir"]: {line["exp"] for line in at.rows() if line["runs_dir"] == row["runs_dir"]} for row in at.rows()
    }
    assert cells == {"runs": {*names}, "elsewhere": {*names.values()}}


@pytest.mark.parametrize(("model", "then"), [("sine", "sine_random_seed0"), ("lsa", "lsa_random_seed0")])
def test_cells_are_known_by_their_ids_whatever_their_names_said(model: str, then: str, tmp_path: Path) -> None:
    """Names of then had an order also where there was none."""
    cell = cell_of(resolve(preset(model)))
    rundir.begin(tmp_path / then, cell.config)
    rundir.update_meta(tmp_path / then, status="done")
    name = f"{then}-{put_back(tmp_path / then)[:8]}"
    (tmp_path / then).rename(tmp_path / name)
    assert earlier_cells([Row(cell.config, cell)], tmp_path) == {name: cell.name}


def test_a_run_of_another_config_under_such_a_name_is_none(tmp_path: Path) -> None:
    cell, other = (cell_of(resolve(preset(model))) for model in ("sine", "sine_control"))
    rundir.begin(tmp_path / "run", cell.config)
    rundir.update_meta(tmp_path / "run", status="done")
    identity = put_back(tmp_path / "run")
    rundir.write_json(
        tmp_path / "run" / layout.CONFIG, {**rundir.read_json(tmp_path / "run" / layout.CONFIG), "data_seed": 3}
    )
    (tmp_path / "run").rename(tmp_path / f"sine_random_seed0-{identity[:8]}")
    assert earlier_cells([Row(cell.config, cell), Row(other.config, other)], tmp_path) == {}
