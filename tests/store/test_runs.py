"""Lists of runs, as lines and as a table: what is there, what differs, and what is broken."""

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icl_lab import store
from icl_lab.lab.configs.registry import from_dict, named
from icl_lab.lab.configs.run import to_dict
from icl_lab.lab.loaded_plugins import LOADED, Plugin
from icl_lab.store import StoreError, layout, ownership, provenance, rundir
from icl_lab.store.atomic import write_csv, write_json
from icl_lab.store.listing import list_runs
from icl_lab.store.metrics import append_metrics
from icl_lab.store.readers import read_json
from icl_lab.store.runs import COLUMNS, text_of

NOW = datetime(2030, 1, 10, tzinfo=UTC)
SUMMARIES = {
    "regression": {"headline": {"tf_loss": 0.25}},
    "sine": {"headline": {"loss": 0.25}},
    "layerwise": {"layerwise": {"mse": [0.5, 0.25]}},
    "diversity": {"headline": {"id_tf_loss": 0.25}},
}


def made(
    run: Path,
    hours: float = 1.0,
    status: str = "done",
    config: Mapping[str, Any] = {},
    family: str = "regression",
    **meta: Any,
) -> Path:
    """A run directory with a config, a record, and a summary if it is done; it ended some hours before `NOW`."""
    values = to_dict(named(family).config())
    for name, value in config.items():
        section, _, field = name.rpartition(".")
        (values[section] if section else values)[field] = value
    rundir.begin(run, from_dict(values))
    end = (NOW - timedelta(hours=hours)).isoformat(timespec="seconds")
    rundir.update_meta(run, status=status, end=end, sources=provenance.sources(), **({"bitwise": True} | meta))
    append_metrics(run, {"step": 40, "train_loss": 0.4, "eval_loss": 0.375})
    if status == "done":
        write_json(run / layout.SUMMARY, SUMMARIES[family] | {"num_steps": 40, "eval_loss": 0.3125})
    return run


def lines(folder: Path) -> list[str]:
    return text_of(list_runs(folder), NOW).splitlines()


def line_of(run: Path, folder: Path) -> str:
    (line,) = [line for line in lines(folder) if line.startswith(f"{run} ")]
    return line


def test_a_line_says_status_age_size_loss_and_sources(tmp_path: Path) -> None:
    run = made(tmp_path / "runs" / "lsa1", hours=3.4)
    (run / "large").write_bytes(bytes(2_500_000))
    assert line_of(run, tmp_path).split() == [
        str(run),
        "done",
        "3",
        "h",
        "2.5",
        "MB",
        "test_loss",
        "0.25",
        "same",
        "lsa1",
    ]
    going = made(tmp_path / "runs" / "going", hours=0.01, status="running")
    assert line_of(going, tmp_path).split()[1:4] == ["running", "36", "s"]
    assert "eval_loss 0.375" in line_of(going, tmp_path)


@pytest.mark.parametrize(
    ("hours", "age"), [(0, "0 s"), (0.5, "30 min"), (2.9, "2 h"), (49, "2 d"), (24 * 400, "400 d"), (-1, "0 s")]
)
def test_ages_are_whole_units(hours: float, age: str, tmp_path: Path) -> None:
    assert f"  {age}  " in line_of(made(tmp_path / "run", hours), tmp_path)


@pytest.mark.parametrize(
    ("family", "loss"),
    {"regression": "test_loss", "sine": "test_loss", "layerwise": "test_mse", "diversity": "test_id_loss"}.items(),
)
def test_every_familys_loss_is_found(family: str, loss: str, tmp_path: Path) -> None:
    run = made(tmp_path / "run", family=family)
    assert f"{loss} 0.25 " in line_of(run, tmp_path)


def test_runs_are_found_in_folders_of_sweeps_and_come_newest_first(tmp_path: Path) -> None:
    old = made(tmp_path / "runs" / "eval_order" / "deep" / "cell", hours=5)
    new, middle = made(tmp_path / "runs" / "a", hours=1), made(tmp_path / "runs" / "eval_order" / "b", hours=2)
    (new / layout.ANALYSIS / "nested").mkdir(parents=True)  # what a run holds is its own
    assert [line.split()[0] for line in lines(tmp_path / "runs")[1:]] == [str(run) for run in (new, middle, old)]
    assert [entry.path for entry in list_runs(new)] == [new]


