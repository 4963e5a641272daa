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
from icl_lab.runners import finish, training
from icl_lab.runners.finish import DEFAULT_WANTED, Ending, Wanted, preload_packages
from icl_lab.runners.pack import GROWTH, Lane
from icl_lab.runners.persistence import Persistence
from icl_lab.runners.progress import NullLogger
from icl_lab.runners.training import Job, run_pack
from icl_lab.src.config import TrainConfig
from icl_lab.store import StoreError, checkpoint, layout, rundir
from icl_lab.store.rundir import METRICS_FIELDS
from tests.doors import snapshot

EVERY_CHUNK = Persistence(checkpoint_seconds=0)
BASE = RegressionConfig(training=TrainConfig(steps=6), eval_every=3)


class FakePack:
    """A pack whose chunks are one step each and cost nothing."""

    diverging_at = training.NEVER  # the step at which every lane diverges
    shared: Mapping[str, Any] = {}
    damaged: Sequence[Path] = ()

    def __init__(self, jobs: list[Job], width: int):
        self.width = width
        self.lanes = [Lane(job, place, None) for place, job in enumerate(jobs)]
        self.alive = [True] * len(jobs)
        self.step = max(checkpoint.common_steps([job.run for job in jobs]), default=0)
        self.num_steps, self.record_steps = BASE.training.steps, BASE.record_steps
        self.compile_seconds, self.run_seconds, self.chunk_steps, self.model = 0.0, 0.0, 1, None

    def advance(self) -> tuple[np.ndarray, np.ndarray]:
        self.step += 1
        lanes = len(self.lanes)
        diverged_at = self.diverging_at if self.step >= self.diverging_at else training.NEVER
        return np.ones(lanes), np.full(lanes, diverged_at)

    def first_losses(self) -> np.ndarray:
        return np.ones(len(self.lanes))

    def record(self, index: int, train_loss: float) -> dict[str, Any]:
        return dict.fromkeys(METRICS_FIELDS, 1.0) | {"step": self.step}

    def params(self, index: int) -> None:
        return None

    def save(self, index: int) -> None:
        checkpoint.save(self.lanes[index].job.run, self.step, {"a": np.full(1, self.step)}, {})


def fake_finish(run: Path, *_: Any) -> Iterator[None]:
    yield
    rundir.update_meta(run, status="done")
    checkpoint.remove(run)


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Two jobs in fresh directories; packs and what ends a run are fakes."""
    monkeypatch.setattr(training, "Pack", FakePack)
    monkeypatch.setattr(training, "finish", fake_finish)
    monkeypatch.setattr(training, "preload_packages", lambda: None)
    return [Job(tmp_path / f"seed_{seed}", replace(BASE, data_seed=seed)) for seed in (0, 1)]


def train(jobs: list[Job], persistence: Persistence = EVERY_CHUNK) -> str:
    return run_pack(jobs, NullLogger(), DEFAULT_WANTED, width=2, persistence=persistence)


def statuses(jobs: list[Job]) -> list[str]:
    return [rundir.read_status(job.run) for job in jobs]


def test_a_pack_that_nothing_happens_to(jobs: list[Job]) -> None:
    assert (train(jobs), statuses(jobs)) == ("done", ["done", "done"])
    for job in jobs:
        assert [record["step"] for record in rundir.read_metrics(job.run)] == [0, 3, 6]


def test_an_error_in_a_pack_is_nobodys_until_it_is_known_whose_it_is(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(run: Path, *given: Any) -> Iterator[None]:
        if run == jobs[1].run:
            raise ZeroDivisionError
        yield from fake_finish(run, *given)

    monkeypatch.setattr(training, "finish", failing)
    with pytest.raises(ZeroDivisionError):
        train(jobs)
    assert statuses(jobs) == ["done", "running"]
    assert not any("error" in rundir.read_meta(job.run) for job in jobs)
    with pytest.raises(ZeroDivisionError):
        train(jobs[1:])
    assert statuses(jobs) == ["done", "failed"]
    assert "ZeroDivisionError" in rundir.read_meta(jobs[1].run)["error"]


def test_a_run_goes_on_on_another_device_and_says_so_unless_that_is_refused(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        sending(patch, FakePack, "advance")
        assert train(jobs) == "stopped"
    rundir.update_meta(jobs[1].run, device="NVIDIA H200, jax 0.1")
    before = snapshot(jobs[1].run.parent)
    with pytest.raises(StoreError, match=r"seed_1 was begun on NVIDIA H200, jax 0\.1, not .*; --overwrite retrains it"):
        train(jobs, persistence=Persistence(strict_resume=True))
    assert snapshot(jobs[1].run.parent) == before
    assert train(jobs) == "done"
    change = {"step": 1, "what": "device", "was": "NVIDIA H200, jax 0.1", "is": training.device_text()}
    metas = [rundir.read_meta(job.run) for job in jobs]
    assert [(meta["bitwise"], meta["resumed_elsewhere"]) for meta in metas] == [(True, []), (False, [change])]


@pytest.mark.parametrize(("elsewhere", "bitwise"), [(0, [False, False]), (1, [True, False])])
def test_a_run_that_takes_its_state_from_another_shares_its_past(
    elsewhere: int, bitwise: list[bool], jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that differ in evaluation alone go on with the state of the first of them."""
    with monkeypatch.context() as patch:
        sending(patch, FakePack, "advance")
        assert train(jobs) == "stopped"
    rundir.update_meta(jobs[elsewhere].run, device="NVIDIA H200, jax 0.1")

    class Sharing(FakePack):
        def __init__(self, jobs: list[Job], width: int):
            super().__init__(jobs, width)
            self.lanes = [Lane(job, 0, None) for job in jobs]

    monkeypatch.setattr(training, "Pack", Sharing)
    assert train(jobs) == "done"
    assert [rundir.read_meta(job.run)["bitwise"] for job in jobs] == bitwise


