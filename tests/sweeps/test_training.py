"""A pack of a sweep in this process, on packs that train nothing: whose an error is, and what begins anew."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runners import common
from runners.signals import Signals
from store import checkpoint, rundir
from sweeps.plan import Pack, cell_of
from sweeps.training import Outcome, train
from tests.runners.test_common import BASE, FakePack, fake_finish, finishing


@pytest.fixture
def pack(monkeypatch: pytest.MonkeyPatch) -> Pack:
    """Two cells that train together."""
    monkeypatch.setattr(common, "Pack", FakePack)
    monkeypatch.setattr(FakePack, "family", finishing(fake_finish), raising=False)
    monkeypatch.setattr(common, "import_what_ends_a_run", lambda: None)
    return Pack(tuple(cell_of(replace(BASE, data_seed=seed)) for seed in (0, 1)))


def trained(pack: Pack, folder: Path, signals: Signals | None = None) -> Outcome:
    return train(folder, pack, 2, lambda steps: None, signals or Signals())


def test_a_signal_after_an_error_leaves_the_error_with_its_own_cell(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first cell fails together with the second, and again alone, when a signal comes."""
    failing, other = (tmp_path / cell.name for cell in pack.cells)
    signals, failures = Signals(), []

    def finish(run: Path, *given: Any) -> Iterator[None]:
        if run == failing:
            failures.append(run)
            if len(failures) == 2:
                signals.hear(signal.SIGTERM, None)
            raise ZeroDivisionError("the sky has fallen")
        yield from fake_finish(run, *given)

    monkeypatch.setattr(FakePack, "family", finishing(finish))
    outcome = trained(pack, tmp_path, signals)
    assert (outcome.stopped, outcome.reasons) == (True, {failing.name: "ZeroDivisionError: the sky has fallen"})
    assert rundir.read_status(failing) == "failed"
    assert rundir.read_meta(failing)["error"].endswith("ZeroDivisionError: the sky has fallen\n")
    assert rundir.read_status(other) == "stopped"
    assert "error" not in rundir.read_meta(other)


def stopped_elsewhere(pack: Pack, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cell that was stopped after its first chunk, on another device."""
    signals, run = Signals(), folder / pack.cells[0].name

    def advance(training: FakePack) -> Any:
        signals.hear(signal.SIGTERM, None)
        return FakePack.advance(training)

    with monkeypatch.context() as patch:
        patch.setattr(common, "Pack", type("Stopping", (FakePack,), {"advance": advance}))
        assert trained(Pack(pack.cells[:1]), folder, signals).stopped
    rundir.update_meta(run, device="NVIDIA H200, jax 0.1")
    return run


def test_a_cell_that_was_begun_on_another_device_begins_anew(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped_elsewhere(pack, tmp_path, monkeypatch)
    assert checkpoint.steps(run)
    assert trained(pack, tmp_path).reasons == {}
    assert (rundir.read_status(run), rundir.read_meta(run)["device"]) == ("done", common.device_text())


def test_a_cell_that_cannot_begin_anew_has_failed(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stopped_elsewhere(pack, tmp_path, monkeypatch)

    def refuse(_: Path) -> None:
        raise PermissionError(1, "Operation not permitted", "attn")

    monkeypatch.setattr(rundir, "clear", refuse)
    outcome = trained(Pack(pack.cells[:1]), tmp_path)
    assert outcome == Outcome(Pack(pack.cells[:1]), {run.name: "attn: Operation not permitted"})
    assert rundir.read_status(run) == "failed"
    assert "PermissionError" in rundir.read_meta(run)["error"]
