"""Metrics are copied to TensorBoard and Weights & Biases by a process of its own, from what is on disk."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from store import rundir
from store.export import export
from tests.doors import ROOT, Ran, Refused, ran, refused, snapshot
from tests.store.test_runs import made

__all__ = ["ran", "refused"]


class Notes:
    """A target that keeps what it gets."""

    def __init__(self) -> None:
        self.written: list[tuple[int, dict[str, float]]] = []
        self.closed = False

    def write(self, step: int, values: dict[str, float]) -> None:
        self.written.append((step, values))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run that is done, one of a sweep, and a folder without a run."""
    made(tmp_path / "runs" / "lsa1")
    cell = made(tmp_path / "runs" / "sweep" / "cell", status="running")
    rundir.append_metrics(cell, {"step": 80, "train_loss": 0.2, "test_loss": None, "note": "text"})
    (tmp_path / "runs" / "empty").mkdir()
    return tmp_path / "runs"


def test_every_number_of_every_record_is_copied_once(runs: Path) -> None:
    notes: dict[str, Notes] = {}
    before = snapshot(runs)
    counts = export(runs, lambda name, run: notes.setdefault(name, Notes()))
    assert counts == {"lsa1": 1, "sweep/cell": 2}
    assert notes["lsa1"].written == [(40, {"train_loss": 0.4, "test_loss": 0.375})]
    assert notes["sweep/cell"].written[1] == (80, {"train_loss": 0.2})  # neither null nor words
    assert all(note.closed for note in notes.values())
    assert snapshot(runs) == before


def test_flags_are_checked(runs: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "choose one of --tensorboard LOGS and --wandb PROJECT" in refused("store.export", runs)
    assert "choose one" in refused("store.export", runs, "--tensorboard", "logs", "--wandb", "project")
    for module, words in {"tensorboard": ["--tensorboard", "logs"], "wandb": ["--wandb", "project"]}.items():
        monkeypatch.setitem(sys.modules, module, None)
        said = refused("store.export", runs, *words)
        assert f"lacks the package {module}; install it with" in said
        assert "-m pip install -r requirements-watch.txt" in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # TensorBoard's own
def test_tensorboard_reads_what_was_written(runs: Path, tmp_path: Path, ran: Ran) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):  # a second copy replaces the first
        copied = ran("store.export", runs, "--tensorboard", tmp_path / "logs")
        assert copied.out == "lsa1: 1 records\nsweep/cell: 2 records\n"
    found = EventAccumulator(str(tmp_path / "logs" / "sweep" / "cell")).Reload()
    assert [(event.step, round(event.value, 6)) for event in found.Scalars("train_loss")] == [(40, 0.4), (80, 0.2)]
    assert len(list((tmp_path / "logs" / "lsa1").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_event_files_of_others_stay(runs: Path, tmp_path: Path, ran: Ran, refused: Refused) -> None:
    """Of a run of the same name in another folder, and of another program: TensorBoard would mix their curves."""
    made(tmp_path / "others" / "lsa1")
    logs = ("--tensorboard", tmp_path / "logs")
    ran("store.export", runs / "lsa1", *logs)
    said = refused("store.export", tmp_path / "others", *logs)
    assert "lsa1 has event files of something else than" in said
    assert ran("store.export", runs / "lsa1", *logs).out == "lsa1: 1 records\n"
    (old,) = (tmp_path / "logs" / "lsa1").iterdir()
    old.rename(old.with_name("events.out.tfevents.1700000000.elsewhere"))
    refused("store.export", runs / "lsa1", *logs)
    assert len(list((tmp_path / "logs" / "lsa1").iterdir())) == 1


TOGETHER = """
import sys
from pathlib import Path
from store.export import WeightsAndBiases

a, b, folder = map(Path, sys.argv[1:])
one, other = (WeightsAndBiases("project", run.name, run, folder, online=False) for run in (a, b))
for step in range(3):
    one.write(step, {"of_the_first": 1.0})
    other.write(step, {"of_the_second": 2.0})
one.close()
other.close()
WeightsAndBiases("project", a.name, a, folder / "again", online=False).close()
"""


@pytest.mark.slow
def test_runs_of_one_config_that_are_followed_together_are_kept_apart(runs: Path, tmp_path: Path) -> None:
    made(tmp_path / "others" / "lsa1")
    line = [sys.executable, "-c", TOGETHER, str(runs / "lsa1"), str(tmp_path / "others" / "lsa1"), str(tmp_path / "w")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    contents: dict[str, list[bytes]] = {}
    for file in (tmp_path / "w").rglob("offline-run-*/run-*.wandb"):
        contents.setdefault(file.stem, []).append(file.read_bytes())
    assert sorted(map(len, contents.values())) == [1, 2]  # two runs, of which one went on
    written = sorted(
        tuple(name for name in (b"of_the_first", b"of_the_second") if any(name in content for content in own))
        for own in contents.values()
    )
    assert written == [(b"of_the_first",), (b"of_the_second",)]


@pytest.mark.slow
def test_weights_and_biases_is_offline_unless_asked(runs: Path, tmp_path: Path) -> None:
    words = [str(runs / "lsa1"), "--wandb", "project", "--wandb_dir", str(tmp_path / "w")]
    line = [sys.executable, "-m", "store.export", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "lsa1: 1 records\n"), done.stderr
    assert list((tmp_path / "w").glob("wandb/offline-run-*/run-*.wandb"))


@pytest.mark.slow
def test_it_follows_a_training_until_it_is_stopped(runs: Path, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "store.export", str(runs), "--tensorboard", str(tmp_path / "logs"), "--follow"]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        events, deadline = tmp_path / "logs" / "sweep" / "cell", time.monotonic() + 120
        while not (events.exists() and list(events.iterdir())):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        (file,) = events.iterdir()
        size = file.stat().st_size
        rundir.append_metrics(runs / "sweep" / "cell", {"step": 120, "train_loss": 0.1, "test_loss": 0.1})
        while file.stat().st_size == size:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        following.send_signal(signal.SIGINT)
        _, said = following.communicate(timeout=60)
    assert "Traceback" not in said
