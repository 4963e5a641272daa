"""A pack of a sweep in this process, on packs that train nothing: whose an error is, and what goes on."""

import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.task import Outcome
from icl_lab.runners import conditions, loop
from icl_lab.runners.resume import DEFAULT_PERSISTENCE, Persistence
from icl_lab.store import checkpoint, layout, lock, ownership, rundir
from icl_lab.sweeps.plan import Pack, planned_run, runs_of
from icl_lab.sweeps.training import LOCK_TIMEOUT, PackResult, result_of, task_of, train
from tests.doors import snapshot
from tests.runners.test_loop import BASE, FakePack, fake_finish
from tests.sweeps.tiny_sweep import tiny_plan


@pytest.fixture
def pack(monkeypatch: pytest.MonkeyPatch) -> Pack:
    """Two runs that train together."""
    monkeypatch.setattr(loop, "Pack", FakePack)
    monkeypatch.setattr(loop, "finalize", fake_finish)
    monkeypatch.setattr(loop, "preload_packages", lambda: None)
    return Pack(tuple(planned_run(replace(BASE, data_seed=seed)) for seed in (0, 1)))


def trained(pack: Pack, folder: Path, signals: Signals | None = None) -> PackResult:
    return train(folder, pack, 2, lambda steps: None, signals or Signals())


def test_a_signal_after_an_error_leaves_the_error_with_its_own_cell(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run fails together with the second, and again alone, when a signal comes."""
    failing, other = (tmp_path / planned.name for planned in pack.runs)
    signals, failures = Signals(), []

    def finish(run: Path, *given: Any) -> Iterator[None]:
        if run == failing:
            failures.append(run)
            if len(failures) == 2:
                signals.receive(signal.SIGTERM, None)
            raise ZeroDivisionError("the sky has fallen")
        yield from fake_finish(run, *given)

    monkeypatch.setattr(loop, "finalize", finish)
    outcome = trained(pack, tmp_path, signals)
    assert (outcome.stopped, outcome.errors) == (True, {failing.name: "ZeroDivisionError: the sky has fallen"})
    assert rundir.read_status(failing) == "failed"
    assert rundir.read_meta(failing)["error"].endswith("ZeroDivisionError: the sky has fallen\n")
    assert rundir.read_status(other) == "stopped"
    assert "error" not in rundir.read_meta(other)


def stopped_elsewhere(pack: Pack, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was stopped after its first chunk, on another device."""
    signals, run = Signals(), folder / pack.runs[0].name

    def advance(training: FakePack) -> Any:
        signals.receive(signal.SIGTERM, None)
        return FakePack.advance(training)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "Pack", type("Stopping", (FakePack,), {"advance": advance}))
        assert trained(Pack(pack.runs[:1]), folder, signals).stopped
    rundir.update_meta(run, device="NVIDIA H200, jax 0.1")
    return run