def test_checkpoints_that_only_some_runs_have_go_before_the_metrics_are_cut(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a second kill could leave a run that goes on from a checkpoint whose record was cut."""
    for job, steps in zip(jobs, ((3, 5), (2, 3)), strict=True):
        rundir.begin(job.run, job.config)
        rundir.update_meta(job.run, run_seconds=1.0, status="running")
        for step in range(0, 6, 3):
            rundir.append_metrics(job.run, {"step": step})
        for step in steps:
            checkpoint.save(job.run, step, {"a": np.zeros(1)}, {})
    cut, had = rundir.truncate_metrics, {}

    def watched(run: Path, *given: Any) -> None:
        had[run] = checkpoint.steps(run)
        cut(run, *given)

    monkeypatch.setattr(rundir, "truncate_metrics", watched)
    assert train(jobs) == "done"
    assert [had[job.run] for job in jobs] == [[3], [2, 3]]


@pytest.mark.parametrize("step", range(1, 7))
def test_a_run_goes_on_from_every_step_and_only_with_the_records_behind_it(jobs: list[Job], step: int) -> None:
    job = jobs[0]
    rundir.begin(job.run, job.config)
    rundir.update_meta(job.run, run_seconds=1.0, status="running")
    for recorded in (0, 3, 6):
        rundir.append_metrics(job.run, dict.fromkeys(METRICS_FIELDS, 1.0) | {"step": recorded})
    checkpoint.save(job.run, step, {"a": np.zeros(1)}, {})
    whole = (job.run / layout.METRICS).read_bytes()
    (job.run / layout.METRICS).write_bytes(whole[whole.index(b"\n") + 1 :])
    with pytest.raises(StoreError, match=r"lacks records .*--overwrite retrains the run"):
        train([job])
    (job.run / layout.METRICS).write_bytes(whole)
    assert (train([job]), (job.run / layout.METRICS).read_bytes()) == ("done", whole)


def test_the_first_chunk_of_a_resume_is_short_whatever_was_stored(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine may be slower now, and the file may be another's."""
    job, taken = jobs[0], []
    rundir.begin(job.run, job.config)
    rundir.update_meta(job.run, run_seconds=1.0, status="running", chunk_steps=2**30)
    rundir.append_metrics(job.run, {"step": 0})
    checkpoint.save(job.run, 1, {"a": np.zeros(1)}, {})
    advance = FakePack.advance
    monkeypatch.setattr(FakePack, "advance", lambda pack: (taken.append(pack.chunk_steps), advance(pack))[1])
    train([job])
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


def test_a_signal_ends_a_pack_after_its_chunk(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    sending(monkeypatch, FakePack, "advance")
    assert (train(jobs), statuses(jobs)) == ("stopped", ["stopped", "stopped"])
    meta = rundir.read_meta(jobs[0].run)
    assert (meta["stopped_at"], meta["signal"]) == (1, signal.SIGTERM)


def test_a_signal_in_the_chunk_in_which_all_diverge_stops_nothing(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakePack, "diverging_at", 1)
    sending(monkeypatch, FakePack, "advance")
    assert (train(jobs), statuses(jobs)) == ("diverged", ["diverged", "diverged"])


def test_a_signal_after_the_last_word_leaves_the_run_done_and_what_follows_alone(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packs that one caller trains receive the same signals, also one between them."""
    sending(monkeypatch, checkpoint, "remove")
    with catch_signals() as signals:
        ended = [run_pack([job], NullLogger(), width=2, signals=signals) for job in jobs]
    assert (ended, statuses(jobs)) == (["done", "stopped"], ["done", "new"])
    assert signals.received == [signal.SIGTERM]


def test_a_signal_stops_before_what_is_added_to_the_next_run_or_its_training(
    jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A family adds to runs that are done what is asked for later, as regression does captured attention."""

    def add(run: Path, wanted: Wanted) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    assert train(jobs[:1]) == "done"
    monkeypatch.setattr(training, "ending_of", lambda config: Ending(fake_finish, lambda *_: [], add))
    assert (train(jobs[:1]), statuses(jobs)) == ("done", ["done", "new"])
    assert (train(jobs), statuses(jobs)) == ("stopped", ["done", "new"])


def test_what_a_kill_left_of_a_done_run_is_removed(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "remove", lambda run: None)
        train(jobs)
    assert [checkpoint.steps(job.run) for job in jobs] == [[5, 6], [5, 6]]
    assert train(jobs) == "done"
    assert [checkpoint.steps(job.run) for job in jobs] == [[], []]


def test_a_run_that_goes_on_says_nothing_of_how_it_ended_before(jobs: list[Job]) -> None:
    rundir.begin(jobs[0].run, jobs[0].config)
    ends = {"status": "failed", "error": "Traceback", "stopped_at": 1, "signal": 15, "end": "2026-01-01"}
    rundir.update_meta(jobs[0].run, run_seconds=1.0, git_hash=None, **ends)
    rundir.append_metrics(jobs[0].run, {"step": 0})
    checkpoint.save(jobs[0].run, 1, {"a": np.zeros(1)}, {})
    assert train(jobs[:1]) == "done"
    meta = rundir.read_meta(jobs[0].run)
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
