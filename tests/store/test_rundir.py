"""Which directory a run gets, what clearing one removes, and what its metrics keep."""

import json
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.run import to_dict
from icl_lab.store import StoreError, atomic, checkpoint, layout, manifest, ownership, readers, rundir
from icl_lab.store.atomic import write_bytes
from icl_lab.store.lock import locked
from icl_lab.store.metrics import append_metrics, last_metrics, metrics_columns, read_metrics, truncate_metrics
from tests.thinned import thinned

CONFIG = RegressionConfig(data_seed=1)
OTHER = RegressionConfig(data_seed=2)


def make(
    run: Path, config: RegressionConfig = CONFIG, status: str = "done", start: str = "2026-01-01T00:00:00"
) -> Path:
    """A run directory with a status and a start."""
    rundir.begin(run, config)
    rundir.update_meta(run, status=status, start=start)
    return run


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def killed_process() -> str:
    """A process of this host that has ended, as the names of its drafts have it."""
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    return ownership.this_process()._replace(pid=int(dead.stdout), start="17").writer()


# Without --out


def test_the_first_run_gets_its_name(tmp_path: Path) -> None:
    assert rundir.choose(CONFIG, None, False, tmp_path / "none") == tmp_path / "none" / "lsa1"


@pytest.mark.parametrize("status", ["done", "diverged"])
def test_beside_finished_runs_the_next_free_name_is_taken(tmp_path: Path, status: str) -> None:
    for name in ("lsa1", "lsa1_1", "lsa1_3"):
        make(tmp_path / name, status=status)
    assert rundir.choose(CONFIG, None, False, tmp_path) == tmp_path / "lsa1_2"


def test_names_taken_by_anything_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "lsa1").write_text("a file")
    (tmp_path / "lsa1_1").mkdir()
    make(tmp_path / "lsa1_2", OTHER, "running")
    assert rundir.choose(CONFIG, None, False, tmp_path) == tmp_path / "lsa1_3"


@pytest.mark.parametrize("status", ["running", "stopped", "failed"])
def test_the_newest_unfinished_run_of_the_config_is_resumed(tmp_path: Path, status: str) -> None:
    make(tmp_path / "lsa1", status=status, start="2026-01-03T00:00:00")
    make(tmp_path / "b", status=status, start="2026-01-05T00:00:00")
    make(tmp_path / "c", status="done", start="2026-01-07T00:00:00")
    make(tmp_path / "d", OTHER, status, start="2026-01-09T00:00:00")
    assert rundir.choose(CONFIG, None, False, tmp_path) == tmp_path / "b"


def test_overwriting_redoes_the_newest_run_of_the_config(tmp_path: Path) -> None:
    make(tmp_path / "a", status="running", start="2026-01-03T00:00:00")
    make(tmp_path / "b", status="done", start="2026-01-05T00:00:00")
    make(tmp_path / "c", OTHER, start="2026-01-09T00:00:00")
    assert rundir.choose(CONFIG, None, True, tmp_path) == tmp_path / "b"
    assert rundir.choose(RegressionConfig(data_seed=3), None, True, tmp_path) == tmp_path / "lsa1"


def test_another_runs_broken_files_do_not_matter(tmp_path: Path) -> None:
    make(tmp_path / "a", status="running")
    make(tmp_path / "b", status="running")
    make(tmp_path / "c", status="running")
    for run, config in {"b": "{broken", "c": '{"training": {"cosine": "maybe"}}'}.items():
        (tmp_path / run / layout.CONFIG).write_text(config)
    assert rundir.choose(CONFIG, None, False, tmp_path) == tmp_path / "a"


def test_of_a_config_of_a_later_schema_that_is_said_first(tmp_path: Path) -> None:
    """Its plugins may be written in another form."""
    (tmp_path / layout.CONFIG).write_text('{"schema_version": 3, "family": "regression", "plugins": [["a", "b"]]}')
    with pytest.raises(StoreError, match="unknown schema_version 3; this version reads 2"):
        rundir.read_config(tmp_path)


def test_runs_that_a_family_does_not_ask_for_cannot_be_required(tmp_path: Path) -> None:
    config = replace(CONFIG, requires=("0123456789abcdef",))
    with pytest.raises(StoreError, match=r"own: its config requires 1 runs, but its family requires 0$"):
        rundir.find_required(config, tmp_path / "own")


