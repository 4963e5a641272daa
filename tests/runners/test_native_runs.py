"""Runs with the real kernel, from the command line: with a compiler, without one, and without one from half-way on."""

import os
import shutil
from pathlib import Path

import pytest

from icl_lab.lab.native.build import INSTALL
from icl_lab.store import rundir
from tests.doors import snapshot
from tests.processes import Done, python
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, LSA1, SIZES, copied, results
from tests.sweeps.tiny_sweep import SIZES as SWEEP_SIZES

pytestmark = [pytest.mark.robust, pytest.mark.usefixtures("compiler")]

NO_COMPILER = f"no C++ compiler; {INSTALL}"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a machine without a compiler, whose cache is its own."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "bin").mkdir()
    git = shutil.which("git")
    if git:
        (folder / "bin" / "git").symlink_to(git)
    return {"PATH": str(folder / "bin"), "XDG_CACHE_HOME": str(folder / "cache")}


def trained(run: Path, *words: str, module: str = LSA1, **variables: str) -> Done:
    return python("-m", module, *SIZES, *EVERY_CHUNK, *words, "--out", run, NPROC="1", **variables)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the native kernel that was killed when it had been saved at step 60. Read only."""
    run = tmp_path_factory.mktemp("killed") / "run"
    place = {"INTERRUPT": "after:step_00000060.safetensors:SIGKILL", "PYTHONPATH": INTERRUPTED}
    assert trained(run, **place).returncode == -9
    return run


def test_it_is_built_at_first_use_and_said(tmp_path: Path) -> None:
    done = trained(tmp_path / "run", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    kernel = rundir.read_meta(tmp_path / "run")["kernel"]
    assert kernel.startswith("native ")
    assert kernel.endswith(" lanes")
    assert done.stdout.splitlines().count(f"kernel: {kernel}") == 2  # as it begins, and in the summary
    assert len([*(tmp_path / "cache").glob("icl-lab/native-*/*.so")]) == 1


def test_without_a_compiler_it_trains_with_xla_and_says_why(places: dict[str, str], tmp_path: Path) -> None:
    bare, xla = trained(tmp_path / "bare", **places), trained(tmp_path / "xla", "--kernel", "xla")
    assert (bare.returncode, xla.returncode) == (0, 0), bare.stderr
    assert bare.stdout.splitlines().count(f"kernel: xla ({NO_COMPILER})") == 2
    assert results(tmp_path / "bare") == results(tmp_path / "xla")
    metas = [rundir.read_meta(tmp_path / name) for name in ("bare", "xla")]
    assert [(meta["kernel"], meta.get("kernel_why")) for meta in metas] == [("xla", NO_COMPILER), ("xla", None)]


def test_native_that_cannot_be_is_one_sentence(places: dict[str, str], tmp_path: Path) -> None:
    done = trained(tmp_path / "run", "--kernel", "native", **places)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: --kernel native is not possible: {NO_COMPILER}; --kernel auto falls back to XLA\n"
    assert not (tmp_path / "run").exists()


def test_it_goes_on_to_the_same_bytes(killed: Path, tmp_path: Path) -> None:
    run = copied(killed, tmp_path / "run")
    assert trained(run, "--strict_resume").returncode == 0
    assert trained(tmp_path / "uninterrupted").returncode == 0
    meta = rundir.read_meta(run)
    assert (meta["bitwise"], meta["resumed_elsewhere"]) == (True, [])
    assert results(run) == results(tmp_path / "uninterrupted")


def test_without_a_compiler_it_goes_on_with_xla_and_says_so(
    killed: Path, places: dict[str, str], tmp_path: Path
) -> None:
    run = copied(killed, tmp_path / "run")
    before, kernel = snapshot(run), rundir.read_meta(run)["kernel"]
    refused = trained(run, "--strict_resume", **places)
    assert (refused.returncode, refused.stdout.count("step")) == (2, 0)
    assert refused.stderr == f"error: {run} was begun with kernel {kernel}, not xla; --overwrite retrains it\n"
    assert snapshot(run) == before
    done = trained(run, **places)
    assert done.returncode == 0, done.stderr
    assert (
        f"is resumed under other conditions and not bitwise reproducible: kernel xla instead of {kernel} from step 60"
        in done.stdout
    )
    assert f"kernel: {kernel}, then xla from step 60 ({NO_COMPILER})" in done.stdout.splitlines()
    change = {"step": 60, "what": "kernel", "was": kernel, "is": "xla"}
    assert rundir.read_meta(run)["resumed_elsewhere"] == [change]


def test_a_damaged_object_is_not_loaded(tmp_path: Path) -> None:
    """It would end the process."""
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert trained(tmp_path / "first", **cache).returncode == 0
    (made,) = (tmp_path / "cache").glob("icl-lab/native-*/*.so")
    size = made.stat().st_size
    os.truncate(made, 5000)
    done = trained(tmp_path / "second", **cache)
    assert done.returncode == 0, done.stderr
    assert made.stat().st_size == size
    assert results(tmp_path / "first") == results(tmp_path / "second")


def test_a_sweep_chooses_once_and_its_table_tells_runs_apart(places: dict[str, str], tmp_path: Path) -> None:
    at = ("--out", tmp_path / "table.csv", "--runs_dir", tmp_path / "runs", "--models", "lsa1", "--ordering", "random")
    line = ("-m", "eval_order", *SWEEP_SIZES, *at, "--executor", "process")
    bare = python(*line, "--seeds", "0,1", **places)
    assert bare.returncode == 0, bare.stderr
    assert f"kernel: xla ({NO_COMPILER})" in bare.stdout.splitlines()
    assert "kernel" not in (tmp_path / "table.csv").read_text().splitlines()[0].split(",")
    assert python(*line, "--seeds", "0,1,2").returncode == 0
    rows = [row.split(",") for row in (tmp_path / "table.csv").read_text().splitlines()]
    assert rows[0][-1] == "kernel"
    kernels = [rundir.read_meta(run)["kernel"] for run in sorted((tmp_path / "runs").glob("*lsa1*"))]
    assert sorted(kernel.partition(" ")[0] for kernel in kernels) == ["native", "xla", "xla"]


def test_a_sweep_that_cannot_be_native_writes_nothing(places: dict[str, str], tmp_path: Path) -> None:
    at = ("--out", tmp_path / "table.csv", "--runs_dir", tmp_path / "runs", "--models", "lsa1", "--ordering", "random")
    done = python("-m", "eval_order", *SWEEP_SIZES, *at, "--kernel", "native", "--seeds", "0", **places)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: --kernel native is not possible: no C++ compiler")
    assert [path.name for path in tmp_path.iterdir()] == []


def test_bits_do_not_depend_on_threads_or_the_width_of_a_pack(tmp_path: Path) -> None:
    """Those of all records too. XLA draws the batches, so that this holds for some shapes, such as the usual one."""
    usual = [f"--config.{name}" for name in ("dim=10", "num_pairs=10", "batch_size=2048", "num_layers=2")]
    found = []
    for threads, width in (("1", 1), ("2", 1), ("1", 8), ("2", 8)):
        folder = tmp_path / f"{threads}_{width}"
        at = ("--out", folder / "table.csv", "--runs_dir", folder, "--models", "lsa1", "--ordering", "random")
        line = ("-m", "eval_order", *SWEEP_SIZES, *usual, *at)
        done = python(*line, "--seeds", "0,1", "--executor", "packed", "--width", str(width), NPROC=threads)
        assert done.returncode == 0, done.stderr
        runs = sorted(path.parent for path in folder.glob("*/params.safetensors"))
        assert all(rundir.read_meta(run)["kernel"].startswith("native ") for run in runs)
        found.append([(run / name).read_bytes() for run in runs for name in ("params.safetensors", "metrics.jsonl")])
    assert len(found[0]) == 4
    assert all(each == found[0] for each in found[1:])