def test_a_run_that_was_begun_on_another_device_goes_on_from_its_step(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped_elsewhere(pack, tmp_path, monkeypatch)
    assert checkpoint.steps(run) == [1]
    assert trained(pack, tmp_path).errors == {}
    meta = rundir.read_meta(run)
    assert (meta["status"], meta["device"], meta["bitwise"]) == ("done", "NVIDIA H200, jax 0.1", False)
    assert [(change["step"], change["what"]) for change in meta["resumed_elsewhere"]] == [(1, "device")]
    assert rundir.read_meta(tmp_path / pack.runs[1].name)["bitwise"] is True


def test_if_that_is_refused_the_run_has_failed_and_stays_as_it_is(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped_elsewhere(pack, tmp_path, monkeypatch)
    before = snapshot(run)
    outcome = train(tmp_path, pack, 2, lambda steps: None, Signals(), Persistence(strict_resume=True))
    reason = f"{run} was begun on NVIDIA H200, jax 0.1, not {conditions.device_text()}; --overwrite retrains it"
    assert outcome == PackResult(pack, {run.name: reason})
    assert snapshot(run) == before
    assert rundir.read_status(tmp_path / pack.runs[1].name) == "done"


def test_a_run_whose_meta_is_damaged_has_failed_and_is_not_cleared(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped_elsewhere(pack, tmp_path, monkeypatch)
    rundir.update_meta(run, threads="many")
    before = snapshot(run)
    errors = trained(pack, tmp_path).errors
    assert errors == {run.name: f"{run / layout.META} is not a run's meta.json; --overwrite retrains the run"}
    assert snapshot(run) == before


def test_a_pack_whose_process_died_takes_what_it_had_not_finished(tmp_path: Path) -> None:
    pack = Pack(tuple(runs_of(tiny_plan())))
    done, diverged, stopped, fresh = (tmp_path / planned.name for planned in pack.runs)
    for run, planned, status in zip(
        (done, diverged, stopped), pack.runs, ("done", "diverged", "stopped"), strict=False
    ):
        rundir.begin(run, planned.config)
        rundir.update_meta(run, status=status)
    task = task_of(pack, tmp_path, 8, DEFAULT_PERSISTENCE)
    failed = dict.fromkeys((stopped.name, fresh.name), "it is dead")
    assert result_of(Outcome(task, died="it is dead"), pack, tmp_path) == PackResult(pack, failed)
    statuses = [rundir.read_status(run) for run in (done, diverged, stopped, fresh)]
    assert statuses == ["done", "diverged", "failed", "new"]
    assert rundir.read_meta(stopped)["error"] == "it is dead"


def test_a_run_that_a_process_still_has_is_not_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process elsewhere that is reported dead may be alive, and done a moment later. It is not waited for."""
    pack = Pack(tuple(runs_of(tiny_plan()))[:3])
    elsewhere, here, gone = (tmp_path / planned.name for planned in pack.runs)
    for run, planned in zip((elsewhere, here, gone), pack.runs, strict=True):
        rundir.begin(run, planned.config)
        rundir.update_meta(run, status="running")
    me = ownership.this_process()
    lock_files = {elsewhere: me._replace(host="elsewhere boot 1"), here: me, gone: me._replace(start="1")}
    for run, owner in lock_files.items():
        (run / layout.LOCK).write_bytes(owner.content())
    before = [(run / layout.META).read_bytes() for run in (elsewhere, here)]
    monkeypatch.setattr(lock, "RETRY_SECONDS", None)  # waiting is an error
    task = task_of(pack, tmp_path, 8, DEFAULT_PERSISTENCE)
    outcome = result_of(Outcome(task, died="its node is lost"), pack, tmp_path)
    assert outcome == PackResult(pack, dict.fromkeys([planned.name for planned in pack.runs], "its node is lost"))
    assert [(run / layout.META).read_bytes() for run in (elsewhere, here)] == before
    assert rundir.read_status(gone) == "failed"


def test_a_run_whose_owner_elsewhere_beats_for_a_while_is_trained(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was cut off from its cluster does not end at once."""
    run, clock = tmp_path / pack.runs[0].name, [0.0]
    rundir.begin(run, pack.runs[0].config)
    owner = ownership.Owner("0" * 16, "elsewhere boot 1", 1, "1")

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        if clock[0] < 3 * LOCK_TIMEOUT:
            beat = f"{int(clock[0]):0{ownership.DIGITS}d}"
            (run / layout.LOCK).write_bytes(owner._replace(beat=beat).content())

    monkeypatch.setattr(lock, "RETRY_SECONDS", 1.0)
    for module, sleeping in ((lock, sleep), (ownership, time.sleep)):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleeping))
    (run / layout.LOCK).write_bytes(owner.content())
    assert trained(pack, tmp_path).errors == {}
    assert rundir.read_status(run) == "done"
    assert clock[0] > 3 * LOCK_TIMEOUT + ownership.STALE_SECONDS - 2


def test_a_task_works_on_all_runs_of_its_pack() -> None:
    """So no other pack of these waits in vain for its first run alone, however a later plan packs them."""
    pack = Pack(tuple(runs_of(tiny_plan())))
    assert task_of(pack, Path(), 8, DEFAULT_PERSISTENCE).subjects == tuple(planned.name for planned in pack.runs)


def test_how_a_task_ends_is_how_its_pack_ends(tmp_path: Path) -> None:
    pack = Pack(tuple(runs_of(tiny_plan())))
    task = task_of(pack, tmp_path, 8, DEFAULT_PERSISTENCE)
    errors = {pack.runs[0].name: "so"}
    assert result_of(Outcome(task, (errors, True)), pack, tmp_path) == PackResult(pack, errors, stopped=True)
    assert result_of(Outcome(task, stopped=True), pack, tmp_path) == PackResult(pack, {}, stopped=True)
    refused = result_of(Outcome(task, error=OSError("no process")), pack, tmp_path)
    assert refused.errors == dict.fromkeys([planned.name for planned in pack.runs], "OSError: no process")