def test_another_runs_broken_meta_does_not_matter(tmp_path: Path) -> None:
    make(tmp_path / "a", status="running")
    make(tmp_path / "b", OTHER)
    (tmp_path / "b" / layout.META).write_text("{broken")
    assert rundir.choose(CONFIG, None, False, tmp_path) == tmp_path / "a"


def test_the_preset_a_config_came_from_does_not_matter(tmp_path: Path) -> None:
    make(tmp_path / "a", replace(CONFIG, preset="paper"), "running")
    assert rundir.choose(CONFIG, None, False, tmp_path) == tmp_path / "a"


def test_links_are_neither_resumed_nor_taken_for_free_names(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    make(tmp_path / "elsewhere", status="running")
    runs.mkdir()
    (runs / "lsa1").symlink_to(tmp_path / "elsewhere")
    (runs / "lsa1_1").symlink_to(tmp_path / "not there")
    assert rundir.choose(CONFIG, None, False, runs) == runs / "lsa1_2"
    assert rundir.choose(CONFIG, None, True, runs) == runs / "lsa1_2"
    assert rundir.choose(CONFIG, str(runs / "lsa1"), False) == runs / "lsa1"  # what the user names is the user's choice


@pytest.mark.parametrize("content", ['{"status": "finished"}', '{"status": ["done"]}', "[]"])
def test_a_run_of_unknown_status_is_not_resumed(tmp_path: Path, content: str) -> None:
    make(tmp_path / "lsa1", status="running")
    (tmp_path / "lsa1" / layout.META).write_text(content)
    assert rundir.choose(CONFIG, None, False, tmp_path) == tmp_path / "lsa1_1"
    with pytest.raises(StoreError, match=layout.META):
        rundir.choose(CONFIG, str(tmp_path / "lsa1"), False)


def test_results_that_nothing_says_are_done_are_kept(tmp_path: Path) -> None:
    make(tmp_path / "lsa1")
    (tmp_path / "lsa1" / layout.META).write_text("{}")
    (tmp_path / "lsa1" / layout.SUMMARY).write_text("{}")
    assert rundir.choose(CONFIG, None, False, tmp_path) == tmp_path / "lsa1_1"
    with pytest.raises(StoreError, match="has no status, but the run has results"):
        rundir.choose(CONFIG, str(tmp_path / "lsa1"), False)


def test_a_config_that_was_changed_after_the_run_is_refused(tmp_path: Path) -> None:
    run = make(tmp_path / "run")
    rundir.update_meta(run, config_id=config_id(CONFIG))
    rundir.begin(run, OTHER)
    with pytest.raises(StoreError, match=r"config\.json is not the config that the run was trained with"):
        rundir.choose(CONFIG, str(run), False)


# With --out


@pytest.mark.parametrize("status", rundir.STATUSES)
def test_out_is_taken_if_it_holds_the_same_config(tmp_path: Path, status: str) -> None:
    run = make(tmp_path / "run", status=status)
    before = tree(tmp_path)
    assert rundir.choose(CONFIG, str(run), False) == run
    assert tree(tmp_path) == before


@pytest.mark.parametrize("status", rundir.STATUSES)
def test_out_with_another_config_is_refused_unless_overwritten(tmp_path: Path, status: str) -> None:
    run = make(tmp_path / "run", OTHER, status)
    before = tree(tmp_path)
    with pytest.raises(StoreError, match="another config"):
        rundir.choose(CONFIG, str(run), False)
    assert rundir.choose(CONFIG, str(run), True) == run
    assert tree(tmp_path) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_out_that_is_something_else_is_refused(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("more work")
    before = tree(tmp_path)
    for name, words in {"folder": "not a run directory", "file": "is a file"}.items():
        with pytest.raises(StoreError, match=words):
            rundir.choose(CONFIG, str(tmp_path / name), overwrite)
    assert tree(tmp_path) == before


def test_out_may_be_new_or_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / layout.LOCK).touch()
    for name in ("new", "empty", "locked"):
        assert rundir.choose(CONFIG, str(tmp_path / name), False) == tmp_path / name


def test_out_may_hold_what_a_killed_process_left_of_its_first_file(tmp_path: Path) -> None:
    """And when the directory is then begun, or cleared once it has been, that is gone."""
    half = layout.draft(tmp_path / layout.CONFIG, killed_process())
    for end in (lambda run: rundir.begin(run, CONFIG), rundir.clear):
        (tmp_path / layout.LOCK).touch()
        half.write_text('{"na')
        for overwrite in (False, True):
            assert rundir.choose(CONFIG, str(tmp_path), overwrite) == tmp_path
        end(tmp_path)
        assert not half.exists()
    (tmp_path / layout.MANIFEST).unlink()
    (tmp_path / ".thesis.tex.tmp").write_text("years of work")
    with pytest.raises(StoreError, match="is not a run directory"):
        rundir.choose(CONFIG, str(tmp_path), False)


@pytest.mark.parametrize("length", [0, 1, 20, len(manifest.FIRST_LINE) - 1])
def test_out_may_hold_the_beginning_of_a_manifest(tmp_path: Path, length: int) -> None:
    (tmp_path / layout.MANIFEST).write_bytes(manifest.FIRST_LINE[:length])
    assert rundir.choose(CONFIG, str(tmp_path), False) == tmp_path
    rundir.begin(tmp_path, CONFIG)
    assert manifest.files(tmp_path) == [layout.CONFIG]


@pytest.mark.parametrize("config", ['{"model_type": "gpt2"}', "valid"])
def test_a_folder_with_a_config_and_no_manifest_is_somebody_elses(tmp_path: Path, config: str) -> None:
    """As that of a language model's checkpoints beside a paper; a config alone does not make it a run."""
    for name in ("config.json", "checkpoints/epoch3.pt", "analysis/paper.tex", "metrics.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("years of work")
    (tmp_path / layout.CONFIG).write_text(json.dumps(to_dict(CONFIG)) if config == "valid" else config)
    before = tree(tmp_path)
    for overwrite in (False, True):
        with pytest.raises(
            StoreError, match=r"has a config\.json but no manifest\.jsonl, so it is not a run directory"
        ):
            rundir.choose(CONFIG, str(tmp_path), overwrite)
    assert rundir.clear(tmp_path) == []
    assert tree(tmp_path) == before


def test_what_lies_where_a_run_would_write_is_refused_before_anything_is_cleared(tmp_path: Path) -> None:
    run = make(tmp_path / "run", status="done")
    (run / layout.FIGURES).mkdir()
    (run / layout.FIGURES / "loss.png").write_bytes(b"mine")
    assert rundir.choose(CONFIG, str(run), False) == run  # it is done: nothing is written
    rundir.update_meta(run, status="running")
    for overwrite in (False, True):
        with pytest.raises(StoreError, match=r"loss\.png was not written by the laboratory"):
            rundir.choose(CONFIG, str(run), overwrite)


# Files of a run

FILES = sorted(layout.FIXED_NAMES - {layout.MANIFEST, layout.LOCK, layout.DRAFT, *layout.RUN_FOLDERS})
NAMES = [
    *FILES,
    "attn/layer0.npz",
    "figs/loss.png",
    "llc/0123abcd_step_00000010.npz",
    "analysis/of_a_plugin.csv",
    "checkpoints/step_00000010.safetensors",
]
NEW = {layout.MANIFEST: manifest.FIRST_LINE}


def written(run: Path) -> Path:
    """A run directory with every file a run may have, each written by a command."""
    rundir.begin(run, CONFIG)
    for name in NAMES:
        write_bytes(run / name, b"{}" if name == layout.META else b"the run's")
    return run


def test_clearing_removes_what_the_manifest_names_and_says_what_else_lies_there(tmp_path: Path) -> None:
    written(tmp_path)
    kept = {"notes.md": b"mine", "mine/notes.md": b"mine", "config.json.bak": b"mine", "figs/mine.png": b"mine"}
    kept |= {"checkpoints/epoch3.pt": b"mine", "checkpoints/step_best.safetensors": b"mine"}
    for name, content in kept.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    for writer in (killed_process(), "0123abcd-17-1", ownership.this_process().writer()):
        layout.draft(tmp_path / layout.OOD, writer).write_bytes(b"half of the run's")
    (tmp_path / f".config.json{layout.DRAFT}").write_bytes(b"half of an earlier version's")
    assert rundir.clear(tmp_path) == sorted(kept)
    assert tree(tmp_path) == kept | NEW
    assert rundir.clear(tmp_path) == sorted(kept)
    assert rundir.choose(CONFIG, str(tmp_path), False) == tmp_path  # with what is left it is a new run's


def test_checkpoints_are_removed_from_beside_what_is_not_the_runs(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / layout.CHECKPOINTS / "epoch3.pt").write_bytes(b"mine")
    checkpoint.remove(tmp_path)
    assert [path.name for path in (tmp_path / layout.CHECKPOINTS).iterdir()] == ["epoch3.pt"]


def test_a_run_of_an_earlier_version_owns_the_layouts_names(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / layout.MANIFEST).unlink()
    (tmp_path / layout.META).write_text(json.dumps({"schema_version": 1, "config_id": config_id(CONFIG)}))
    (tmp_path / layout.FIGURES / "mine.png").write_bytes(b"mine")
    assert rundir.choose(CONFIG, str(tmp_path), True) == tmp_path
    with locked(tmp_path):
        assert set(manifest.files(tmp_path)) == set(NAMES) - {"analysis/of_a_plugin.csv"}
        assert rundir.clear(tmp_path) == ["analysis/of_a_plugin.csv", "figs/mine.png"]


def test_a_command_writes_over_no_file_of_somebody_elses(tmp_path: Path) -> None:
    rundir.begin(tmp_path, CONFIG)
    (tmp_path / layout.ANALYSIS).mkdir()
    (tmp_path / layout.OOD).write_bytes(b"mine")
    (tmp_path / layout.METRICS).write_bytes(b"mine")
    before = tree(tmp_path)
    with pytest.raises(StoreError, match=r"ood\.csv was not written by the laboratory"):
        write_bytes(tmp_path / layout.OOD, b"the run's")
    with pytest.raises(StoreError, match=r"metrics\.jsonl was not written by the laboratory"):
        append_metrics(tmp_path, {"step": 0})
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "line",
    [
        '{"file": "../thesis.tex"}',
        '{"file": "/thesis.tex"}',
        '{"file": "a/b/c/thesis.tex"}',
        '{"file": 3}',
        "[]",
        "{",
        '{"fi',
    ],
)
def test_a_manifest_reaches_nothing_outside_and_survives_damage(tmp_path: Path, line: str) -> None:
    run = tmp_path / "run"
    rundir.begin(run, CONFIG)
    for name in ("thesis.tex", "run/a/b/c/thesis.tex"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"years of work")
    with open(run / layout.MANIFEST, "a") as file:
        file.write(line)  # without its end, as a kill leaves it
    write_bytes(run / layout.METRICS, b"")
    assert manifest.files(run) == [layout.CONFIG, layout.METRICS]
    assert rundir.clear(run) == ["a/b/c/thesis.tex"]
    assert (tmp_path / "thesis.tex").read_bytes() == b"years of work"


@pytest.mark.parametrize("name", thinned(NAMES, 6))
def test_a_clearing_that_is_cut_short_is_ended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    written(tmp_path)
    name = Path(name).name
    unlink = Path.unlink

    def cut_short(path: Path, missing_ok: bool = False) -> None:
        if path.name == name:
            raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", cut_short)
        with pytest.raises(KeyboardInterrupt):
            rundir.clear(tmp_path)
    assert rundir.choose(CONFIG, str(tmp_path), True) == tmp_path
    rundir.clear(tmp_path)
    assert tree(tmp_path) == NEW


@pytest.mark.parametrize("name", thinned([name for name in NAMES if name != layout.META], 6))
def test_a_run_whose_results_are_going_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rundir.update_meta(written(tmp_path), status="done")
    unlink, name = Path.unlink, Path(name).name

    def cut_short(path: Path, missing_ok: bool = False) -> None:
        if path.name == name:
            raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", cut_short)
    with pytest.raises(KeyboardInterrupt):
        rundir.clear(tmp_path)
    assert rundir.read_meta(tmp_path).get("status") in ("running", None)


def test_what_lies_on_a_full_disk_can_be_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    make(tmp_path)
    monkeypatch.setattr(rundir, "write_json", full)
    monkeypatch.setattr("os.fsync", full)
    rundir.clear(tmp_path)
    assert tree(tmp_path) == NEW


@pytest.mark.parametrize("status", [*rundir.STATUSES, None])
def test_a_failure_is_noted_with_a_run_that_has_begun_and_not_ended(tmp_path: Path, status: str | None) -> None:
    if status is not None:
        make(tmp_path, status=status)
        rundir.update_meta(tmp_path, stopped_at=3, error="an older one")
    before = tree(tmp_path)
    rundir.mark_failed(tmp_path, "the sky has fallen")
    if status in (None, *rundir.FINISHED):
        assert tree(tmp_path) == before
    else:
        meta = rundir.read_meta(tmp_path)
        assert (meta["status"], meta["error"], "stopped_at" in meta) == ("failed", "the sky has fallen", False)


def test_a_config_comes_back(tmp_path: Path) -> None:
    config = RegressionConfig(name="twolayer", model=replace(RegressionConfig().model, attention=("softmax", "linear")))
    rundir.begin(tmp_path, config)
    assert rundir.read_config(tmp_path) == config


def test_meta_is_added_to(tmp_path: Path) -> None:
    assert rundir.read_meta(tmp_path) == {}
    assert rundir.read_status(tmp_path) == "new"
    rundir.update_meta(tmp_path, status="running", threads=2)
    rundir.update_meta(tmp_path, status="done", end="later")
    assert rundir.read_meta(tmp_path) == {"status": "done", "threads": 2, "end": "later"}
    assert rundir.read_status(tmp_path) == "done"


def test_a_folder_without_a_config_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run directory"):
        rundir.read_config(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"[1]\n", b'{"loss": 1}\n', b'{"step": 0'])
