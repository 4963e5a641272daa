"""A table shows every field in which its rows differ, whichever sweeps they are of."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest

from icl_lab.store import rundir
from icl_lab.store.readers import StoreError
from icl_lab.sweeps import collect, differing
from icl_lab.sweeps.axes import Axes
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import Point, plan
from icl_lab.sweeps.plan_file import check_plan, read_plan, write_plan
from icl_lab.sweeps.table import RowPolicy

# a field of a config, wherever it is -> the model, how the second sweep sets it, its values of both
FIELDS: dict[str, tuple[str, Any, list[str]]] = {
    "training.lr": ("lsa1", 0.5, ["0.001", "0.5"]),
    "training.batch_size": ("lsa1", 32, ["2048", "32"]),
    "data.dim": ("lsa1", 7, ["10", "7"]),
    "model.attention": ("lsa1", ["softmax", "linear"], ["linear", "softmax,linear"]),
    "eval_tasks": ("lsa1", 32, ["2048", "32"]),
    "init_seed": ("lsa1", 5, ["0", "5"]),
    "model.num_heads": ("sine", 2, ["1", "2"]),
    "training.b2": ("lsa", 0.5, ["0.98", "0.5"]),
}


def rows(model: str, **settings: Any) -> list[Point]:
    return plan([Grid((model,), seeds=(0,), settings=settings)])


def begun(planned: list[Point], folder: Path, out: Path) -> None:
    """What a sweep does before it trains, and its runs as they begin."""
    together = check_plan(folder, out, planned, append=True)
    collect.start(planned, folder, out, RowPolicy(append=True))
    for row in planned:
        rundir.begin(folder / row.run.name, row.run.config)
    write_plan(folder, out, together)


def table(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(out.read_text().splitlines()))


@pytest.mark.parametrize("folder", ["a", "b"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_in_which_joined_sweeps_differ_is_a_column(field: str, folder: str, tmp_path: Path) -> None:
    """In one folder or two; also when the table is collected again, with the other rows there or not."""
    model, value, expected = FIELDS[field]
    out, runs = tmp_path / "t.csv", tmp_path / folder
    one, other = rows(model), rows(model, **{field: value})
    begun(one, tmp_path / "a", out)
    assert field not in table(out)[0]
    begun(other, runs, out)
    assert [row[field] for row in table(out)] == expected
    collect.collect(other, runs, out)
    assert [row[field] for row in table(out)] == expected
    assert collect.note_unknown(out) == ""
    begun(one, tmp_path / "a", out)  # the first again
    assert [row[field] for row in table(out)] == expected
    out.unlink()
    together = read_plan(runs / "plan_t.json") if folder == "a" else other
    collect.collect(together, runs, out)
    assert ([row[field] for row in table(out)] == expected) if folder == "a" else (field not in table(out)[0])


def test_a_field_that_a_column_shows_gets_no_other(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    begun(rows("lsa1", **{"training.steps": 30}), tmp_path / "a", out)
    names = [*table(out)[0]]
    begun(rows("lsa1", **{"training.steps": 40, "base.noise_mode": "label_noise", "base.noise_p": 0.5}), tmp_path, out)
    assert [*table(out)[0]] == names
    assert [(row["steps"], row["p"]) for row in table(out)] == [("30", "0.0"), ("40", "0.5")]
    noisy = {"base.noise_mode": "random_pairs", "base.noise_p": 0.5, "train.noise_mode": "clean"}
    begun(rows("lsa1", **{"training.steps": 40, **noisy}), tmp_path / "c", out)
    assert [*table(out)[0]] == names


def test_models_differ_in_their_column(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    begun(rows("lsa1"), tmp_path / "a", out)
    begun(rows("twolayer"), tmp_path / "b", out)
    assert not any(map(differing.is_field, table(out)[0]))


def test_a_row_whose_run_is_not_there_has_no_value_and_a_sentence_says_so(tmp_path: Path) -> None:
    """The run of an earlier table's row is gone; rows that nothing tells apart are not joined."""
    out = tmp_path / "t.csv"
    begun(rows("lsa1"), tmp_path / "a", out)
    begun(rows("lsa1", **{"training.lr": 0.5}), tmp_path / "b", out)
    before = out.read_bytes()
    for folder in ("a", "b"):
        shutil.rmtree(tmp_path / folder)
    differing.stored_config.cache_clear()
    begun(rows("lsa1", **{"training.lr": 0.25, "eval_tasks": 32}), tmp_path / "c", out)
    assert [row["training.lr"] for row in table(out)] == ["0.001", "0.5", "0.25"]  # a value that is there stays
    out.write_bytes(before.replace(b",training.lr\n", b",other\n"))
    lines = before.decode().splitlines()
    out.write_text("\n".join(line.rpartition(",")[0] for line in lines[:2]) + "\n")  # as an earlier version wrote it
    with pytest.raises(StoreError, match=r"would have rows that no column tells apart, lsa1_random_seed0-\w+ and "):
        collect.start(rows("lsa1", **{"training.lr": 0.5}), tmp_path / "d", out, RowPolicy(append=True))
    begun(rows("lsa1", **{"training.lr": 0.5, "training.steps": 30}), tmp_path / "d", out)
    assert "training.lr" not in table(out)[0]  # what the other's is, nobody knows
    begun(rows("lsa1", **{"training.lr": 0.25, "training.steps": 31}), tmp_path / "d", out)
    assert [row["training.lr"] for row in table(out)] == ["", "0.5", "0.25"]
    assert collect.note_unknown(out) == f"{out}: 1 row has no training.lr, which could not be read from its run"


