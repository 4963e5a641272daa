"""A table keeps what a sweep does not plan, or the sweep is refused: rows of other grids, folders and writers."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.lab.configs.registry import family_of_model, outputs_of
from icl_lab.store import outputs, rundir
from icl_lab.store.readers import StoreError
from icl_lab.sweeps import table
from icl_lab.sweeps.collect import collect, start
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import plan
from icl_lab.sweeps.table import RowPolicy
from tests.doors import ROOT, Ran, Refused
from tests.runners.tiny import Workshop
from tests.sweeps.tiny_sweep import GRID, Paths, copied

pytestmark = pytest.mark.robust

PLAIN = RowPolicy()
SETTINGS = ("exp", "model", "p", "seed", "results_version", table.FOLDER)


def rows(names: str, folder: str = "runs", status: str = "done") -> list[dict[str, Any]]:
    """A row for each letter, with a number where it is done; capitals are synonyms: other settings, the same run."""
    return [
        {
            "exp": f"run-{name.lower()}",
            "model": "lsa1",
            "p": 0.5 if name.isupper() else 0.25,
            "seed": ord(name.lower()),
            "status": status,
            "test_mse": ord(name) / 7 if status == "done" else None,
            "note": 'a "quoted", run',
            "results_version": 4,
            table.FOLDER: folder,
        }
        for name in names
    ]


def lines(out: Path) -> list[str]:
    return out.read_text().splitlines()[1:]


def put(out: Path, own: Sequence[dict[str, Any]], terms: RowPolicy = PLAIN) -> None:
    """What a sweep does first."""
    table.check(out, own, SETTINGS, terms)
    table.write(out, own, SETTINGS, alone=terms.replace)


def test_a_plan_that_holds_the_old_one_extends_it(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    put(out, rows("ab"))
    first = lines(out)
    put(out, rows("abcd"))
    assert lines(out)[:2] == first
    assert len(lines(out)) == 4


@pytest.mark.parametrize(
    "other", [rows("a"), rows("cd"), rows("ab", folder="elsewhere"), [row | {"p": 0.5} for row in rows("ab")]]
)
def test_rows_that_are_not_planned_are_refused_kept_or_let_go_of(other: list[dict[str, Any]], tmp_path: Path) -> None:
    """Another grid, another folder with runs of the same names, the same runs asked for in other words."""
    out = tmp_path / "t.csv"
    put(out, rows("ab"))
    before = out.read_bytes()
    with pytest.raises(StoreError, match=r"that this sweep does not plan, such as run-\w; --append keeps them, --rep"):
        put(out, other)
    assert out.read_bytes() == before
    put(out, other, RowPolicy(replace=True))
    assert len(lines(out)) == len(other)


@given(st.lists(st.tuples(st.sampled_from(["runs", "other"]), st.text("abcdABCD", min_size=1, max_size=4)), max_size=6))
def test_appended_rows_leave_all_others_untouched(tmp_path_factory: pytest.TempPathFactory, sweeps: list[Any]) -> None:
    """To the letter and in their order, whichever sweeps append to one table in whatever order."""
    out = tmp_path_factory.mktemp("table") / "t.csv"
    put(out, rows("xy", folder="first"))
    held: dict[tuple[str, str], str] = {}
    for folder, names in sweeps:
        own = rows(sorted(set(names)), folder)
        before = lines(out)
        put(out, own, RowPolicy(append=True))
        held |= {(folder, name): f"run-{name.lower()},lsa1,{0.5 if name.isupper() else 0.25}," for name in names}
        after = lines(out)
        assert after[: len(before)] == before  # nothing has moved, and nothing has changed
        assert len(after) == 2 + len(held)
        for (place, _), first in held.items():
            assert sum(line.startswith(first) and line.endswith(f",{place}") for line in after) == 1


def test_numbers_whose_runs_are_gone_are_not_dropped_silently(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    put(out, rows("ab"))
    for terms in (RowPolicy(), RowPolicy(append=True)):
        with pytest.raises(StoreError, match="has the numbers of 2 rows whose runs are no longer in runs"):
            put(out, rows("abc", status="planned"), terms)
    one = [*rows("a", status="planned"), *rows("b")]
    with pytest.raises(StoreError, match="has the numbers of 1 row whose runs are no longer in runs"):
        put(out, one, RowPolicy(trains=False))
    put(out, one)  # a sweep trains it again
    put(out, [*rows("a"), *rows("b", status="failed")], RowPolicy(trains=False))  # a run is damaged: the table says so
    put(out, rows("ab", status="planned"), RowPolicy(redo=True))  # they are retrained


def test_a_table_of_an_earlier_version_has_no_folders_and_is_taken_for_this_ones(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    earlier = [{name: value for name, value in row.items() if name != table.FOLDER} for row in rows("ab")]
    out.write_bytes(table.csv_bytes(earlier))
    put(out, rows("ab"))
    assert [line.rsplit(",", 1)[1] for line in lines(out)] == ["runs", "runs"]
    out.write_bytes(table.csv_bytes(earlier))
    put(out, rows("c"), RowPolicy(append=True))
    put(out, rows("ab"), RowPolicy(append=True))  # the rows that had no folder are these
    assert [line.split(",")[0] for line in lines(out)] == ["run-a", "run-b", "run-c"]
    assert {line.rsplit(",", 1)[1] for line in lines(out)} == {"runs"}


def test_a_number_is_itself_however_its_column_is_written(tmp_path: Path) -> None:
    """4 becomes 4.0 in a table that also has inf: the row is the same, and is not there twice."""
    out = tmp_path / "t.csv"
    pools = [row | {"p": p} for row, p in zip(rows("ab"), (4, float("inf")), strict=True)]
    put(out, pools[:1])
    assert ",4," in lines(out)[0]
    put(out, pools)
    assert [line.split(",")[2] for line in lines(out)] == ["4.0", "inf"]
    put(out, pools[:1], RowPolicy(append=True))
    assert [line.split(",")[0] for line in lines(out)] == ["run-a", "run-b"]


def test_numbers_of_an_earlier_versions_table_are_not_taken_for_runs_that_are_not_there(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    earlier = [{name: value for name, value in row.items() if name != table.FOLDER} for row in rows("ab")]
    out.write_bytes(table.csv_bytes(earlier))
    put(out, rows("c"), RowPolicy(append=True))
    with pytest.raises(StoreError, match="has the numbers of 1 row whose runs are no longer in runs"):
        put(out, [*rows("a", status="planned"), *rows("bc")])


def test_a_column_of_somebodys_own_is_not_dropped(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    out.write_bytes(table.csv_bytes([row | {"remark": "look again"} for row in rows("ab")]))
    with pytest.raises(StoreError, match="has columns that this sweep does not write, such as remark"):
        put(out, rows("ab"), RowPolicy(append=True))
    with pytest.raises(StoreError, match="has columns that this sweep does not write, such as remark"):
        table.write(out, rows("ab"), SETTINGS)  # it was added while the sweep ran


# The commands


def test_a_sweep_of_another_grid_is_refused_and_appended(
    swept: Paths, tmp_path: Path, refused: Refused, ran: Ran
) -> None:
    at = copied(swept, tmp_path)
    whole, seed_0 = at.table(), [*GRID, "--seeds", "0", *at.flags()]
    for words in (seed_0, [*seed_0, "--dry_run"], ["--seeds", "0,1", *GRID, "--runs_dir", "r2", "--out", at.out]):
        assert "results.csv has " in refused("eval_noise", *words)
    assert ran("eval_noise", *seed_0, "--append").status == 0
    assert at.table() == whole  # the other seed's rows are where they were
    assert "4 of 4 planned rows are done\n" in ran("eval_noise", *seed_0, "--replace_table").out
    assert len(at.rows()) == 4
    assert ran("eval_noise", *GRID, "--seeds", "0,1", *at.flags()).status == 0  # nothing was trained again
    assert at.table() == whole


@pytest.mark.slow
def test_runs_that_are_trained_anew_take_all_their_rows_along(
    swept: Paths, tmp_path: Path, ran: Ran, workshop: Workshop
) -> None:
    """Rows of other plans that share a run with a planned one: their numbers would be no run's."""
    at = copied(swept, tmp_path)
    clean = [word if word != "clean,label_noise" else "clean" for word in GRID]
    before = [row["test_mse"] for row in at.rows()]
    words = [*clean, "--seeds", 0, *at.flags(), "--executor", "serial", "--append", "--overwrite"]
    done = workshop.run("eval_noise", *words, NPROC="1")
    assert done.returncode == 0, done.stderr
    assert [row["test_mse"] for row in at.rows()] == before  # trained again, to the same bits
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icl_lab.sweeps.work._train", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert ran("eval_noise", *clean, "--seeds", 0, *at.flags(), "--append", "--overwrite").status == 130
    statuses = {row["exp"]: {row["status"]} for row in at.rows()}
    for row in at.rows():
        statuses[row["exp"]].add(row["status"])
    assert all(len(found) == 1 for found in statuses.values())  # no row of a cleared run says that it is done
    assert {"planned", "done"} == {status for found in statuses.values() for status in found}


