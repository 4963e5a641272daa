"""Claims measured in processes: as in this one, with its errors; and none is left over."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from icl_lab.lab.executors.choice import by_slurm
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import RESUME_HINT
from icl_lab.lab.executors.worker import available_cores
from icl_lab.store.readers import StoreError
from icl_lab.studies.measuring import analysed, measure, measured, tabulated
from icl_lab.studies.study import load
from tests.runners.tiny import ROOT
from tests.studies import sampled

pytestmark = pytest.mark.robust

REPRODUCTION = load("reproduction")
STUDY = sampled.study()
CLAIMS = {claim.name: claim for claim in STUDY.claims}
SHORT = [CLAIMS[name] for name in sampled.SHORT]
LONG = [sampled.SHORT[0], *sampled.LONG]  # the first is done while others are measured
IMPORTED = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"


@pytest.fixture(autouse=True)
def _other_processes_find_the_tests_study(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", IMPORTED)


def test_each_claim_is_measured_once_as_in_this_process(tmp_path: Path) -> None:
    """Up to the last bits, which depend on the number of threads."""
    found = list(measured(STUDY, SHORT, tmp_path))
    assert {claim.name for claim, _ in found} == {claim.name for claim in SHORT}
    assert len(found) == len(SHORT)
    for claim, measurement in found:
        here = measure(STUDY, claim, tmp_path, "")
        assert here is not None
        assert measurement is not None
        assert measurement.values == pytest.approx(here.values, rel=1e-4)
        assert "1 threads" in measurement.device
    assert list(measured(STUDY, [], tmp_path)) == []


@pytest.mark.slow
def test_a_figures_numbers_are_those_of_this_process(tmp_path: Path) -> None:
    (figure,) = (figure for figure in REPRODUCTION.figures if figure.name == "spectrum")
    ((found, rows),) = tabulated(REPRODUCTION, [figure], tmp_path)
    here = figure.rows({})
    assert found is figure
    assert [(row["series"], row["x"], row["seeds"]) for row in rows] == [
        (row["series"], row["x"], row["seeds"]) for row in here
    ]
    np.testing.assert_allclose([row["mean"] for row in rows], [row["mean"] for row in here], rtol=1e-4)


def test_a_claim_without_its_runs_has_no_measurement(tmp_path: Path) -> None:
    trained = next(claim for claim in REPRODUCTION.claims if claim.runs)
    assert list(measured(REPRODUCTION, [trained], tmp_path)) == [(trained, None)]


def test_what_a_measure_raises_is_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="absent"):
        list(measured(STUDY, [SHORT[0]._replace(name="absent")], tmp_path))


@pytest.mark.slow
def test_a_process_that_dies_is_said(tmp_path: Path) -> None:
    found = measured(STUDY, [CLAIMS[name] for name in LONG], tmp_path)
    next(found)
    for child in workers_of(os.getpid()):
        os.kill(child, signal.SIGKILL)
    with pytest.raises(StoreError, match="has died; run the same command again to continue"):
        list(found)


def workers_of(process: int) -> list[int]:
    """The worker processes that a process has started, whichever of its threads did."""
    found = [
        int(word) for path in Path(f"/proc/{process}/task").glob("*/children") for word in path.read_text().split()
    ]
    return [child for child in found if b"lab.executors.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


KILLED = f"""
from pathlib import Path
from icl_lab.studies.measuring import measured
from tests.studies import sampled

if __name__ == "__main__":
    study = sampled.study()
    claims = {{claim.name: claim for claim in study.claims}}
    found = measured(study, [claims[name] for name in {LONG}], Path("."))
    next(found)
    print("measuring", flush=True)
    list(found)
"""


def test_killed_it_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    line = [sys.executable, str(tmp_path / "killed.py")]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None
        assert ran.stdout.readline() == "measuring\n"
        children = workers_of(ran.pid)
        ran.kill()
    assert children
    for _ in range(100):
        if not any(_alive(child) for child in children):
            return
        time.sleep(0.1)
    raise AssertionError(f"{children} are still there")


STOPPED = f"""
import os, signal
from pathlib import Path
from icl_lab.studies.measuring import measured
from tests.studies import sampled

if __name__ == "__main__":
    study = sampled.study()
    claims = [claim for claim in study.claims if claim.name in {[claim.name for claim in SHORT]}]
    for number, (claim, measurement) in enumerate(measured(study, claims, Path("."))):
        print(claim.name, measurement is not None, flush=True)
        if number == 0:
            os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.slow
def test_stopped_it_ends_with_what_was_in_work(tmp_path: Path) -> None:
    """Of two cores, each has begun a claim when the first is done."""
    (tmp_path / "stopped.py").write_text(STOPPED)
    line = [sys.executable, str(tmp_path / "stopped.py")]
    ran = subprocess.run(line, capture_output=True, text=True)
    assert ran.returncode == 128 + signal.SIGINT, ran.stderr
    assert ran.stderr.splitlines()[-1] == f"stopped; {RESUME_HINT}"
    assert "Traceback" not in ran.stderr
    found = dict(line.split() for line in ran.stdout.splitlines())
    assert {*found.values()} == {"True"}
    assert len(found) >= min(len(available_cores()), len(SHORT))


def _alive(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


def test_runs_are_analysed_with_the_studys_own_analysis(tmp_path: Path) -> None:
    """Of runs that are not there: the error is that of the analysis, which the process has from the study."""
    stages = load("stages")
    with pytest.raises(StoreError, match="absent"):
        list(analysed(stages, ["linear_layer/absent"], tmp_path))
    assert list(analysed(stages, [], tmp_path)) == []


@pytest.mark.slow
def test_jobs_of_slurm_analyse_and_measure_as_processes_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit: a job has one thread too."""
    pytest.importorskip("submitit")
    monkeypatch.setenv("PYTHONPATH", "")  # to which jobs add the repository's root
    cluster = partial(by_slurm, resources=Resources(slurm=(("cluster", "local"),), jobs=tmp_path / "jobs"))
    with pytest.raises(StoreError, match="absent"):
        list(analysed(load("stages"), ["linear_layer/absent"], tmp_path, cluster))
    found, expected = (
        {claim.name: measurement and measurement.values for claim, measurement in those}
        for those in (measured(STUDY, SHORT, tmp_path, cluster), measured(STUDY, SHORT, tmp_path))
    )
    assert found == expected
    assert {*found} == {claim.name for claim in SHORT}
