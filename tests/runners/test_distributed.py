"""One training in two processes, each with one CPU device: the first has the run, the second leaves nothing."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from icl_lab.lab import cli
from icl_lab.runners import flags
from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_metrics
from icl_lab.store.params import read_params
from tests.runners.tiny import EVERY_CHUNK, LSA1, RECORDED, ROOT, SIZES, Workshop

pytestmark = pytest.mark.robust

PROCESSES = 2
ROUNDING = 1e-6  # of parameters of size 0.1: gradients are summed in another order, over a hundred steps


def started(workshop: Workshop, run: Path, own: Path, *words: str) -> list[subprocess.Popen[str]]:
    """The processes of a training, which has temporary files in `own`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", LSA1, *SIZES, "--out", str(run), "--coordinator_address", f"127.0.0.1:{port}"]
    environment = {**os.environ, "NPROC": "1", "TMPDIR": str(own), "XLA_FLAGS": ""}
    own.mkdir(exist_ok=True)
    return [
        subprocess.Popen(
            [*line, "--num_processes", str(PROCESSES), "--process_id", str(index), *words],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in range(PROCESSES)
    ]


def ended(processes: Sequence[subprocess.Popen[str]]) -> list[int]:
    """How they ended; their output is shown if a test fails."""
    for index, process in enumerate(processes):
        print(f"--- process {index}\n{process.communicate(timeout=300)[0]}")
    return [process.returncode for process in processes]


def params(run: Path) -> dict[str, np.ndarray]:
    return {f"{module}/{name}": leaf for module, own in read_params(run).items() for name, leaf in own.items()}


@pytest.mark.slow
def test_two_processes_train_what_one_trains(workshop: Workshop, lsa1_run: Path, tmp_path: Path) -> None:
    assert ended(started(workshop, tmp_path / "run", tmp_path / "temporary")) == [0, 0]
    run, expected = tmp_path / "run", params(lsa1_run)
    assert rundir.read_status(run) == "done"
    assert str(rundir.read_meta(run)["device"]).startswith("2 x cpu")
    assert [record["step"] for record in read_metrics(run)] == [*RECORDED]
    for name, value in params(run).items():
        np.testing.assert_allclose(value, expected[name], atol=ROUNDING, err_msg=name)
    assert [*(tmp_path / "temporary").iterdir()] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "temporary"]


@pytest.mark.slow
@pytest.mark.parametrize("told", range(PROCESSES))
def test_a_signal_to_one_stops_all_and_they_resume(
    told: int, workshop: Workshop, lsa1_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    processes = started(workshop, run, tmp_path / "temporary", *EVERY_CHUNK, "--steps", "2000000")
    while not (run / layout.METRICS).exists() or (run / layout.METRICS).read_text().count("\n") < 3:
        assert [process.poll() for process in processes] == [None] * PROCESSES
        time.sleep(0.1)
    processes[told].send_signal(signal.SIGTERM)
    assert ended(processes) == [128 + signal.SIGTERM] * PROCESSES
    assert rundir.read_status(run) == "stopped"
    at = rundir.read_meta(run)["stopped_at"]
    assert at > 0
    processes = started(workshop, run, tmp_path / "temporary", *EVERY_CHUNK, "--steps", "2000000")
    while rundir.read_status(run) != "running" or read_metrics(run)[-1]["step"] <= at:
        assert [process.poll() for process in processes] == [None] * PROCESSES
        time.sleep(0.1)
    processes[told].send_signal(signal.SIGTERM)
    assert ended(processes) == [128 + signal.SIGTERM] * PROCESSES
    meta = rundir.read_meta(run)
    assert meta["stopped_at"] > at
    assert (meta["bitwise"], meta["resumed_elsewhere"]) == (True, [])
    assert [*(tmp_path / "temporary").iterdir()] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--num_processes 2", "--coordinator_address, --num_processes and --process_id must be given together"),
        ("--coordinator_address here --num_processes 2 --process_id 0", "--coordinator_address is 'here'"),
        ("--coordinator_address here:0 --num_processes 2 --process_id 0", "it must be HOST:PORT"),
        (
            "--coordinator_address a:1 --num_processes 2 --process_id 2",
            "--process_id is 2; with 2 processes it must be from 0 to 1",
        ),
        (
            "--coordinator_address a:1 --num_processes 0 --process_id 0",
            "--num_processes: '0' is not a whole number",
        ),
    ],
)
def test_which_process_this_is_must_be_clear(words: str, sentence: str) -> None:
    with pytest.raises(cli.UsageError, match=sentence):
        flags.read("lsa1", LSA1, "", [*words.split(), "--out", "run"])


def test_processes_know_a_run_by_its_directory() -> None:
    words = "--coordinator_address a:1 --num_processes 2 --process_id 1"
    with pytest.raises(cli.UsageError, match="needs --out"):
        flags.read("lsa1", LSA1, "", words.split())
