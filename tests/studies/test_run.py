"""`studies.run` as a user types it: trained, measured, killed, gone on with."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from store import outputs
from studies import ledger, page
from studies.study import all_studies, load
from tests.doors import Ran
from tests.runners.tiny import ROOT

WHERE = ("--report", "ledger", "--runs_dir", "runs", "--out", "runs.csv")


def read(path: Path) -> dict[str, tuple[float, ...]]:
    return {name: found.values for name, found in ledger.known(path.parent).items()}


def test_a_claim_that_needs_no_training_is_measured_and_the_others_stay_as_they_are(ran: Ran, tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    folder.mkdir()
    known = (ROOT / "report" / ledger.TABLE).read_bytes()
    outputs.write({folder / ledger.TABLE: known}, ledger.WRITER)
    before = read(folder / ledger.TABLE)
    done = ran("studies.run", "reproduction", "--claims", "eigenvalue_max_10", *WHERE)
    assert done.status == 0, done.err
    assert "1 of 1, eigenvalue_max_10: reproduced\n" in done.out
    after = read(folder / ledger.TABLE)
    assert len(after.pop("eigenvalue_max_10")) == 8
    before.pop("eigenvalue_max_10", None)
    assert after == before
    text = (folder / ledger.PAGE).read_text()
    assert all(claim.says.replace("|", "\\|") in text for study in all_studies() for claim in study.claims)


@pytest.mark.slow
def test_the_control_of_a_claim_of_runs_that_learnt_is_measured_alone_and_without_that_criterion(
    ran: Ran, tmp_path: Path
) -> None:
    folder = tmp_path / "ledger"
    folder.mkdir()
    outputs.write({folder / ledger.TABLE: (ROOT / "report" / ledger.TABLE).read_bytes()}, ledger.WRITER)
    before = ledger.known(folder)["size_5_ratio"]
    done = ran("studies.run", "reproduction", "--claims", "size_5_ratio", "--controls", *WHERE)
    assert done.status == 0, done.err
    after = ledger.known(folder)["size_5_ratio"]
    assert (after.values, after.seeds, after.git_hash) == (before.values, before.seeds, before.git_hash)
    assert len(after.control_values) == 3
    assert all(1.5 < value < 2.5 for value in after.control_values)  # predicting 0, over one step
    assert set(before.cells) <= set(after.cells)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--controls", "--controls needs --claims"),
        ("--claims size_5_ratio --controls", "size_5_ratio is not measured; leave --controls out"),
    ],
)
def test_controls_are_of_claims_that_are_measured(words: str, said: str, ran: Ran, tmp_path: Path) -> None:
    done = ran("studies.run", "reproduction", *words.split(), *WHERE)
    assert (done.status, done.out, done.err) == (2, "", f"error: {said}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_claims_of_any_study_are_measured_once_each(ran: Ran, tmp_path: Path) -> None:
    """Under whichever study they are asked for, and however often."""
    names = "exact_ridge,eigenvalue_max_10,eigenvalue_max_25,eigenvalue_max_10"
    done = ran("studies.run", "order_noise", "--claims", names, *WHERE)
    assert done.status == 0, done.err
    lines = [line.partition(":")[0] for line in done.out.splitlines() if " of " in line and ", e" in line]
    assert sorted(lines) == ["1 of 1, exact_ridge", "1 of 2, eigenvalue_max_10", "2 of 2, eigenvalue_max_25"]
    assert set(read(tmp_path / "ledger" / ledger.TABLE)) == {"exact_ridge", "eigenvalue_max_10", "eigenvalue_max_25"}


def test_the_table_of_a_study_is_not_replaced(ran: Ran, tmp_path: Path) -> None:
    done = ran("studies.run", "reproduction", "--claims", "eigenvalue_max_10", "--replace_table", *WHERE)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "leave --replace_table out" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_writes_nothing(ran: Ran, tmp_path: Path) -> None:
    done = ran("studies.run", "reproduction", "--claims", "size_5_ratio", "--dry_run", *WHERE)
    assert done.status == 0
    assert "11 cells to do: 11 trainings" in done.out  # eight seeds, and three networks untrained
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_cannot_be_written_is_said_before_anything_is_measured(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    done = ran("studies.run", "reproduction", "--claims", "eigenvalue_max_10", "--report", "ledger", "--out", "folder")
    assert (done.status, done.out, done.err) == (2, "", "error: folder is a folder, not a file\n")
    assert not (tmp_path / "ledger").exists()


@pytest.mark.slow
def test_killed_it_goes_on_and_ends_with_the_same_numbers(tmp_path: Path) -> None:
    """A kill of the sweep and its workers loses what the last checkpoints do not hold, and no more."""

    def command(folder: str) -> list[str]:
        place = tmp_path / folder
        where = [word if word.startswith("--") else str(place / word) for word in WHERE]
        return [sys.executable, "-m", "studies.run", "reproduction", "--claims", "size_5_ratio", *where]

    killed = subprocess.Popen(
        command("killed"), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    checkpoints, deadline = tmp_path / "killed" / "runs", time.monotonic() + 300
    while not list(checkpoints.glob("*/checkpoints/*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    for folder in ("killed", "whole"):
        done = subprocess.run(command(folder), cwd=ROOT, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    found, expected = (read(tmp_path / folder / "ledger" / ledger.TABLE) for folder in ("killed", "whole"))
    assert found == expected
    assert len(expected["size_5_ratio"]) == 8
    metrics = [
        sorted(path.read_bytes() for path in (tmp_path / folder).glob("runs/*/metrics.jsonl"))
        for folder in ("killed", "whole")
    ]
    assert metrics[0] == metrics[1]
    assert all(json.loads(line)["step"] >= 0 for line in metrics[0][0].splitlines())


def test_claims_of_a_study_of_conditions_need_none_of_its_tables(ran: Ran, tmp_path: Path) -> None:
    """Its page is made once they are there; the ledger has its claims before."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    page.write(load("order_noise"), "full", folder)
    assert list(folder.iterdir()) == []


def test_a_figure_of_somebody_elses_is_said_before_anything_is_measured(ran: Ran, tmp_path: Path) -> None:
    theirs = tmp_path / "ledger" / ledger.FIGURES / "paper.png"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    done = ran("studies.run", "reproduction", "--claims", "eigenvalue_max_10", *WHERE)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "paper.png was not written by plots" in done.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [theirs]
