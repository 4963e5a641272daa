"""What destroys does not follow a link in the folder that it was given; the folder itself may be named by one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from icl_lab.store import StoreError, layout, rundir
from icl_lab.store.lock import locked
from icl_lab.sweeps.plan import runs_of
from tests.doors import Ran, snapshot
from tests.store.test_runs import made
from tests.sweeps.tiny_sweep import GRID, tiny_plan

pytestmark = pytest.mark.robust

PLANNED = runs_of(tiny_plan((0,)))[0]
SWEEP = ["eval_noise", *GRID, "--seeds", 0, "--executor", "serial", "--quiet"]

# command -> the name of a run, and its words for a folder
Words = Callable[[Path], Sequence[object]]
DESTROYERS: dict[str, tuple[str, Words]] = {
    "prune": ("lsa1", lambda folder: ["store.prune", folder, "--delete", "01234567"]),
    "sweep": (PLANNED.name, lambda folder: [*SWEEP, "--overwrite", "--runs_dir", folder, "--out", "t.csv"]),
    "seeds": ("seed_0", lambda folder: ["scripts.demo_seeds", "--seeds", "0,1", "--overwrite", "--out", folder]),
}


def outside(tmp_path: Path) -> Path:
    """A run elsewhere that has failed."""
    run = made(tmp_path / "elsewhere" / "run", status="failed")
    rundir.write_json(run / layout.CONFIG, rundir.to_dict(PLANNED.config))
    return run


@pytest.mark.parametrize("command", DESTROYERS)
def test_a_run_that_a_link_leads_to_is_left_as_it_is(command: str, tmp_path: Path, ran: Ran) -> None:
    name, words = DESTROYERS[command]
    run = outside(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / name).symlink_to(run)
    (tmp_path / "link").symlink_to("runs")
    before = snapshot(run)
    for folder in (tmp_path / "runs", tmp_path / "link"):
        done = ran(*words(folder))
        assert done.status == 2, done
        assert str(folder / name) in done.err
        assert snapshot(run) == before


def test_a_run_that_a_link_leads_to_is_not_gone_on_with(tmp_path: Path, ran: Ran) -> None:
    run = outside(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / PLANNED.name).symlink_to(run)
    before = snapshot(run)
    done = ran(*SWEEP, "--p", "0", "--runs_dir", tmp_path / "runs", "--out", "t.csv")
    assert done.status == 1, done
    assert f"{tmp_path / 'runs' / PLANNED.name} is a symbolic link, and nothing is changed through links" in done.err
    assert snapshot(run) == before


def test_event_files_behind_a_link_stay(tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icl_lab.lab.environment.find_spec", lambda name: name)  # as if TensorBoard was installed
    made(tmp_path / "runs" / "lsa1")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "events.out.tfevents.1.icl-lab.0").write_text("of a run")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "lsa1").symlink_to("../target")
    done = ran("store.export", tmp_path / "runs", "--tensorboard", tmp_path / "logs")
    assert (done.status, f"{tmp_path / 'logs' / 'lsa1'} is a symbolic link" in done.err) == (2, True), done
    assert [path.name for path in (tmp_path / "target").iterdir()] == ["events.out.tfevents.1.icl-lab.0"]


def test_a_link_anywhere_on_the_way_counts_and_the_folder_itself_does_not(tmp_path: Path) -> None:
    run = made(tmp_path / "real" / "sweep" / "run")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "sweep").symlink_to("../real/sweep")
    for folder, path in ((tmp_path / "link", tmp_path / "link" / "sweep" / "run"), (run, run)):
        with locked(path, below=folder):
            pass
    with (
        pytest.raises(StoreError, match="below/sweep is a symbolic link"),
        locked(tmp_path / "below" / "sweep" / "run", below=tmp_path / "below"),
    ):
        pytest.fail("it was locked")
