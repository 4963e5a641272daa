"""Runs are deleted as they were listed, and of each the files in its manifest."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store import layout, owners, ownership, prune, rundir
from store.listing import list_runs
from store.lock import locked
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
    assert f"the list with the code {first} is not that of today" in refused("store.prune", runs, "--delete", first)
    assert "is not that of today" in refused("store.prune", runs, "--status", "done", "--delete", first)
    assert left(runs) == ["a", "b", "c", "d", "e"]


def test_files_of_others_stay(runs: Path, ran: Ran) -> None:
    (runs / "a" / "thesis.tex").write_text("mine")
    done = ran("store.prune", runs, "--delete", code(ran("store.prune", runs).out))
    assert f"{runs / 'a'} keeps files that are not the run's: thesis.tex" in done.out
    assert (runs / "a" / "thesis.tex").read_text() == "mine"
    assert left(runs) == ["a", "c", "d"]
    assert not rundir.has_begun(runs / "a")


def test_what_somebody_has_for_himself_and_what_others_build_on_stays(runs: Path, ran: Ran) -> None:
    needed = rundir.stored_id(runs / "b")
    made(runs / "f", status="done", config={"requires": [needed]})
    with locked(runs / "a"):
        assert ran("store.prune", runs).out == "no run is to be deleted\n"


def test_a_lock_that_a_run_takes_when_the_old_one_is_deleted_is_the_runs(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = list[object]()

    @contextmanager
    def then_taken(run: Path) -> Iterator[None]:
        with locked(run):
            yield
        run.mkdir(exist_ok=True)
        taken.append(ownership.hold(run / layout.LOCK, run, False, owners.Watch()))

    monkeypatch.setattr(prune, "locked", then_taken)
    (entry,) = [entry for entry in list_runs(runs) if entry.path == runs / "a"]
    assert prune.delete(entry) == []
    assert [path.name for path in (runs / "a").iterdir()] == [layout.LOCK]
    (held,) = taken
    assert isinstance(held, ownership.Held)
    assert held.is_ours()
    ownership.let_go(held)


def test_statuses_and_ages_choose(runs: Path, ran: Ran, refused: Refused) -> None:
    made(runs / "old", hours=-(24 * 365 * 50), status="failed")  # of the future: never old enough
    listed = ran("store.prune", runs, "--status", "stopped,done").out
    assert [Path(line.split()[0]).name for line in listed.splitlines()[:-1]] == ["c", "d"]
    assert "old" not in ran("store.prune", runs, "--older_than", "1d").out
    assert "is no status of a run" in refused("store.prune", runs, "--status", "broken")
    assert "is no duration" in refused("store.prune", runs, "--older_than", "soon")
    assert "does not exist" in refused("store.prune", runs / "absent")