def test_only_what_differs_among_runs_of_a_name_is_said_and_shortly(tmp_path: Path) -> None:
    one = made(tmp_path / "one", config={"model.num_layers": 2, "data_seed": 3, "init_seed": 3})
    noisy = {"train.ordering": "easy2hard", "eval.ordering": "easy2hard", "eval.noise_p": 0.5}
    two = made(tmp_path / "two", config=noisy)
    alone = made(tmp_path / "alone", config={"name": "twolayer", "model.num_layers": 2})
    assert line_of(one, tmp_path).endswith("lsa1 num_layers=2 seed=3 ordering=random noise_p=0.0")
    ending = "lsa1 num_layers=1 train.noise_p=0.0 eval.noise_p=0.5 seed=0 ordering=easy2hard"
    assert line_of(two, tmp_path).endswith(ending)
    assert line_of(alone, tmp_path).endswith("twolayer")


def test_changed_and_unrecorded_sources_are_said(tmp_path: Path) -> None:
    run, older = made(tmp_path / "run"), made(tmp_path / "older")
    rundir.update_meta(run, sources=provenance.sources() | {"src/train.py": "0"})
    meta = rundir.read_meta(older)
    del meta["sources"]
    write_json(older / layout.META, meta)
    assert " changed " in line_of(run, tmp_path)
    assert " not recorded " in line_of(older, tmp_path)


def broken(run: Path, what: str) -> None:
    """Makes a run one that cannot be read."""
    damage = {
        "config": lambda: (run / layout.CONFIG).write_text("{"),
        "no config": (run / layout.CONFIG).unlink,
        "unknown field": lambda: write_json(run / layout.CONFIG, {"colour": "red\x1b[2J"}),
        "meta": lambda: (run / layout.META).write_text("[]"),
        "status": lambda: write_json(run / layout.META, {"status": "dreaming"}),
        "summary": lambda: write_json(run / layout.SUMMARY, {"headline": 3}),
        "no summary": (run / layout.SUMMARY).unlink,
    }
    damage[what]()


@pytest.mark.parametrize("what", ["config", "no config", "unknown field", "meta", "status", "summary", "no summary"])
def test_what_is_broken_is_one_line_with_the_reason(what: str, tmp_path: Path) -> None:
    whole, run = made(tmp_path / "whole"), made(tmp_path / "run")
    broken(run, what)
    assert line_of(run, tmp_path).split()[1] == "broken"
    assert ".json" in line_of(run, tmp_path).rpartition("  ")[2]
    assert len(lines(tmp_path)) == 3
    assert "\x1b" not in "".join(lines(tmp_path))
    found = store.table(tmp_path).set_index("path")
    assert found.loc[str(run), "status"] == "broken"
    assert str(found.loc[str(run), "error"])
    assert found.loc[str(whole), "status"] == "done"


@pytest.fixture
def loaded() -> Iterator[Plugin]:
    plugin = LOADED["lab"] = Plugin("lab", Path("lab.py"), "0123", "0123")
    yield plugin
    del LOADED["lab"]


@pytest.mark.parametrize("status", ["done", "diverged", "stopped", "failed", "running"])
@pytest.mark.parametrize("record", ["mine:0123", "lab:4567"])  # one that is not loaded, one that is with other sources
def test_a_run_whose_plugin_is_missing_has_its_state_and_the_plugins_name(
    status: str, record: str, tmp_path: Path, loaded: Plugin
) -> None:
    run, other = made(tmp_path / "run", status=status), made(tmp_path / "other", status=status)
    config = read_json(run / layout.CONFIG)
    config["training"]["schedule"] = "of_a_plugin"
    write_json(run / layout.CONFIG, config | {"plugins": [record, loaded.record]})
    words, others = (line_of(each, tmp_path).split() for each in (run, other))
    assert words[1:4] + words[6:9] == others[1:4] + others[6:9]  # all but the size
    assert words[-1] == f"plugins_missing={record}"
    assert "schedule=of_a_plugin" in words
    rows = store.table(tmp_path).set_index("path")
    assert rows.loc[str(run), "plugins_missing"] == record
    assert rows.loc[str(run), "training.schedule"] == "of_a_plugin"
    same = [name for name in rows.columns if name not in ("plugins", "plugins_missing", "training.schedule")]
    assert rows.loc[str(run), same].to_dict() == rows.loc[str(other), same].to_dict()