def test_metrics_that_are_none_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / layout.METRICS).write_bytes(content)
    with pytest.raises(StoreError, match=layout.METRICS):
        read_metrics(tmp_path)


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=6, unique=True).map(sorted),
    st.integers(0, 100),
    st.binary(max_size=10).filter(lambda cut: b"\n" not in cut),
)
def test_cutting_metrics_keeps_what_a_checkpoint_knows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], at: int, cut_line: bytes
) -> None:
    """Cutting and then appending what came after again gives the file of an uninterrupted run."""
    run = tmp_path_factory.mktemp("run")
    records = [{"step": step, "eval_loss": 1 / (3 + step)} for step in steps]
    for record in records:
        append_metrics(run, record)
    whole = (run / layout.METRICS).read_bytes()
    (run / layout.METRICS).write_bytes(whole + b'{"step' + cut_line.hex().encode())
    truncate_metrics(run, at, [step for step in steps if step <= at])
    kept = [json.loads(line) for line in (run / layout.METRICS).read_text().splitlines()]
    assert kept == [record for record in records if record["step"] <= at]
    for record in records[len(kept) :]:
        append_metrics(run, record)
    assert (run / layout.METRICS).read_bytes() == whole


def test_cutting_metrics_that_are_not_there_makes_an_empty_file(tmp_path: Path) -> None:
    truncate_metrics(tmp_path, 0, [])
    assert (tmp_path / layout.METRICS).read_bytes() == b""


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b'{"step": 0}\n',
        b'{"step": 0}\n{"step": 3',
        b'{"step": 3}\n',
        b'{"step": 0}\n{"step": 2}\n',
        b'{"step": 0}\n{"step": 3}\n{"step": 3}\n',
        b'{"step": 0}\n{}\n{"step": 3}\n',
        b'{"step": 0}\n{"step": "3"}\n',
    ],
)
def test_metrics_that_lack_records_behind_a_checkpoint_are_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / layout.METRICS).write_bytes(content)
    with pytest.raises(StoreError, match=rf"{layout.METRICS} .*--overwrite retrains"):
        truncate_metrics(tmp_path, 4, [0, 3])
    assert (tmp_path / layout.METRICS).exists() == (content is not None)
    if content is not None:
        assert (tmp_path / layout.METRICS).read_bytes() == content


