"""Runs are deleted as they were listed, and of each the files in its manifest."""

import errno
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from icl_lab.store import StoreError, aside, layout, lock, ownership, prune, rundir
from icl_lab.store.atomic import write_json
from icl_lab.store.listing import Entry, list_runs
from icl_lab.store.lock import locked
from icl_lab.store.metrics import append_metrics
from icl_lab.store.readers import read_json
from tests.doors import Ran, Refused, ran, refused, snapshot
from tests.store.test_runs import made

__all__ = ["ran", "refused"]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs that have failed, one that was stopped and one that is done."""
    for name, status in {"a": "failed", "b": "failed", "c": "stopped", "d": "done"}.items():
        made(tmp_path / "runs" / name, status=status)
    return tmp_path / "runs"


def code(out: str) -> str:
    return out.split("--delete ")[1].split()[0]


def left(runs: Path) -> list[str]:
    return sorted(path.name for path in runs.iterdir())


def test_what_is_listed_is_deleted_and_nothing_else(runs: Path, ran: Ran) -> None:
    before = snapshot(runs)
    said = ran("store.prune", runs).out
    assert [line.split()[0] for line in said.splitlines()[:-1]] == [str(runs / "a"), str(runs / "b")]
    assert said.splitlines()[-1].startswith("2 runs, ")
    assert snapshot(runs) == before
    done = ran("store.prune", runs, "--delete", code(said))
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1].startswith("deleted: 2 runs, ")
    assert left(runs) == ["c", "d"]
    assert ran("store.prune", runs).out == "no run is to be deleted\n"


def test_a_list_that_has_changed_is_not_deleted(runs: Path, ran: Ran, refused: Refused) -> None:
    first = code(ran("store.prune", runs).out)
    made(runs / "e", status="failed")
    assert f"not {first}; read it again without --delete first" in refused("store.prune", runs, "--delete", first)
    assert f"not {first}; read it again" in refused("store.prune", runs, "--status", "done", "--delete", first)
    assert left(runs) == ["a", "b", "c", "d", "e"]


def test_a_run_whose_plugin_is_missing_is_not_listed_and_a_line_says_so(runs: Path, ran: Ran) -> None:
    write_json(runs / "a" / layout.CONFIG, read_json(runs / "a" / layout.CONFIG) | {"plugins": ["mine:0123"]})
    said = ran("store.prune", runs)
    assert [line.split()[0] for line in said.out.splitlines()[:-1]] == [str(runs / "b")]
    assert said.err == f"not listed: {runs / 'a'} is of the plugin mine:0123, which is not loaded; give --plugin FILE\n"


def test_files_of_others_stay(runs: Path, ran: Ran) -> None:
    (runs / "a" / "thesis.tex").write_text("mine")
    done = ran("store.prune", runs, "--delete", code(ran("store.prune", runs).out))
    assert f"{runs / 'a'} keeps files that are not the run's: thesis.tex" in done.out
    assert (runs / "a" / "thesis.tex").read_text() == "mine"
    assert left(runs) == ["a", "c", "d"]
    assert not rundir.has_begun(runs / "a")


def test_runs_that_are_locked_or_that_others_build_on_stay(runs: Path, ran: Ran) -> None:
    """What is locked is named; runs of one config have one id, so both are needed."""
    with locked(runs / "a"):
        said = ran("store.prune", runs)
    assert [line.split()[0] for line in said.out.splitlines()[:-1]] == [str(runs / "b")]
    assert said.err == f"not listed: {runs / 'a'} is locked by a process of {platform.node()}\n"
    assert rundir.stored_id(runs / "a") == rundir.stored_id(runs / "b")
    made(runs / "f", status="done", config={"requires": [rundir.stored_id(runs / "b")]})
    assert ran("store.prune", runs).out == "no run is to be deleted\n"


@pytest.mark.parametrize("dependent", ["runs/sweep/f", "others/f"])
def test_runs_that_others_outside_of_the_folder_build_on_stay(dependent: str, tmp_path: Path, ran: Ran) -> None:
    """In the default folder, `runs`, or beside a run that is named itself; be their plugins loaded or not."""
    run = made(tmp_path / "others" / "b", status="failed")
    path = made(tmp_path / dependent, config={"requires": [rundir.stored_id(run)]}) / layout.CONFIG
    rundir.write_json(path, rundir.read_json(path) | {"plugins": ["absent:0123456789abcdef"]})
    assert ran("store.prune", run).out == "no run is to be deleted\n"


@pytest.mark.parametrize("what", ["time", "size", "status", "nothing", "manifest"])
def test_a_run_that_has_changed_since_it_was_listed_is_not_deleted(what: str, runs: Path) -> None:
    run = runs / "a"
    if what == "manifest":  # one of an earlier version, whose manifest is made when it is locked
        (run / layout.MANIFEST).unlink()
        rundir.write_json(run / layout.META, rundir.read_meta(run) | {"schema_version": 1, "config_id": "0" * 16})
    (entry,) = list_runs(run)
    changes = {
        "time": lambda: rundir.mark_failed(run, "again"),
        "size": lambda: append_metrics(run, {"step": 80, "train_loss": 0.4, "eval_loss": 0.3}),
        "status": lambda: rundir.update_meta(run, status="stopped"),
    }
    if what not in changes:
        assert prune.delete(entry, runs) == []
        assert not run.exists()
        return
    changes[what]()
    before = snapshot(run)
    with pytest.raises(StoreError, match=r"a has changed since it was listed; list the runs again"):
        prune.delete(entry, runs)
    assert {name: state for name, state in snapshot(run).items() if name != layout.LOCK} == before


def test_after_a_run_that_is_refused_the_others_are_deleted(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(runs / "b2", status="failed")
    code_of, unlink = prune.code_of, Path.unlink
    prune.main([str(runs)])
    words = [str(runs), "--delete", code(capsys.readouterr().out)]

    def then_changed(entries: list[Entry]) -> str:
        found = code_of(entries)
        rundir.mark_failed(runs / "a", "again")
        return found

    def refusing(path: Path, missing_ok: bool = False) -> None:
        if path == runs / "b" / layout.METRICS:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(prune, "code_of", then_changed)
    monkeypatch.setattr(Path, "unlink", refusing)
    assert prune.main(words) == 2
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        f"error: {runs / 'a'} has changed since it was listed; list the runs again",
        f"error: {runs / 'b' / layout.METRICS}: Permission denied",
    ]
    assert said.out.splitlines()[-1].startswith("deleted: 1 runs, ")
    assert left(runs) == ["a", "b", "c", "d"]


def test_a_lock_that_a_run_takes_when_the_old_one_is_deleted_is_the_runs(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = list[object]()

    @contextmanager
    def then_taken(run: Path, below: Path) -> Iterator[None]:
        with locked(run, below=below):
            yield
        run.mkdir(exist_ok=True)
        taken.append(lock.hold(run / layout.LOCK, run, False, ownership.Watch()))

    monkeypatch.setattr(prune, "locked", then_taken)
    (entry,) = [entry for entry in list_runs(runs) if entry.path == runs / "a"]
    assert prune.delete(entry, runs) == []
    assert [path.name for path in (runs / "a").iterdir()] == [layout.LOCK]
    (held,) = taken
    assert isinstance(held, ownership.HeldLock)
    assert held.is_ours()
    ownership.let_go(held)


def test_nothing_is_deleted_through_a_link_in_the_folder(runs: Path, tmp_path: Path, ran: Ran) -> None:
    """Neither a run, nor a file of one whose folder is a link; be it listed before the link was made or not."""
    outside = made(tmp_path / "outside" / "run", status="failed")
    before = snapshot(outside)
    (runs / "link").symlink_to(outside)
    said = ran("store.prune", runs)
    assert [line.split()[0] for line in said.out.splitlines()[:-1]] == [str(runs / "a"), str(runs / "b")]
    assert said.err.startswith(f"not listed: {runs / 'link'} is reached through a symbolic link")
    entries = {entry.path: entry for entry in list_runs(runs)}
    with pytest.raises(StoreError, match="link is a symbolic link, and nothing is changed through links"):
        prune.delete(entries[runs / "link"], runs)
    (runs / "a" / layout.CHECKPOINTS).symlink_to(outside)
    with pytest.raises(StoreError, match="is a symbolic link, and nothing is written through links"):
        prune.delete(entries[runs / "a"], runs)
    assert snapshot(outside) == before


def test_a_folder_may_be_named_by_a_link(runs: Path, tmp_path: Path, ran: Ran) -> None:
    (tmp_path / "link").symlink_to(runs)
    done = ran("store.prune", tmp_path / "link", "--delete", code(ran("store.prune", tmp_path / "link").out))
    assert (done.status, done.err) == (0, "")
    assert left(runs) == ["c", "d"]


def test_what_is_kept_beside_a_run_goes_with_it(runs: Path, ran: Ran) -> None:
    """And no more than that: the next run of this name meets nothing of this one."""
    name = "0123abcd_step_00000000.npz"
    for run in (runs / "a", runs / "b"):
        aside.write(run, name, b"traces", rundir.stored_id(run))
    foreign = layout.llc_aside(runs / "b") / "notes.md"
    foreign.write_text("mine")
    done = ran("store.prune", runs, "--delete", code(ran("store.prune", runs).out))
    assert done.status == 0
    assert f"{runs / 'b'} keeps files that are not the run's: ../.b.llc/notes.md" in done.out
    assert left(runs) == [".b.llc", "c", "d"]
    assert os.listdir(foreign.parent) == ["notes.md"]


def test_statuses_and_ages_choose(runs: Path, ran: Ran, refused: Refused) -> None:
    made(runs / "old", hours=-(24 * 365 * 50), status="failed")  # of the future: never old enough
    listed = ran("store.prune", runs, "--status", "stopped,done").out
    assert [Path(line.split()[0]).name for line in listed.splitlines()[:-1]] == ["c", "d"]
    assert "old" not in ran("store.prune", runs, "--older_than", "1d").out
    assert "is not a status of a run" in refused("store.prune", runs, "--status", "broken")
    assert "is not a duration" in refused("store.prune", runs, "--older_than", "soon")
    assert "does not exist" in refused("store.prune", runs / "absent")
