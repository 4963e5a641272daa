"""Runs that go on with other threads, another version or a state that does not fit; each says what became of it."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from icl_lab.store import checkpoint, layout, rundir
from icl_lab.store.atomic import write_safetensors
from icl_lab.store.metrics import read_metrics
from icl_lab.store.params import read_params
from icl_lab.store.readers import read_safetensors
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, LSA1, RECORDED, SIZES, Done, Workshop, copied, results

pytestmark = pytest.mark.robust

LINE = (LSA1, *SIZES, "--save_attention", *EVERY_CHUNK)
TOLERANCE = 1e-5  # of rounding in 40 steps; the parameters are of order one


@pytest.fixture(scope="module")
def killed(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one thread that was killed when it had been saved at step 60. Read only."""
    run = tmp_path_factory.mktemp("killed") / "run"
    place = {"INTERRUPT": "after:step_00000060.safetensors:SIGKILL", "PYTHONPATH": INTERRUPTED}
    assert workshop.run(*LINE, "--out", run, NPROC="1", **place).returncode == -9
    rundir.update_meta(run, mark="it was not begun again")
    return run


@pytest.fixture(scope="module")
def uninterrupted(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That run if nothing happens to it. Read only."""
    run = tmp_path_factory.mktemp("uninterrupted") / "run"
    assert workshop.run(*LINE, "--out", run, NPROC="1").returncode == 0
    return run


def resumed(workshop: Workshop, run: Path, *words: str, **environment: str) -> Done:
    return workshop.run(*LINE, *words, "--out", run, **environment)


@pytest.mark.slow
def test_with_its_own_threads_it_ends_with_the_same_bytes(
    killed: Path, uninterrupted: Path, workshop: Workshop, tmp_path: Path
) -> None:
    """Whether the user sets them or they are taken up; where anything else is refused too."""
    for name, words, environment in (("unset", (), {}), ("set", ("--strict_resume",), {"NPROC": "1"})):
        run = copied(killed, tmp_path / name)
        done = resumed(workshop, run, *words, **environment)
        assert done.returncode == 0, done.stderr
        assert "elsewhere" not in done.stdout
        meta = rundir.read_meta(run)
        assert (meta["bitwise"], meta["resumed_elsewhere"], meta["mark"]) == (True, [], "it was not begun again")
        assert results(run) == results(uninterrupted)


@pytest.fixture(scope="module")
def elsewhere(killed: Path, workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """The killed run as two threads ended it, and what was said. Read only."""
    run = copied(killed, tmp_path_factory.mktemp("elsewhere") / "run")
    return run, resumed(workshop, run, NPROC="2")


@pytest.mark.slow
def test_with_other_threads_it_goes_on_from_its_step_and_says_so(elsewhere: tuple[Path, Done]) -> None:
    run, done = elsewhere
    assert done.returncode == 0, done.stderr
    words = "is resumed under other conditions and not bitwise reproducible: threads 2 instead of 1 from step 60"
    assert [line for line in done.stdout.splitlines() if line.startswith(f"{run} {words}")] == [f"{run} {words}"]
    assert done.stdout.splitlines()[-1].startswith("this run was resumed under other conditions")
    meta = rundir.read_meta(run)
    assert (meta["bitwise"], meta["mark"], meta["threads"]) == (False, "it was not begun again", 1)
    assert meta["resumed_elsewhere"] == [{"step": 60, "what": "threads", "was": 1, "is": 2}]


@pytest.mark.slow
def test_its_numbers_are_close_to_the_uninterrupted_runs(elsewhere: tuple[Path, Done], uninterrupted: Path) -> None:
    run, _ = elsewhere
    found, expected = (read_metrics(each, ("eval_gd_loss",)) for each in (run, uninterrupted))
    assert tuple(record["step"] for record in found) == RECORDED
    assert found[:3] == expected[:3]  # up to step 60 it is the same training
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(list(one.values()), list(other.values()), rtol=1e-4, atol=TOLERANCE)
    params, others = read_params(run), read_params(uninterrupted)
    for module, leaves in others.items():
        for name, value in leaves.items():
            np.testing.assert_allclose(params[module][name], value, atol=TOLERANCE)


@pytest.mark.slow
def test_listings_and_comparisons_show_it(
    elsewhere: tuple[Path, Done], uninterrupted: Path, workshop: Workshop
) -> None:
    run, _ = elsewhere
    for path, shown in ((run, True), (uninterrupted, False)):
        assert ("bitwise=false" in workshop.run("store.runs", path).stdout) == shown
    lines = workshop.run("analysis.compare", run, uninterrupted).stdout.splitlines()
    last = f"bitwise false: {run}, resumed elsewhere with threads 2 instead of 1 from step 60"
    assert [line for line in lines if "bitwise" in line] == [last]
    assert "bitwise" not in workshop.run("analysis.compare", uninterrupted).stdout


@pytest.mark.slow
def test_with_another_version_it_goes_on_and_says_so(killed: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(killed, tmp_path / "run")
    versions = rundir.read_meta(run)["versions"]
    rundir.update_meta(run, versions=versions | {"optax": "0.1"})
    done = resumed(workshop, run, "--quiet")
    assert done.returncode == 0, done.stderr
    assert "goes on" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("this run was resumed under other conditions")
    meta = rundir.read_meta(run)
    change = {"step": 60, "what": "optax", "was": "0.1", "is": versions["optax"]}
    assert (meta["bitwise"], meta["resumed_elsewhere"], meta["mark"]) == (False, [change], "it was not begun again")


@pytest.mark.slow
def test_under_other_flags_of_the_compiler_it_goes_on_and_says_so(
    killed: Path, workshop: Workshop, tmp_path: Path
) -> None:
    run, flags = copied(killed, tmp_path / "run"), "--xla_cpu_enable_fast_math=true"
    refused = resumed(workshop, run, "--strict_resume", XLA_FLAGS=flags)
    assert refused.returncode == 2
    assert refused.stderr == f"error: {run} was begun with XLA_FLAGS unset, not {flags}; --overwrite retrains it\n"
    done = resumed(workshop, run, XLA_FLAGS=flags)
    change = f"XLA_FLAGS {flags} instead of unset from step 60"
    assert f"{run} is resumed under other conditions and not bitwise reproducible: {change}" in done.stdout
    meta = rundir.read_meta(run)
    change = {"step": 60, "what": "XLA_FLAGS", "was": "", "is": flags}
    assert (meta["bitwise"], meta["resumed_elsewhere"]) == (False, [change])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rename", "said"),
    [
        (lambda name: name.replace(".mu", ".first"), r"\.first.* is unknown, and \d+ more differ"),
        (lambda name: None if ".mu" in name else name, r"\.mu.* is missing, and \d+ more differ"),
    ],
)
def test_a_state_that_another_version_laid_out_otherwise_is_one_sentence(
    rename: Callable[[str], str | None], said: str, killed: Path, workshop: Workshop, tmp_path: Path
) -> None:
    """As optax's of another version might be."""
    run = copied(killed, tmp_path / "run")
    rundir.update_meta(run, versions=rundir.read_meta(run)["versions"] | {"optax": "0.1"})
    for step in checkpoint.steps(run):
        arrays, metadata = read_safetensors(layout.checkpoint(run, step))
        other = {new: value for name, value in arrays.items() if (new := rename(name))}
        assert other.keys() != arrays.keys()
        del metadata[checkpoint.CONTENT]  # the hash
        write_safetensors(layout.checkpoint(run, step), other, metadata)
    done = resumed(workshop, run)
    assert done.returncode == 2
    assert re.fullmatch(
        rf"error: \S+step_00000060\.safetensors does not hold this run's training state: .*{said}; "
        "--overwrite retrains the run",
        done.stderr.splitlines()[-1],
    )
    assert "Traceback" not in done.stderr
    assert checkpoint.steps(run) == checkpoint.steps(killed)
    assert len(json.loads((run / layout.META).read_text())) > 10
