"""`studies.run` as a user types it: trained, measured, killed, gone on with."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icl_lab.store import outputs
from icl_lab.studies import ledger, page
from icl_lab.studies.run import figures_with
from icl_lab.studies.study import all_studies, load
from tests.clusters import ON_CLUSTERS
from tests.doors import Ran
from tests.runners.tiny import INTERRUPTED, ROOT, Workshop
from tests.studies.results import without_clock

WHERE = ("--report", "ledger", "--runs_dir", "runs", "--out", "runs.csv")
SAMPLED = "one_step_size"  # a claim that needs no training


def read(path: Path) -> dict[str, tuple[float, ...]]:
    return {name: found.values for name, found in ledger.known(path.parent).items()}


def places(folder: Path) -> list[str]:
    """The flags of a command that writes into a folder alone."""
    return [word if word.startswith("--") else str(folder / word) for word in WHERE]


def with_ledger(folder: Path) -> Path:
    """A folder with the committed ledger."""
    known = (ROOT / "report" / ledger.TABLE).read_bytes()
    outputs.write({folder / "ledger" / ledger.TABLE: known}, ledger.WRITER)
    return folder


@pytest.fixture(scope="module")
def measured(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ledger after one of its claims, which needs no training, was measured again. Read only."""
    folder = with_ledger(tmp_path_factory.mktemp("measured"))
    done = workshop.run("studies.run", "reproduction", "--claims", SAMPLED, *places(folder))
    assert done.returncode == 0, done.stderr
    (folder / "said").write_text(done.stdout)
    return folder


def test_a_claim_that_needs_no_training_is_measured_and_the_others_stay_as_they_are(
    measured: Path, tmp_path: Path
) -> None:
    assert f"1 of 1, {SAMPLED}: reproduced\n" in (measured / "said").read_text()
    before = read(with_ledger(tmp_path) / "ledger" / ledger.TABLE)
    after = read(measured / "ledger" / ledger.TABLE)
    assert len(after.pop(SAMPLED)) == 8
    before.pop(SAMPLED, None)
    assert after == before
    count = sum(len(study.claims) for study in all_studies())
    assert f"lists all {count} claims" in (measured / "ledger" / ledger.PAGE).read_text()


@pytest.mark.robust
def test_killed_in_the_middle_of_its_results_it_ends_with_the_same_bytes(
    measured: Path, workshop: Workshop, tmp_path: Path
) -> None:
    line = ["studies.run", "reproduction", "--claims", SAMPLED, *places(with_ledger(tmp_path))]
    killed = workshop.run(*line, INTERRUPT="after:claims.csv:SIGKILL", PYTHONPATH=INTERRUPTED)
    assert killed.returncode == -9, killed.stderr
    assert not (tmp_path / "ledger" / ledger.PAGE).exists()
    done = workshop.run(*line)
    assert done.returncode == 0, done.stderr
    assert without_clock(tmp_path / "ledger", SAMPLED) == without_clock(measured / "ledger", SAMPLED)


@pytest.mark.slow
@ON_CLUSTERS
def test_on_a_cluster_claims_have_the_same_values(
    measured: Path, workshop: Workshop, tmp_path: Path, package: str, executor: tuple[str, ...]
) -> None:
    pytest.importorskip(package)
    done = workshop.run("studies.run", "reproduction", "--claims", SAMPLED, *places(with_ledger(tmp_path)), *executor)
    assert done.returncode == 0, done.stderr
    assert f"1 of 1, {SAMPLED}: reproduced\n" in done.stdout
    assert without_clock(tmp_path / "ledger", SAMPLED) == without_clock(measured / "ledger", SAMPLED)


@pytest.mark.slow
def test_claims_of_any_study_are_measured_once_each(ran: Ran, tmp_path: Path) -> None:
    """Under whichever study they are asked for, and however often."""
    done = ran("studies.run", "order_noise", "--claims", f"{SAMPLED},{SAMPLED}", *WHERE)
    assert done.status == 0, done.err
    assert re.findall(r"^\d+ of \d+, \w+", done.out, re.M) == [f"1 of 1, {SAMPLED}"]
    assert set(read(tmp_path / "ledger" / ledger.TABLE)) == {SAMPLED}


def test_figures_that_read_an_analysis_of_further_runs_are_drawn_with_the_claims_of_all_of_them() -> None:
    """The further runs may have been trained and not analysed, and a figure would find no numbers of them."""
    study = load("stages")
    claims = {claim.name: claim for claim in study.claims}
    alone = {figure.name for figure in figures_with(study, [claims["rise_is_loss"]])}
    assert "regression_published" in alone
    assert not any(name.startswith("controls") for name in alone)
    assert {name for figure in study.figures if figure.name in alone for name in figure.run_names} == {"short_schedule"}
    with_controls = [claims[name] for name in ("decline", "decline_without_norms", "rise_is_loss_doubled")]
    assert alone | {"controls_published"} <= {figure.name for figure in figures_with(study, with_controls)}


def test_the_table_of_a_study_is_not_replaced(ran: Ran, tmp_path: Path) -> None:
    done = ran("studies.run", "reproduction", "--claims", SAMPLED, "--replace_table", *WHERE)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "leave --replace_table out" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_writes_nothing(ran: Ran, tmp_path: Path) -> None:
    done = ran("studies.run", "reproduction", "--claims", "size_5_ratio", "--dry_run", *WHERE)
    assert done.status == 0
    assert "11 runs to do: 11 trainings" in done.out  # eight seeds, and three networks untrained
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_cannot_be_written_is_said_before_anything_is_measured(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    done = ran("studies.run", "reproduction", "--claims", SAMPLED, "--report", "ledger", "--out", "folder")
    assert (done.status, done.out, done.err) == (2, "", "error: argument --out: folder is a folder, not a file\n")
    assert not (tmp_path / "ledger").exists()


@pytest.mark.slow
def test_killed_it_goes_on_and_ends_with_the_same_numbers(tmp_path: Path) -> None:
    """A kill of the sweep and its workers loses what the last checkpoints do not hold, and no more."""

    def command(folder: str) -> list[str]:
        where = places(tmp_path / folder)
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
    theirs = tmp_path / "ledger" / "reproduction" / "drawn" / "spectrum.png"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    done = ran("studies.run", "reproduction", *WHERE)
    assert (done.status, done.out.count("\n"), done.err.count("\n")) == (2, 0, 1)
    assert "spectrum.png was not written by plots" in done.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [theirs]
