"""How a pack begins, goes on, fails and stops, on a pack that trains nothing: what its run directories say."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.executors.signals import catch_signals
from icl_lab.lab.native.kernel import Kernel
from icl_lab.lab.progress import NullLogger
from icl_lab.runners import conditions, finish, loop, resume
from icl_lab.runners.finish import DEFAULT_OUTPUTS, OutputOptions, preload_packages
from icl_lab.runners.loop import Run, run_pack
from icl_lab.runners.pack import GROWTH
from icl_lab.runners.resume import Persistence
from icl_lab.src.config import TrainConfig
from icl_lab.store import StoreError, checkpoint, layout, rundir
from icl_lab.store.metrics import METRICS_FIELDS, append_metrics, read_metrics, truncate_metrics
from tests.doors import snapshot

EVERY_CHUNK = Persistence(checkpoint_seconds=0)
BASE = RegressionConfig(training=TrainConfig(steps=6), eval_every=3)


class FakePack:
    """A pack whose chunks are one step each and cost nothing."""

    diverging_at = loop.NEVER  # the step at which every run diverges
    shared: Mapping[str, Any] = {}
    damaged: Sequence[Path] = ()

    def __init__(self, runs: list[Run], width: int, kernel: Kernel):
        self.width, self.kernel = width, kernel
        self.runs, self.places, self.eval_sets = runs, [*range(len(runs))], [None] * len(runs)
        self.alive = [True] * len(runs)
        self.step = max(checkpoint.common_steps([run.directory for run in runs]), default=0)
        self.num_steps, self.record_steps = BASE.training.steps, BASE.record_steps
        self.compile_seconds, self.run_seconds, self.chunk_steps, self.model = 0.0, 0.0, 1, None

    def advance(self) -> tuple[np.ndarray, np.ndarray]:
        self.step += 1
        count = len(self.runs)
        diverged_at = self.diverging_at if self.step >= self.diverging_at else loop.NEVER
        return np.ones(count), np.full(count, diverged_at)

    def first_losses(self) -> np.ndarray:
        return np.ones(len(self.runs))

    def record(self, index: int, train_loss: float) -> dict[str, Any]:
        return dict.fromkeys(METRICS_FIELDS, 1.0) | {"step": self.step}

    def params(self, index: int) -> None:
        return None

    def save(self, index: int) -> None:
        checkpoint.save(self.runs[index].directory, self.step, {"a": np.full(1, self.step)}, {})


def fake_finish(run: Path, *_: Any) -> Iterator[None]:
    yield
    rundir.update_meta(run, status="done")
    checkpoint.remove(run)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Two runs in fresh directories; packs and what ends a run are fakes."""
    monkeypatch.setattr(loop, "Pack", FakePack)
    monkeypatch.setattr(loop, "finalize", fake_finish)
    monkeypatch.setattr(loop, "preload_packages", lambda: None)
    return [Run(tmp_path / f"seed_{seed}", replace(BASE, data_seed=seed)) for seed in (0, 1)]


def train(runs: list[Run], persistence: Persistence = EVERY_CHUNK) -> str:
    return run_pack(runs, NullLogger(), DEFAULT_OUTPUTS, width=2, persistence=persistence)


def statuses(runs: list[Run]) -> list[str]:
    return [rundir.read_status(run.directory) for run in runs]


def test_a_pack_that_nothing_happens_to(runs: list[Run]) -> None:
    assert (train(runs), statuses(runs)) == ("done", ["done", "done"])
    for run in runs:
        assert [record["step"] for record in read_metrics(run.directory)] == [0, 3, 6]


