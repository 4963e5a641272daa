"""Metrics are copied to TensorBoard and Weights & Biases by a process of its own, from what is on disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from icl_lab.store import export as export_module
from icl_lab.store import layout, rundir
from icl_lab.store.export import Export
from icl_lab.store.metrics import append_metrics, truncate_metrics
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
    append_metrics(cell, {"step": 80, "train_loss": 0.2, "eval_loss": None, "note": "text"})
    (tmp_path / "runs" / "empty").mkdir()
    return tmp_path / "runs"


def test_every_number_of_every_record_is_copied_once(runs: Path) -> None:
    notes: dict[str, Notes] = {}
    before = snapshot(runs)
    export = Export(runs, lambda name, run: notes.setdefault(name, Notes()))
    export.run(follow=False)
    assert export.counts == {"lsa1": 1, "sweep/cell": 2}
    assert notes["lsa1"].written == [(40, {"train_loss": 0.4, "eval_loss": 0.375})]
    assert notes["sweep/cell"].written[1] == (80, {"train_loss": 0.2})  # neither null nor words
    assert all(note.closed for note in notes.values())
    assert snapshot(runs) == before


class Followed:
    """A run that is followed pass by pass, and what each of its targets got."""

    def __init__(self, run: Path) -> None:
        self.run, self.targets = run, list[Notes]()
        self.export = Export(run, self.target)

    def target(self, name: str, run: Path) -> Notes:
        self.targets.append(Notes())
        return self.targets[-1]

    def record(self, *steps: int, loss: float = 0.5) -> None:
        for step in steps:
            append_metrics(self.run, {"step": step, "train_loss": loss, "eval_loss": loss})

    def steps(self) -> list[list[int]]:
        """The steps that each target has after another pass."""
        self.export.update(follow=True)
        return [[step for step, _ in target.written] for target in self.targets]


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(made(tmp_path / "run", status="running", start="2030-01-01T00:00:00+00:00"))


def test_what_is_recorded_between_two_passes_is_copied_once(followed: Followed) -> None:
    assert followed.steps() == [[40]]
    followed.record(80, 120)
    metrics = followed.run / layout.METRICS
    whole = metrics.read_bytes()
    metrics.write_bytes(whole[:-5])  # the last record is being written
    assert followed.steps() == [[40, 80]]
    metrics.write_bytes(whole)
    assert followed.steps() == followed.steps() == [[40, 80, 120]]
    rundir.update_meta(followed.run, status="done")
    assert not followed.targets[0].closed
    followed.steps()
    assert followed.targets[0].closed


def test_a_pass_reads_no_record_again(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, loads = list[str](), json.loads
    followed.record(*range(80, 800, 40))
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(str(text)) or loads(text))
    followed.steps()
    assert sum("train_loss" in text for text in parsed) == 19
    followed.record(800)
    parsed.clear()
    followed.steps()
    assert [loads(text)["step"] for text in parsed if "train_loss" in text] == [800]


def test_what_a_resumed_run_records_again_is_not_copied_twice(followed: Followed) -> None:
    """Also where the lines are of other lengths, as on another device."""
    followed.record(80, 120, 160)
    assert followed.steps() == [[40, 80, 120, 160]]
    truncate_metrics(followed.run, 80, [40, 80])
    assert followed.steps() == [[40, 80, 120, 160]]
    followed.record(120, 160, 200, loss=0.123456789)
    assert followed.steps() == [[40, 80, 120, 160, 200]]
    truncate_metrics(followed.run, 80, [40, 80])
    followed.record(120, 160, 200, 240, 280, loss=0.12345)
    assert followed.steps() == [[40, 80, 120, 160, 200, 240, 280]]


def test_a_run_that_is_trained_again_is_copied_again(followed: Followed) -> None:
    followed.record(80, 120)
    assert followed.steps() == [[40, 80, 120]]
    rundir.clear(followed.run)
    assert followed.steps() == [[40, 80, 120]]
    made(followed.run, status="running", start="2030-01-01T01:00:00+00:00")
    followed.record(80)
    assert followed.steps() == [[40, 80, 120], [40, 80]]
    assert [target.closed for target in followed.targets] == [True, False]


DAMAGES = {
    "null": '{"step": null, "train_loss": 0.5}\n',
    "no step": '{"train_loss": 0.5}\n',
    "no JSON": "years of work\n",
    "no text": '{"step": 80, "\\ud800": 1.0}\n',
}


@pytest.mark.parametrize("what", [*DAMAGES, "meta"])
def test_a_damaged_run_is_named_once_and_the_others_are_copied(
    what: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = made(runs / "a") / (layout.META if what == "meta" else layout.METRICS)
    file.write_text("[]" if what == "meta" else file.read_text() + DAMAGES[what])
    notes: dict[str, Notes] = {}
    export = Export(runs, lambda name, run: notes.setdefault(name, Notes()))
    for _ in range(3):
        export.update(follow=True)
    said = capsys.readouterr().err
    assert said.startswith(f"error: {file} ")
    assert said.count("\n") == 1
    assert export.damaged == {runs / "a"}
    assert export.counts == {"lsa1": 1, "sweep/cell": 2} | ({} if what == "meta" else {"a": 1})


def test_a_file_where_a_runs_logs_go_stops_no_other(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def target(name: str, run: Path) -> Notes:
        (runs / "logs" / name).mkdir(parents=True, exist_ok=True)
        return Notes()

    made(runs / "a")
    (runs / "logs").mkdir()
    (runs / "logs" / "a").write_text("notes")
    export = Export(runs, target)
    for _ in range(2):
        export.update(follow=True)
    assert capsys.readouterr().err == f"error: {runs}/a is not copied: {runs}/logs/a: File exists\n"
    assert (export.damaged, export.counts) == ({runs / "a"}, {"lsa1": 1, "sweep/cell": 2})
    assert (runs / "logs" / "a").read_text() == "notes"


def test_the_exit_status_is_2_if_a_run_is_damaged(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(export_module, "TensorBoard", lambda folder, run: Notes())
    monkeypatch.setattr("icl_lab.lab.environment.find_spec", lambda name: name)  # as if it was installed
    words = [str(runs), "--tensorboard", "logs"]
    assert export_module.main(words) == 0
    (made(runs / "a") / layout.METRICS).write_text("years of work\n")
    assert export_module.main(words) == 2
    assert capsys.readouterr().out == "lsa1: 1 records\nsweep/cell: 2 records\n" * 2

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    assert export_module.main([*words, "--follow"]) == 2
    shutil.rmtree(runs / "a")
    with pytest.raises(KeyboardInterrupt):
        export_module.main([*words, "--follow"])


@pytest.mark.parametrize(("seconds", "pause"), [(0.01, 2.0), (3.0, 30.0)])
def test_following_takes_a_tenth_of_the_time_at_most(
    seconds: float, pause: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, pauses = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        raise KeyboardInterrupt

    export = Export(tmp_path, lambda name, run: Notes())
    monkeypatch.setattr(export, "update", lambda follow: clock.__setitem__(0, clock[0] + seconds))
    monkeypatch.setattr(export_module, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    with pytest.raises(KeyboardInterrupt):
        export.run(follow=True)
    assert pauses == [pause]


def test_flags_are_checked(runs: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "one of the arguments --tensorboard --wandb is required" in refused("store.export", runs)
    assert "argument --wandb: not allowed with argument --tensorboard" in refused(
        "store.export", runs, "--tensorboard", "logs", "--wandb", "project"
    )
    for module, words in {"tensorboard": ["--tensorboard", "logs"], "wandb": ["--wandb", "project"]}.items():
        monkeypatch.setitem(sys.modules, module, None)
        said = refused("store.export", runs, *words)
        assert f"lacks the package {module}; install it with" in said
        assert f"-m pip install -r requirements-{module}.txt" in said


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
    assert "lsa1 has event files that are not of" in said
    assert ran("store.export", runs / "lsa1", *logs).out == "lsa1: 1 records\n"
    (old,) = (tmp_path / "logs" / "lsa1").iterdir()
    old.rename(old.with_name("events.out.tfevents.1700000000.elsewhere"))
    refused("store.export", runs / "lsa1", *logs)
    assert len(list((tmp_path / "logs" / "lsa1").iterdir())) == 1


TOGETHER = """
import sys
from pathlib import Path
from icl_lab.store.export import WeightsAndBiases

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