def test_a_run_that_has_not_begun_has_the_fields_that_are_planned(tmp_path: Path) -> None:
    out, planned = tmp_path / "t.csv", rows("lsa1", lr=0.5)
    collect.start(planned, tmp_path / "a", out, RowPolicy())
    write_plan(tmp_path / "a", out, planned)
    begun(rows("lsa1"), tmp_path / "b", out)
    assert [row["training.lr"] for row in table(out)] == ["0.5", "0.001"]
    assert collect.note_unknown(out) == ""


def test_a_field_that_a_run_does_not_have_is_known_to_be_empty(tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    begun(rows("lsa1") + rows("lsa1", **{"data.dim": 7}), tmp_path / "a", out)
    begun(rows("autoencoder"), tmp_path / "b", out)
    assert [row["data.dim"] for row in table(out)] == ["10", "7", ""]
    assert collect.note_unknown(out) == ""
    shutil.rmtree(tmp_path / "b")
    differing.stored_config.cache_clear()
    differing.planned_configs.cache_clear()
    assert collect.note_unknown(out) == f"{out}: 1 row has no data.dim, which could not be read from its run"


def columns_of(axes: Axes, tmp_path: Path, model: str = "lsa1", **settings: Any) -> list[str]:
    """The columns of fields in the table of a grid, which is the same once it is collected from its plan."""
    out = tmp_path / "t.csv"
    begun(plan([Grid((model,), axes, settings=settings)]), tmp_path / "runs", out)
    before = out.read_bytes()
    collect.collect(read_plan(tmp_path / "runs" / "plan_t.json"), tmp_path / "runs", out)
    assert out.read_bytes() == before
    return [*filter(differing.is_field, table(out)[0])]


@pytest.mark.parametrize(
    ("axes", "columns"),
    [
        ({"lr": [1e-3, 3e-3]}, ["training.lr"]),
        (
            {("lr", "b2"): [(1e-3, 0.5), (3e-3, 0.6)], "eval_every": [5, 6]},
            ["eval_every", "training.b2", "training.lr"],
        ),
        ({"num_layers": [1, 2]}, ["model.num_layers"]),  # though steps, a column, tell them apart
        ({"num_layers": [1, 4], "recurrent": [True]}, ["activation_clip", "grad_clip", "lr", "num_layers"]),
        ({"steps": [10, 20], "noise_p": [0.0, 0.5], "noise_mode": ["label_noise"]}, []),
        ({"lr": [1e-3]}, []),
        ({"init_seed": [0, 1]}, ["init_seed"]),
        ({"attention": [("softmax", "linear"), ("linear",)]}, ["model.attention"]),
    ],
)
def test_a_swept_field_and_what_follows_it_are_columns(axes: Axes, columns: list[str], tmp_path: Path) -> None:
    found = columns_of(axes, tmp_path)
    short = sorted(name.rpartition(".")[2] for name in found)
    assert short == sorted(name.rpartition(".")[2] for name in columns)
    assert {*columns} <= {*found, *short}


def test_the_values_of_many_rates_are_one_column_each_with_its_own(tmp_path: Path) -> None:
    """More values than are tried to see whether a column shows the field."""
    rates = [10.0**-power for power in range(1, 2 * differing.MOST_TRIED)]
    assert columns_of({"lr": rates}, tmp_path) == ["training.lr"]
    assert [float(row["training.lr"]) for row in table(tmp_path / "t.csv")] == rates


def test_tables_of_different_grids_are_joined_with_the_fields_of_both(tmp_path: Path) -> None:
    """Rates of one grid, depths of another, in two folders: `sweeps.collect --append` of the second to the first."""
    out, other = tmp_path / "t.csv", tmp_path / "other.csv"
    begun(plan([Grid(("lsa1",), {"lr": [1e-3, 3e-3]})]), tmp_path / "a", out)
    begun(plan([Grid(("lsa1",), {"num_layers": [2, 3], "recurrent": [True]})]), tmp_path / "b", other)
    collect.main(["--runs_dir", str(tmp_path / "b"), "--out", str(out), "--append"])
    assert [(row["training.lr"], row["model.num_layers"], row["model.recurrent"]) for row in table(out)] == [
        ("0.001", "1", "False"),
        ("0.003", "1", "False"),
        ("0.001", "2", "True"),
        ("0.001", "3", "True"),
    ]