def test_a_checkpoint_that_is_put_into_a_finished_run_stays(tmp_path: Path) -> None:
    """Those of the training are removed when it is done; what comes later by that name is somebody's."""
    written(tmp_path)
    for name in (layout.GROWING_SNAPSHOTS, layout.SNAPSHOTS_INDEX):
        assert (tmp_path / name).exists()
    checkpoint.remove(tmp_path)
    assert not (tmp_path / layout.CHECKPOINTS).exists()
    kept = layout.checkpoint(tmp_path, 10)
    kept.parent.mkdir()
    kept.write_bytes(b"mine")
    checkpoint.remove(tmp_path)
    assert kept.read_bytes() == b"mine"
    with pytest.raises(StoreError, match=r"step_00000010\.safetensors was not written by the laboratory"):
        rundir.choose(CONFIG, str(tmp_path), True)


def test_a_draft_of_somebody_elses_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / ".gd.json.tmp").write_bytes(b"mine")
    atomic.replace_file(tmp_path / "gd.json", b"{}")
    for name in (layout.draft(tmp_path / "gd.json", killed_process()), f".gd.json{layout.DRAFT}"):
        (tmp_path / name).write_bytes(b"what a kill left")
    atomic.replace_file(tmp_path / "gd.json", b"[]")
    assert tree(tmp_path) == {".gd.json.tmp": b"mine", "gd.json": b"[]"}


