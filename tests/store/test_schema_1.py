"""Runs of schema 1 are not read: they stay as they are, every command says so, and none trains them again.

schema_1.json holds config.json and the id of meta.json of six runs, as an earlier version wrote them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from icl_lab import store
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.registry import from_dict
from icl_lab.src.checks import ConfigError
from icl_lab.store import StoreError, layout, rundir
from icl_lab.store.listing import list_runs
from tests.doors import Ran, Refused, ran, refused, snapshot

__all__ = ["ran", "refused"]

WRITTEN = {run["config"]["name"]: run for run in json.loads((Path(__file__).parent / "schema_1.json").read_text())}
LSA1 = "runners.run_concat_inputs_targets"
SENTENCE = (
    "is a run of an earlier version (schema 1), which stays as it is and is not read: read it with the version that "
    "trained it (git_hash in its meta.json), or train its settings again into another --out"
)


def earlier_run(run: Path, model: str = "lsa1", status: str = "done", **config: Any) -> Path:
    """A run directory as that version left it."""
    run.mkdir(parents=True)
    files = {
        layout.CONFIG: json.dumps(WRITTEN[model]["config"] | config),
        layout.META: json.dumps({"schema_version": 1, "config_id": WRITTEN[model]["config_id"], "status": status}),
        layout.METRICS: json.dumps({"step": 0, "train_loss": 1.0, "test_loss": 1.0}) + "\n",
        layout.SUMMARY: json.dumps({"headline": {"tf_loss": 0.5}}),
        layout.PARAMS: "numbers",
    }
    for file, text in files.items():
        (run / file).write_text(text)
    return run


@pytest.mark.parametrize("name", WRITTEN)
def test_its_config_is_refused_with_what_to_do(name: str, tmp_path: Path) -> None:
    run = earlier_run(tmp_path / "run", name)
    with pytest.raises(rundir.EarlierVersion) as error:
        rundir.read_config(run)
    assert str(error.value) == f"{run} {SENTENCE}"
    with pytest.raises(StoreError, match=r"^.* \(schema 1\)"):
        store.load(run)
    with pytest.raises(ConfigError, match=r"^it was written by an earlier version \(schema 1\)"):
        from_dict(WRITTEN[name]["config"])


@pytest.mark.parametrize("status", ["done", "running", "stopped", "failed"])
@pytest.mark.parametrize("command", [LSA1, "analysis.alignment", "plots.run_figures"])
def test_commands_say_so_and_touch_nothing(command: str, status: str, tmp_path: Path, refused: Refused) -> None:
    run = earlier_run(tmp_path / "run", status=status)
    words = {LSA1: ["--out", run], "analysis.alignment": ["--run", run], "plots.run_figures": ["--run", run]}[command]
    assert refused(command, *words) == f"error: {run} {SENTENCE}\n"


def test_without_out_another_directory_is_taken(tmp_path: Path) -> None:
    earlier_run(tmp_path / "lsa1", status="stopped")
    for overwrite in (False, True):
        assert rundir.choose(resolve(preset("lsa1")), None, overwrite, runs=tmp_path) == tmp_path / "lsa1_1"


def test_who_asks_for_it_trains_it_again(tmp_path: Path) -> None:
    """`--overwrite` removes what the run wrote, and nothing else."""
    run = earlier_run(tmp_path / "run")
    (run / "notes.txt").write_text("mine")
    rundir.check_usable(run, resolve(preset("lsa1")), overwrite=True)
    assert rundir.clear(run) == ["notes.txt"]
    assert {path.name for path in run.iterdir()} == {"notes.txt", layout.MANIFEST}


def test_the_list_of_runs_shows_it_for_what_it_is(tmp_path: Path, ran: Ran) -> None:
    run = earlier_run(tmp_path / "runs" / "lsa1")
    before = snapshot(run)
    (entry,) = list_runs(tmp_path / "runs")
    assert (entry.status, entry.reason) == ("schema 1", f"{run} {SENTENCE}")
    (line,) = [line for line in ran("store.runs", tmp_path / "runs").out.splitlines() if line.startswith(str(run))]
    assert line.split("  ")[1] == "schema 1"
    assert line.endswith(SENTENCE)
    (row,) = store.table(tmp_path / "runs").to_dict("records")
    assert row == {"path": str(run), "status": "schema 1", "error": f"{run} {SENTENCE}"}
    for status in rundir.STATUSES:
        assert ran("store.prune", tmp_path / "runs", "--status", status).out == "no run is to be deleted\n"
    assert snapshot(run) == before