def test_a_run_of_a_plugins_family_has_its_state_and_no_loss(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    write_json(run / layout.CONFIG, {"schema_version": 2, "family": "mine", "name": "mine", "plugins": ["mine:0123"]})
    assert line_of(run, tmp_path).split()[1] == "done"
    assert line_of(run, tmp_path).endswith("mine plugins_missing=mine:0123")


@pytest.mark.parametrize("damage", [{"name": 3}, {"family": None}, {"schema_version": 7}, {"training": "\x1b[2J"}])
def test_a_plugin_that_is_missing_excuses_no_damage(damage: dict[str, Any], tmp_path: Path) -> None:
    """What can be told without it; what cannot is shown as it is written, in characters that are safe."""
    run = made(tmp_path / "run")
    write_json(run / layout.CONFIG, read_json(run / layout.CONFIG) | {"plugins": ["mine:0123"]} | damage)
    assert line_of(run, tmp_path).split()[1] == ("done" if "training" in damage else "broken")
    assert "\x1b" not in line_of(run, tmp_path)


def test_folders_that_are_no_runs_and_links_are_told_apart(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    run = made(tmp_path / "elsewhere" / "run")
    (runs / "notes").mkdir(parents=True)
    (runs / "loop").symlink_to(runs)
    (runs / "link").symlink_to(run)
    (runs / ".hidden").mkdir()
    told = {line.split()[0]: line for line in lines(runs)[1:]}
    assert told.keys() == {str(runs / "notes"), str(runs / "link")}
    assert told[str(runs / "notes")].endswith("it has no config.json")
    assert store.table(runs)["path"].tolist() == [str(runs / "link")]


@pytest.mark.parametrize("written", ["", '{"step": 0, "train_l'])
def test_a_run_that_compiles_or_was_killed_before_its_first_record_is_not_broken(written: str, tmp_path: Path) -> None:
    run = made(tmp_path / "run", status="running")
    (run / layout.METRICS).write_text(written)
    assert line_of(run, tmp_path).split()[1] == "running"
    (row,) = store.table(tmp_path).to_dict("records")
    assert row["status"] == "running"
    assert not {"error", "eval_loss"} & set(row)
    (run / layout.METRICS).write_text("{}\n")  # a whole record, of something else
    assert line_of(run, tmp_path).split()[1] == "broken"


def test_folders_that_do_not_look_like_runs_are_counted(tmp_path: Path) -> None:
    run = made(tmp_path / "runs" / "run")
    for name in ("src/__pycache__", "src/deep/er", "docs/figures", "empty", "runs/begun"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "runs" / "begun" / layout.MANIFEST).write_text("")
    _, *entries, last = lines(tmp_path)
    assert {line.split()[0] for line in entries} == {
        str(run),
        str(tmp_path / "empty"),
        str(tmp_path / "runs" / "begun"),
    }
    assert last == "3 other folders without a run"
    assert lines(tmp_path / "src" / "deep" / "er")[1].split()[1:3] == ["no", "run"]


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nowhere does not exist"):
        list_runs(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file is not a folder"):
        list_runs(tmp_path / "file")


def test_the_command_needs_neither_jax_nor_pandas_nor_matplotlib(root: Path, tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    code = (
        f"import runpy, sys; sys.argv = ['runs', {str(tmp_path)!r}]\n"
        "try:\n    runpy.run_module('store.runs', run_name='__main__')\n"
        "finally:\n    print({'jax', 'haiku', 'pandas', 'matplotlib', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    header, line, heavy = done.stdout.splitlines()
    assert tuple(header.split()) == tuple(" ".join(COLUMNS).split())
    assert (line.split()[0], heavy) == (str(run), "set()")


# As a table


def test_a_row_has_config_and_summary_under_dotted_names(tmp_path: Path) -> None:
    run = made(tmp_path / "run", config={"data.dim": 7, "model.attention": ["softmax", "linear"]})
    ood = [{"alpha": 1.0, "test_mse": 0.5}, {"alpha": 3.0, "test_mse": None}]
    more = {"headline": {"tf_loss": 0.25, "verdict": "ridge"}, "ood": ood, "curve": [1, 2], "contexts": {"p": 1}}
    write_json(run / layout.SUMMARY, more)
    (row,) = store.table(tmp_path).to_dict("records")
    assert (row["path"], row["status"], row["data.dim"], row["model.attention"]) == (
        str(run),
        "done",
        7,
        "softmax,linear",
    )
    assert (row["headline.tf_loss"], row["ood.0.test_mse"], math.isnan(row["ood.1.test_mse"])) == (0.25, 0.5, True)
    assert not {"curve", "headline.verdict", "contexts.p"} & set(row)


def test_a_run_under_way_has_the_numbers_of_its_last_record(tmp_path: Path) -> None:
    made(tmp_path / "run", status="stopped")
    (row,) = store.table(tmp_path).to_dict("records")
    assert (row["status"], row["step"], row["eval_loss"]) == ("stopped", 40, 0.375)


def test_a_sweeps_csv_is_a_table_too(tmp_path: Path) -> None:
    rows = [
        {"exp": f"cell_{seed}", "model": "lsa1", "seed": seed, "status": "done", "test_mse": 0.5} for seed in (0, 1)
    ]
    write_csv(tmp_path / "results.csv", rows)
    found = store.table(tmp_path / "results.csv")
    assert list(found.columns[:2]) == ["path", "status"]
    pd.testing.assert_series_equal(found["path"], found["exp"], check_names=False)
    assert found["test_mse"].tolist() == [0.5, 0.5]
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(StoreError, match="no column exp"):
        store.table(tmp_path / "other.csv")


def test_many_runs_take_four_reads_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Config, meta twice (once for the status) and summary: a list of a thousand runs takes a second."""
    first = made(tmp_path / "run_0")
    for number in range(1, 20):
        shutil.copytree(first, tmp_path / f"run_{number}")
    read: list[Path] = []
    original = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, *a, **k: read.append(path) or original(path, *a, **k))
    assert len(lines(tmp_path)) == 21
    assert len(read) == 4 * 20
    assert json.loads((first / layout.META).read_text())["status"] == "done"


def test_a_run_that_is_in_work_has_its_host_and_sweeps_have_their_counts(tmp_path: Path) -> None:
    run = made(tmp_path / "sweep" / "cell", hours=0.01, status="running")
    made(tmp_path / "sweep" / "other", status="done")
    owner = ownership.Owner("0" * 16, "node7 boot namespace", 1, "1")
    (run / layout.LOCK).write_bytes(owner.content())
    assert line_of(run, tmp_path).split()[1:4] == ["running", "on", "node7"]
    assert not [line for line in lines(tmp_path) if line.startswith("sweep ")]
    (tmp_path / "sweep" / "plan_results.json").write_text("{}")
    assert lines(tmp_path)[-1] == f"sweep {tmp_path / 'sweep'}: 1 done, 1 running"


def test_a_run_whose_process_on_this_host_has_ended_is_shown_as_killed(tmp_path: Path) -> None:
    run = made(tmp_path / "sweep" / "cell", status="running")
    (tmp_path / "sweep" / "plan_results.json").write_text("{}")
    me, dead = (
        ownership.this_process(),
        subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True),
    )
    gone = {
        "ended": me._replace(pid=int(dead.stdout), start="17"),
        "another process of its number": me._replace(start="1"),
    }
    for owner in gone.values():
        (run / layout.LOCK).write_bytes(owner.content())
        assert line_of(run, tmp_path).split()[1:3] == ["killed", "1"]
        assert lines(tmp_path)[-1] == f"sweep {tmp_path / 'sweep'}: 1 killed"
    (run / layout.LOCK).write_bytes(me.content())
    assert line_of(run, tmp_path).split()[1:4] == ["running", "on", me.host.split()[0]]
    rundir.update_meta(run, status="done")
    (run / layout.LOCK).write_bytes(gone["ended"].content())
    write_json(run / layout.SUMMARY, SUMMARIES["regression"])
    assert line_of(run, tmp_path).split()[1] == "done"
