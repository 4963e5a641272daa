"""Disks that are full or cannot be written, and directories that are not free: one sentence, and nothing is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.store import checkpoint, layout, rundir
from icl_lab.store.lock import locked
from icl_lab.store.metrics import append_metrics
from tests.doors import ANALYSES, COMMANDS, PLOTS, ROOT, RUNNERS, Ran, Refused
from tests.runners.tiny import EVERY_CHUNK, LSA1, SIZES, Workshop, copied, results

pytestmark = pytest.mark.robust

FULL_DISK = str(Path(__file__).parent / "full_disk")
NO_SPACE = "No space left on device"
WRITERS = (*RUNNERS, "scripts.demo_seeds")


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own; the test is skipped where mounting is not permitted."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


# A full disk


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "records"),
    [
        (
            "metrics.jsonl:3",
            [0],
        ),  # written, cut to the checkpoint, and then the second record, whose line must not stay
        ("step_00000060.safetensors:1", [0, 30, 60]),
        ("metrics_summary.json:1", [0, 30, 60, 90, 100]),
    ],
)
def test_a_run_that_met_a_full_disk_is_resumed_to_the_same_bytes(
    place: str, records: list[int], workshop: Workshop, lsa1_run: Path, tmp_path: Path
) -> None:
    run, line = tmp_path / "run", [LSA1, *SIZES, *EVERY_CHUNK, "--out", tmp_path / "run", "--save_attention"]
    done = workshop.run(*line, FULL=place, PYTHONPATH=FULL_DISK)
    sentence = done.stderr.splitlines()[-1]
    assert done.returncode == 2
    assert sentence.startswith("error: ")
    assert sentence.endswith(f"/{place.partition(':')[0]}: {NO_SPACE}")
    assert "Traceback" not in done.stderr
    assert not list(run.rglob("*.tmp"))
    text = (run / layout.METRICS).read_text()
    assert [json.loads(line)["step"] for line in text.splitlines()] == records
    assert text.endswith("\n")
    assert rundir.read_status(run) == "running"  # there was no room for another word
    for step in checkpoint.steps(run):
        assert len(layout.checkpoint(run, step).read_bytes()) > 100
    again = workshop.run(*line)
    assert again.returncode == 0, again.stderr
    assert results(run) == results(lsa1_run)


def test_a_disk_that_fills_up_in_the_middle_of_a_line_keeps_the_lines_before(tmp_path: Path) -> None:
    record = {"step": 0, "eval_loss": 0.125}
    with mounted(tmp_path / "disk", "size=64k") as disk:
        run = disk / "run"
        rundir.update_meta(run, status="running")
        append_metrics(run, record)
        before = (run / layout.METRICS).read_bytes()
        with pytest.raises(OSError, match=NO_SPACE) as caught:
            append_metrics(run, record | {"text": "long" * 32_000})
        assert caught.value.filename == str(run / layout.METRICS)
        assert (run / layout.METRICS).read_bytes() == before
        with pytest.raises(OSError, match=NO_SPACE) as caught:
            rundir.update_meta(run, status="failed", text="long" * 32_000)
        assert caught.value.filename == str(run / layout.META)
        assert rundir.read_status(run) == "running"
        assert sorted(path.name for path in run.iterdir()) == [layout.META, layout.METRICS]


def test_an_analysis_on_a_full_disk_leaves_what_was_there(workshop: Workshop, lsa1_run: Path, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    before = results(run)
    done = workshop.run("analysis.ood_eval", "--run", run, "--alphas", 2, FULL="ood.csv:1", PYTHONPATH=FULL_DISK)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {run / layout.OOD}: {NO_SPACE}\n"
    assert results(run) == before


def test_an_output_that_is_full_is_one_sentence(lsa1_run: Path) -> None:
    line = [sys.executable, "-m", "analysis.compare", str(lsa1_run)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(line, cwd=ROOT, env=buffered, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, f"error: standard output: {NO_SPACE}\n")


# Places where nothing can be written


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize("out", ["/proc/1/run", "file/run"])
def test_runs_have_no_place_there(command: str, out: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("some text")
    assert out.partition("/run")[0] in refused(command, "--out", out)


def test_figures_have_no_place_there(lsa1_run: Path, tmp_path: Path, refused: Refused) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (tmp_path / "file").write_text("some text")
    for out in ("/proc/1/figs", "file"):
        assert out.removesuffix("/figs") in refused("plots.attention_quick", "--run", run, "--out", out)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_system_that_is_read_only(command: str, lsa1_run: Path, tmp_path: Path, ran: Ran) -> None:
    with mounted(tmp_path / "disk", "size=4m") as disk:
        run = copied(lsa1_run, disk / "run")
        before = results(run)
        remount(disk, "ro")
        if command in WRITERS:
            done = ran(command, "--out", disk / "new")
        else:
            done = ran(command, *([run] if command == "analysis.compare" else ["--run", run]))
        if command == "analysis.compare":  # it only reads
            assert done.status == 0
        else:
            assert (done.status, done.out) == (2, "")
            made = f"error: argument --out: {disk}/new cannot be made: nothing can be written in {disk}\n"
            assert done.err.startswith(made if command in WRITERS else f"error: {disk}/")
            assert done.err == made or done.err.endswith(": Read-only file system\n")
            assert done.err.count("\n") == 1
        assert results(run) == before


# Directories in use


@pytest.mark.parametrize("command", [*WRITERS, *ANALYSES])
def test_a_directory_that_another_process_writes_in(command: str, tmp_path: Path, refused: Refused) -> None:
    run = tmp_path / "seeds" / "seed_0"
    if command in ANALYSES:
        rundir.begin(run, RegressionConfig())
    words = {"scripts.demo_seeds": ["--out", tmp_path / "seeds"]} | {name: ["--out", run] for name in RUNNERS}
    with locked(run):  # to the kernel, another opening of the file is as good as another process
        said = refused(command, *words.get(command, ["--run", run]))
    assert f"{run} is in use by another process" in said


# Links


def linked(run: Path, name: str, target: Path) -> None:
    """Puts a link in the place of a run's file or folder, which moves to the target."""
    place = run / name
    if place.exists():
        place.rename(target)
    place.symlink_to(target)


OWN = [layout.LOCK, layout.META, layout.METRICS, layout.PARAMS, layout.OOD, *layout.RUN_FOLDERS]


@pytest.mark.parametrize("name", OWN)
def test_nothing_is_written_through_links(name: str, lsa1_run: Path, tmp_path: Path, refused: Refused) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    for folder in (layout.CHECKPOINTS, layout.LLC_TRACES, layout.DEVELOPMENT):
        (run / folder).mkdir(parents=True, exist_ok=True)
    linked(run, name, tmp_path / "target")
    commands: dict[str, list[object]] = {LSA1: [*SIZES, "--out", run], "analysis.ood_eval": ["--run", run]}
    for command, words in (commands | {name: ["--run", run] for name in PLOTS}).items():
        assert f"{run / name} is a symbolic link" in refused(command, *words)
    assert f"{run / name} is a symbolic link" in refused(LSA1, *SIZES, "--out", run, "--overwrite")


def test_a_lock_that_is_a_link_leaves_its_target_whole(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "run" / layout.LOCK).symlink_to(tmp_path / "thesis.tex")
    assert "is a symbolic link" in refused(LSA1, "--out", tmp_path / "run")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