def test_collecting_leaves_the_rows_of_another_folder_alone(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    """As after two sweeps into one table: runs of the same names, in two folders."""
    at = copied(swept, tmp_path)
    shutil.copytree(at.runs, tmp_path / "r2")
    assert "that this sweep does not plan" in ran("sweeps.collect", "--runs_dir", "r2", "--out", at.out).err
    assert ran("sweeps.collect", "--runs_dir", "r2", "--out", at.out, "--append").status == 0
    assert [row[table.FOLDER] for row in at.rows()] == ["runs"] * 8 + ["r2"] * 8
    together = at.table()
    for folder in ("runs", "r2"):
        assert ran("sweeps.collect", "--runs_dir", folder, "--out", at.out, "--append").status == 0
        assert at.table() == together


def test_two_writers_of_one_table_at_once_keep_each_others_rows(swept: Paths, tmp_path: Path) -> None:
    at = copied(swept, tmp_path)
    folders = ["runs", "r2", "r3", "r4"]
    for name in folders[1:]:
        shutil.copytree(at.runs, tmp_path / name)
    at.out.unlink()
    line = [sys.executable, "-m", "sweeps.collect", "--out", str(at.out), "--append", "--runs_dir"]
    writers = [subprocess.Popen([*line, str(tmp_path / name)], cwd=ROOT) for name in folders]
    assert [writer.wait() for writer in writers] == [0] * 4
    found = [row[table.FOLDER] for row in at.rows()]
    assert sorted(found) == sorted(name for name in folders for _ in range(8))
    assert {row["status"] for row in at.rows()} == {"done"}


def test_tables_share_a_folder_each_with_its_own_plan(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    at = copied(swept, tmp_path)
    assert ran("eval_noise", *GRID, "--seeds", "0", "--runs_dir", at.runs, "--out", "half.csv").status == 0
    assert sorted(path.name for path in at.runs.glob("plan*")) == ["plan_half.json", "plan_results.json"]
    (tmp_path / "half.csv").unlink()
    for out, count in (("half.csv", 4), (at.out, 8)):
        done = ran("sweeps.collect", "--runs_dir", at.runs, "--out", out)
        assert done.out.endswith(f"{count} of {count} planned rows are done\n")
    assert ran("sweeps.status", "--runs_dir", at.runs).out == "4 runs: 4 done\n"


def test_a_table_is_no_link_no_runs_file_and_no_other_commands(swept: Paths, tmp_path: Path, refused: Refused) -> None:
    at = copied(swept, tmp_path)
    run = next(path for path in at.runs.iterdir() if path.is_dir())
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "link.csv").symlink_to(at.out)
    outputs.write({tmp_path / "runs.csv": at.table()}, "report")
    for out, sentence in {
        "link.csv": "link.csv is a symbolic link, and nothing is written through links",
        "run/analysis/ood.csv": "run/analysis/ood.csv is a file of the run run; choose another --out",
        "runs.csv": "runs.csv was written by report; choose another --out",
    }.items():
        assert sentence in refused("sweeps.collect", "--runs_dir", at.runs, "--out", out, "--append")


def test_a_table_in_a_run_directory_is_not_the_runs(swept: Paths, tmp_path: Path, ran: Ran) -> None:
    at = copied(swept, tmp_path)
    run = next(path for path in at.runs.iterdir() if path.is_dir())
    shutil.copytree(run, tmp_path / "run")
    assert ran("sweeps.collect", "--runs_dir", at.runs, "--out", "run/results.csv").status == 0
    assert "results.csv" in rundir.clear(tmp_path / "run")


def test_rows_of_another_family_in_the_table_keep_their_columns(tmp_path: Path) -> None:
    """A sweep of one family appends to a table that has columns of another: its own rows have these empty."""
    out, folder = tmp_path / "t.csv", tmp_path / "runs"
    sines, layers = (plan([Grid((model,), {}, (0,))]) for model in ("sine", "lsa"))
    for rows_of_one in (sines, layers, sines):
        start(rows_of_one, folder, out, RowPolicy(append=True))
        collect(rows_of_one, folder, out)
    header, *body = (line.split(",") for line in out.read_text().splitlines())
    assert {row[header.index("model")] for row in body} == {"sine", "lsa"}
    for row in body:
        own = outputs_of(family_of_model(row[header.index("model")])).columns
        others = {name for name in header if name not in {*own.asked, *own.settings}} - {
            "exp",
            "model",
            "seed",
            "status",
        }
        assert all(row[header.index(name)] == "" for name in others - {"results_version", "runs_dir"})
    before = out.read_bytes()
    with pytest.raises(StoreError, match="that this sweep does not plan"):
        start(layers, folder, out, RowPolicy())
    assert out.read_bytes() == before
    start(layers, folder, out, RowPolicy(replace=True))
    assert "function" not in out.read_text()
    assert [line.split(",")[1] for line in out.read_text().splitlines()[1:]] == ["lsa"]
