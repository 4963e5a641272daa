"""`python -m analysis.llc --follow`: beside a training it changes nothing of, to the bit what comes after it.

The training stops itself (SIGSTOP) at the third record, so that it is training for as long as the test wants.
"""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.llc import checkpoints, traces
from icl_lab.analysis.llc.settings import Settings
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.store import StoreError, aside, layout, rundir
from tests.analysis.llc_runs import KEEPING, estimated, table, words
from tests.doors import snapshot
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, LSA1, RECORDED, ROOT, SIZES, Done, Workshop, copied, results

pytestmark = pytest.mark.robust

TRAINING = [LSA1, *SIZES, *EVERY_CHUNK, KEEPING]
BY_NOW = 3  # records when the training stops


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Where the run will be."""
    return tmp_path / "run"


@pytest.fixture
def training(run: Path, workshop: Workshop) -> Iterator[subprocess.Popen[str]]:
    """A training that has stopped itself at its third record, its directory locked."""
    process = begin(workshop, *TRAINING, "--out", run, INTERRUPT=f"synced:metrics.jsonl:SIGSTOP:{BY_NOW}")
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


@pytest.fixture(scope="module")
def afterwards(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, followed by nobody and estimated when it was done."""
    done = workshop.finished("llc_unwatched", LSA1, KEEPING)
    run = copied(done, tmp_path_factory.mktemp("afterwards") / "run")
    estimated(workshop, run, "--checkpoints", "all", *words())
    return run


def begin(workshop: Workshop, *line: object, **environment: str) -> "subprocess.Popen[str]":
    """A command that goes on beside the test."""
    inherited = {name: value for name, value in os.environ.items() if name != "NPROC"}
    cache = {"JAX_COMPILATION_CACHE_DIR": str(workshop.folder / "compiled"), "PYTHONWARNINGS": "error"}
    cache |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    own = inherited | cache | ({"PYTHONPATH": INTERRUPTED} if "INTERRUPT" in environment else {}) | environment
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", *map(str, line)], cwd=ROOT, env=own, text=True, **pipes)


def follower(workshop: Workshop, run: Path, **environment: str) -> "subprocess.Popen[str]":
    """`analysis.llc --follow` beside the training."""
    return begin(workshop, "analysis.llc", "--run", run, "--follow", *words(), **environment)


def lines(process: "subprocess.Popen[str]", count: int) -> list[str]:
    """The next lines that it prints."""
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


def llc_files(run: Path) -> dict[str, bytes]:
    """What `analysis.llc` writes into a run, without the figure."""
    return {name: content for name, content in results(run).items() if name.startswith((layout.LLC, "llc/"))}


@pytest.mark.slow
def test_it_ends_with_what_is_estimated_afterwards_and_disturbs_nothing(
    training: "subprocess.Popen[str]", run: Path, afterwards: Path, workshop: Workshop
) -> None:
    before = snapshot(run)
    following = follower(workshop, run)
    seen = lines(following, BY_NOW)
    assert snapshot(run) == before
    training.send_signal(signal.SIGCONT)
    said = training.communicate(timeout=600)
    assert training.returncode == 0, said
    out, err = following.communicate(timeout=600)
    assert following.returncode == 0, err
    assert [int(line.split()[1]) for line in (*seen, *out.splitlines())] == list(RECORDED)
    assert llc_files(run).keys() == llc_files(afterwards).keys()
    assert results(run) == results(afterwards)
    assert (run / layout.LLC_FIGURE).exists()
    assert not layout.llc_aside(run).exists()