@pytest.mark.parametrize(
    ("words", "sentence"),
    {
        ("--wandb", "a/b"): "Weights & Biases: Invalid project name 'a/b'",
        ("--wandb", "p", "--online"): "Weights & Biases: No API key configured",
    }.items(),
)
def test_what_weights_and_biases_refuses_is_one_sentence(
    words: tuple[str, ...], sentence: str, runs: Path, tmp_path: Path
) -> None:
    pytest.importorskip("wandb")
    line = [sys.executable, "-m", "store.export", str(runs), *words, "--wandb_dir", str(tmp_path / "w")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    environment |= {"HOME": str(tmp_path), "NETRC": str(tmp_path / "netrc")}  # no key of the user's
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {sentence}")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_it_follows_a_training_until_it_is_stopped(runs: Path, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "store.export", str(runs), "--tensorboard", str(tmp_path / "logs"), "--follow"]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        try:
            events, deadline = tmp_path / "logs" / "sweep" / "cell", time.monotonic() + 120
            while not (events.exists() and list(events.iterdir())):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            (file,) = events.iterdir()
            size = file.stat().st_size
            append_metrics(runs / "sweep" / "cell", {"step": 120, "train_loss": 0.1, "eval_loss": 0.1})
            while file.stat().st_size == size:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            following.send_signal(signal.SIGINT)
            _, said = following.communicate(timeout=60)
        finally:
            following.kill()
    assert "Traceback" not in said