def test_half_of_a_line_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rundir.begin(tmp_path, CONFIG)
    before, write = (tmp_path / layout.MANIFEST).read_bytes(), os.write
    monkeypatch.setattr("os.write", lambda descriptor, content: write(descriptor, content[:5]))
    with pytest.raises(OSError, match="No space left"):
        manifest.claim(tmp_path / layout.METRICS)
    assert (tmp_path / layout.MANIFEST).read_bytes() == before


def test_metrics_are_read_in_a_stream(tmp_path: Path) -> None:
    """The last record of twenty thousand, and two of their columns, in a fraction of the file's size."""
    lines = (
        f'{{"step": {step}, "train_loss": 0.5, "eval_loss": null, "text": "{"x" * 200}"}}\n' for step in range(20_000)
    )
    path = tmp_path / layout.METRICS
    path.write_text("".join(lines))
    size = path.stat().st_size
    tracemalloc.start()
    (last,) = last_metrics(tmp_path, 1)
    columns = metrics_columns(tmp_path, ("step", "eval_loss"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert last["step"] == 19_999
    np.testing.assert_array_equal(columns["step"], np.arange(20_000))
    assert np.isnan(columns["eval_loss"]).all()
    assert peak < size / 4


# a process that reads a run's metrics where it ends, is drawn, goes on and is exported; prints MiB that this takes
READ = r"""
import re, sys
from pathlib import Path
from types import SimpleNamespace
from icl_lab.store.export import Export
from icl_lab.store.metrics import last_metrics, metrics_columns, truncate_metrics

peak = lambda: int(re.search(r"VmHWM:\s*([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024
run, before = Path(sys.argv[1]), peak()
(last,) = last_metrics(run, 1)
steps = metrics_columns(run, ("step", "eval_loss"))["step"]
truncate_metrics(run, 999_998, range(999_999))
export = Export(run, lambda name, run: SimpleNamespace(write=lambda step, values: None, close=list))
export.run(follow=False)
assert (last["step"], len(steps), *export.counts.values()) == (999_999, 10**6, 999_999)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read there")
def test_a_million_records_are_read_in_a_stream(root: Path, tmp_path: Path) -> None:
    """Of a file above the size of a text that is read as a whole."""
    make(tmp_path, status="running")
    manifest.claim(tmp_path / layout.METRICS)
    with open(tmp_path / layout.METRICS, "w") as file:
        file.writelines(
            f'{{"step": {step}, "train_loss": 0.5, "eval_loss": null, "text": "{"x" * 250}"}}\n'
            for step in range(10**6)
        )
    assert (tmp_path / layout.METRICS).stat().st_size > readers.LARGEST_TEXT
    with pytest.raises(StoreError, match=r"metrics\.jsonl is larger than 256 MiB"):
        read_metrics(tmp_path)
    done = subprocess.run([sys.executable, "-c", READ, str(tmp_path)], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 64  # of which two columns, as they grow and as arrays, are 32


def test_a_line_that_does_not_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines may be as long as LARGEST_LINE, so that a file without line breaks does not fill the memory."""
    monkeypatch.setattr(readers, "LARGEST_LINE", 2**20)
    (tmp_path / layout.METRICS).write_bytes(b'{"a": "' + b"x" * 2**20 + b'"}\n')
    with pytest.raises(StoreError, match="a line of it is longer than 1 MiB"):
        read_metrics(tmp_path)