@pytest.mark.slow
def test_killed_it_loses_one_checkpoint_at_most(
    training: "subprocess.Popen[str]", run: Path, afterwards: Path, workshop: Workshop
) -> None:
    killed = follower(workshop, run, INTERRUPT="after:*_step_00000030.npz:SIGKILL")
    killed.communicate(timeout=600)
    assert killed.returncode == -signal.SIGKILL
    kept = sorted(path for path in layout.llc_aside(run).iterdir())
    assert [path.name[-12:-4] for path in kept] == ["00000000", "00000030"]
    identity = rundir.stored_id(run)
    content = aside.read(run, kept[1].name, identity)
    assert content is not None
    with np.load(io.BytesIO(content)) as arrays:  # what is kept is taken, and not estimated again
        marked = {name: arrays[name] for name in arrays}
    row, buffer = json.dumps(json.loads(bytes(marked["row"])) | {"llc_high": 1234.0}).encode(), io.BytesIO()
    np.savez(buffer, **marked | {"row": np.frombuffer(row, np.uint8)})
    aside.write(run, kept[1].name, buffer.getvalue(), identity)
    again = follower(workshop, run)
    assert "llc_high 1234  " in lines(again, 2)[1]
    training.send_signal(signal.SIGCONT)
    training.communicate(timeout=600)
    _, err = again.communicate(timeout=600)
    assert again.returncode == 0, err
    rows, expected = table(run), table(afterwards)
    assert rows["step"].tolist() == list(RECORDED)
    assert rows["llc_high"][1] == 1234
    assert str(rows.drop(1).to_dict("records")) == str(expected.drop(1).to_dict("records"))


@pytest.mark.slow
def test_a_training_that_is_killed_ends_it_and_loses_nothing(
    training: "subprocess.Popen[str]", run: Path, afterwards: Path, workshop: Workshop
) -> None:
    following = follower(workshop, run)
    lines(following, BY_NOW)
    training.kill()
    _, err = following.communicate(timeout=600)
    assert following.returncode == 0, err
    assert f"{run} is not done (running): these are its checkpoints so far\n" in err
    assert table(run)["step"].tolist() == list(RECORDED[:BY_NOW])
    said = refused_to_follow(workshop, run)
    assert (
        "is not training: its process was killed; start it first, or leave --follow out for what it has so far" in said
    )
    assert workshop.run(*TRAINING, "--out", run).returncode == 0
    estimated(workshop, run, "--checkpoints", "all", *words())
    assert results(run) == results(afterwards)


def test_it_waits_while_nothing_is_recorded_and_sees_what_comes_just_before_the_end(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks at a run that has recorded 0, again nothing new, and 30 when it has ended."""
    rundir.begin(run, RegressionConfig())
    training, recorded = iter([True, True, False, False]), iter([[0], [0], [0, 30], [0, 30]])
    monkeypatch.setattr(checkpoints, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "check_training", lambda run: None)
    monkeypatch.setattr(checkpoints, "planned", lambda run, selection: [0, 30])
    monkeypatch.setattr(checkpoints, "is_training", lambda run: next(training))
    monkeypatch.setattr(checkpoints, "_recorded", lambda run, selection: next(recorded))
    monkeypatch.setattr(checkpoints, "_at", lambda run, steps, selection: [(step, {}) for step in steps])
    monkeypatch.setattr(traces, "check_own", lambda run, settings, steps, beside: None)
    monkeypatch.setattr(traces, "known_row", lambda run, settings, step, digest: {"step": step})
    assert [row["step"] for row in checkpoints.follow(run, Settings(), "all")] == [0, 30]


def test_it_does_not_go_on_with_another_run_of_the_same_name(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rundir.begin(run, RegressionConfig())
    estimates = checkpoints._Estimates(run, Settings())
    estimates.check_same()
    rundir.begin(run, RegressionConfig(data_seed=7))
    with pytest.raises(StoreError, match="was trained again with another config"):
        estimates.check_same()


def refused_to_follow(workshop: Workshop, run: Path) -> str:
    """The sentence of a follower that has nothing to follow."""
    done: Done = workshop.run("analysis.llc", "--run", run, "--follow", *words())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert rundir.has_begun(run)
    return done.stderr