def test_an_error_in_a_pack_is_nobodys_until_it_is_known_whose_it_is(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(run: Path, *given: Any) -> Iterator[None]:
        if run == runs[1].directory:
            raise ZeroDivisionError
        yield from fake_finish(run, *given)

    monkeypatch.setattr(loop, "finalize", failing)
    with pytest.raises(ZeroDivisionError):
        train(runs)
    assert statuses(runs) == ["done", "running"]
    assert not any("error" in rundir.read_meta(run.directory) for run in runs)
    with pytest.raises(ZeroDivisionError):
        train(runs[1:])
    assert statuses(runs) == ["done", "failed"]
    assert "ZeroDivisionError" in rundir.read_meta(runs[1].directory)["error"]


def test_a_run_goes_on_on_another_device_and_says_so_unless_that_is_refused(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        sending(patch, FakePack, "advance")
        assert train(runs) == "stopped"
    rundir.update_meta(runs[1].directory, device="NVIDIA H200, jax 0.1")
    before = snapshot(runs[1].directory.parent)
    with pytest.raises(StoreError, match=r"seed_1 was begun on NVIDIA H200, jax 0\.1, not .*; --overwrite retrains it"):
        train(runs, persistence=Persistence(strict_resume=True))
    assert snapshot(runs[1].directory.parent) == before
    assert train(runs) == "done"
    change = {"step": 1, "what": "device", "was": "NVIDIA H200, jax 0.1", "is": conditions.device_text()}
    metas = [rundir.read_meta(run.directory) for run in runs]
    assert [(meta["bitwise"], meta["resumed_elsewhere"]) for meta in metas] == [(True, []), (False, [change])]


@pytest.mark.parametrize(("elsewhere", "bitwise"), [(0, [False, False]), (1, [True, False])])
def test_a_run_that_takes_its_state_from_another_shares_its_past(
    elsewhere: int, bitwise: list[bool], runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that differ in evaluation alone go on with the state of the first of them."""
    with monkeypatch.context() as patch:
        sending(patch, FakePack, "advance")
        assert train(runs) == "stopped"
    rundir.update_meta(runs[elsewhere].directory, device="NVIDIA H200, jax 0.1")

    class Sharing(FakePack):
        def __init__(self, runs: list[Run], width: int, kernel: Kernel):
            super().__init__(runs, width, kernel)
            self.places = [0] * len(runs)

    monkeypatch.setattr(loop, "Pack", Sharing)
    assert train(runs) == "done"
    assert [rundir.read_meta(run.directory)["bitwise"] for run in runs] == bitwise


def test_checkpoints_that_only_some_runs_have_go_before_the_metrics_are_cut(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a second kill could leave a run that goes on from a checkpoint whose record was cut."""
    for run, steps in zip(runs, ((3, 5), (2, 3)), strict=True):
        rundir.begin(run.directory, run.config)
        rundir.update_meta(run.directory, run_seconds=1.0, status="running")
        for step in range(0, 6, 3):
            append_metrics(run.directory, {"step": step})
        for step in steps:
            checkpoint.save(run.directory, step, {"a": np.zeros(1)}, {})
    cut, had = truncate_metrics, {}

    def watched(run: Path, *given: Any) -> None:
        had[run] = checkpoint.steps(run)
        cut(run, *given)

    monkeypatch.setattr(resume, "truncate_metrics", watched)
    assert train(runs) == "done"
    assert [had[run.directory] for run in runs] == [[3], [2, 3]]


@pytest.mark.parametrize("step", range(1, 7))
def test_a_run_goes_on_from_every_step_and_only_with_the_records_behind_it(runs: list[Run], step: int) -> None:
    run = runs[0]
    rundir.begin(run.directory, run.config)
    rundir.update_meta(run.directory, run_seconds=1.0, status="running")
    for recorded in (0, 3, 6):
        append_metrics(run.directory, dict.fromkeys(METRICS_FIELDS, 1.0) | {"step": recorded})
    checkpoint.save(run.directory, step, {"a": np.zeros(1)}, {})
    whole = (run.directory / layout.METRICS).read_bytes()
    (run.directory / layout.METRICS).write_bytes(whole[whole.index(b"\n") + 1 :])
    with pytest.raises(StoreError, match=r"lacks records .*--overwrite retrains the run"):
        train([run])
    (run.directory / layout.METRICS).write_bytes(whole)
    assert (train([run]), (run.directory / layout.METRICS).read_bytes()) == ("done", whole)


def test_the_first_chunk_of_a_resume_is_short_whatever_was_stored(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine may be slower now, and the file may be another's."""
    run, taken = runs[0], []
    rundir.begin(run.directory, run.config)
    rundir.update_meta(run.directory, run_seconds=1.0, status="running", chunk_steps=2**30)
    append_metrics(run.directory, {"step": 0})
    checkpoint.save(run.directory, 1, {"a": np.zeros(1)}, {})
    advance = FakePack.advance
    monkeypatch.setattr(FakePack, "advance", lambda pack: (taken.append(pack.chunk_steps), advance(pack))[1])
    train([run])
    assert taken[0] == GROWTH


# Signals


def sending(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int = signal.SIGTERM) -> None:
    """This process gets a signal at the end of each call of a function."""
    function = getattr(owner, name)

    def interrupted(*given: Any) -> Any:
        result = function(*given)
        os.kill(os.getpid(), number)
        return result

    monkeypatch.setattr(owner, name, interrupted)


def test_a_signal_ends_a_pack_after_its_chunk(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    sending(monkeypatch, FakePack, "advance")
    assert (train(runs), statuses(runs)) == ("stopped", ["stopped", "stopped"])
    meta = rundir.read_meta(runs[0].directory)
    assert (meta["stopped_at"], meta["signal"]) == (1, signal.SIGTERM)


def test_a_signal_in_the_chunk_in_which_all_diverge_stops_nothing(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakePack, "diverging_at", 1)
    sending(monkeypatch, FakePack, "advance")
    assert (train(runs), statuses(runs)) == ("diverged", ["diverged", "diverged"])


def test_a_signal_after_the_last_word_leaves_the_run_done_and_what_follows_alone(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packs that one caller trains receive the same signals, also one between them."""
    sending(monkeypatch, checkpoint, "remove")
    with catch_signals() as signals:
        ended = [run_pack([run], NullLogger(), width=2, signals=signals) for run in runs]
    assert (ended, statuses(runs)) == (["done", "stopped"], ["done", "new"])
    assert signals.received == [signal.SIGTERM]


def test_a_signal_stops_before_what_is_added_to_the_next_run_or_its_training(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A family adds to runs that are done what is asked for later, as regression does captured attention."""

    def add(run: Path, config: Any, outputs: OutputOptions) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    assert train(runs[:1]) == "done"
    monkeypatch.setattr(loop, "add_asked", add)
    assert (train(runs[:1]), statuses(runs)) == ("done", ["done", "new"])
    assert (train(runs), statuses(runs)) == ("stopped", ["done", "new"])


def test_what_a_kill_left_of_a_done_run_is_removed(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "remove", lambda run: None)
        train(runs)
    assert [checkpoint.steps(run.directory) for run in runs] == [[5, 6], [5, 6]]
    assert train(runs) == "done"
    assert [checkpoint.steps(run.directory) for run in runs] == [[], []]


def test_a_run_that_goes_on_says_nothing_of_how_it_ended_before(runs: list[Run]) -> None:
    rundir.begin(runs[0].directory, runs[0].config)
    ends = {"status": "failed", "error": "Traceback", "stopped_at": 1, "signal": 15, "end": "2026-01-01"}
    rundir.update_meta(runs[0].directory, run_seconds=1.0, git_hash=None, **ends)
    append_metrics(runs[0].directory, {"step": 0})
    checkpoint.save(runs[0].directory, 1, {"a": np.zeros(1)}, {})
    assert train(runs[:1]) == "done"
    meta = rundir.read_meta(runs[0].directory)
    assert (meta["status"], meta["git_hash"]) == ("done", None)
    assert not {"error", "stopped_at", "signal", "end"} & set(meta)  # the fake that ends a run says no time


def test_imports_that_fail_ahead_of_time_say_nothing_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the thread they would be a traceback beside the run; where they are needed, they are an error."""
    tried = []

    def missing(name: str) -> None:
        tried.append(name)
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(finish, "import_module", missing)
    preload_packages()
    assert tried == ["pandas"]
