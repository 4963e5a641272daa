"""Sweeps that are refused: status 2, one sentence, no file touched, JAX not imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from icl_lab.store.lock import locked
from icl_lab.sweeps.plan_file import plan_file, write_plan
from tests.doors import DRIVERS, ROOT, Ran, Refused, snapshot
from tests.sweeps.tiny_sweep import GRID, Paths, copied, tiny_plan
from tests.trust.test_disks import mounted, remount

BAD_GRIDS = [
    ("--models lsa1,lsa9", "unknown model 'lsa9'; known are lsa1, lsa1_pe, twolayer"),
    ("--ordering random,sorted", "ordering is 'sorted'; it must be one of random, smallnorm2largenorm, easy2hard"),
    ("--train_ordering sorted", "ordering is 'sorted'; it must be one of"),
    ("--noise_mode loud", "noise_mode is 'loud'; it must be one of clean, label_noise, random_pairs"),
    ("--placement last", "noise_placement is 'last'; it must be one of mixed, clean_first, noisy_first"),
    ("--models ,", "--models needs at least one value"),
    ("--ordering ,", "--ordering needs at least one value"),
    ("--p", "argument --noise_p/--p: expected at least one argument"),
    ("--p 0,1.5", "noise_p is 1.5; it must be between 0 and 1"),
    ("--p=-0.1", "noise_p is -0.1; it must be between 0 and 1"),
    ("--p nan", "noise_p is nan; it must be finite"),
    ("--eval_noise_p nan", "noise_p is nan; it must be finite"),
    ("--p half", "argument --p: 'half' is not a number, nor auto"),
    ("--sigma inf", "noise_sigma is inf; it must be finite"),
    ("--sigma=-1", "noise_sigma is -1.0; it must be at least 0"),
    ("--steps 0", "steps is 0; it must be a whole number of at least 1"),
    ("--difficulty hard", "difficulty is 'hard'; it must be one of residual, gd_error"),
]
BAD_ANYWHERE = [
    ("--seeds ,", "--seeds needs at least one value"),
    ("--seeds 0,x,2", "--seeds: 'x' is not a whole number"),
    ("--seeds=-1", "argument --seeds: '-1' is not a whole number from 0 to 2^32 - 1"),
    ("--seeds 4294967296", "argument --seeds: '4294967296' is not a whole number from 0 to 2^32 - 1"),
    ("--shard 0/2", "'0/2' is not i/n with i from 1 to n"),
    ("--shard 3/2", "'3/2' is not i/n with i from 1 to n"),
    ("--shard x", "'x' is not i/n with i from 1 to n"),
    ("--shard ²/3", "'²/3' is not i/n with i from 1 to n"),
    ("--width 0", "argument --width: '0' is not a whole number from 1 to 4096 ("),
    ("--width 4097", "argument --width: '4097' is not a whole number from 1 to 4096 ("),
    ("--width two", "argument --width: 'two' is not a whole number from 1"),
    ("--executor cloud", "argument --executor: invalid choice: 'cloud'"),
    ("--config.num_layer=2", "unknown config key 'num_layer' of the family regression, did you mean num_layers?"),
    ("--config.dim=0", "dim is 0; it must be a whole number of at least 1"),
    ("--config.preset=paper", "preset cannot be set in a sweep"),
    ("--config.data_seed=1", "data_seed cannot be set in a sweep; use --seeds"),
    ("--out folder", "folder is a folder, not a file"),
    ("--out file/results.csv", "argument --out: file/results.csv cannot be made: file is a file"),
    ("--out file", "file exists and is not a sweep table; choose another --out"),
    ("--out other.csv", "other.csv exists and is not a sweep table; choose another --out"),
    (
        "--out /proc/1/results.csv",
        "argument --out: /proc/1/results.csv cannot be made: nothing can be written in /proc/1",
    ),
    ("--out runs/plan_x.json", "runs/plan_x.json is reserved for the sweep's own files; choose another --out"),
    ("--out folder/../runs/plan_x.json", "runs/plan_x.json is reserved for the sweep's own files"),
    ("--out link/plan_x.json", "link/plan_x.json is reserved for the sweep's own files"),
    ("--out runs/.lock_table", "runs/.lock_table is reserved for the sweep's own files"),
    ("--out runs/lsa1/metrics.csv", "runs/lsa1/metrics.csv is reserved for the sweep's own files"),
    ("--out runs", "argument --out: runs is a folder, not a file"),
    ("--runs_dir file", "argument --runs_dir: file is a file, not a folder"),
    ("--runs_dir file/runs", "argument --runs_dir: file/runs cannot be made: file is a file"),
    ("--runs-dirr x", "unknown argument --runs_dirr, did you mean --runs_dir?"),
    ("now", "unknown argument now"),
]


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that is not refused ends here, not after hours."""
    monkeypatch.setattr("icl_lab.sweeps.work._train", lambda *_: pytest.fail("it is not refused"))


CASES = [("eval_noise", *case) for case in BAD_GRIDS + BAD_ANYWHERE]
# the other drivers read the same flags: one of a grid, one of numbers, one of places
CASES += [("eval_order", *BAD_GRIDS[0])]
CASES += [
    (driver, *case) for driver in DRIVERS if driver != "eval_noise" for case in (BAD_ANYWHERE[1], BAD_ANYWHERE[-5])
]
CASES += [("studies.run", f"order_noise {words}", said) for words, said in (BAD_ANYWHERE[-5], BAD_ANYWHERE[-1])]


@pytest.mark.parametrize(("command", "words", "sentence"), CASES)
def test_a_sweep_is_refused(command: str, words: str, sentence: str, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "file").write_text("some text\n1\n")
    (tmp_path / "other.csv").write_text("exp,loss\na,1\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "link").symlink_to("runs")
    defaults = ["--runs_dir", "runs", "--out", "results.csv"]
    said = refused(command, *defaults, *words.split())
    assert sentence in said
    assert refused(command, *defaults, *words.split(), "--dry_run") == said


@pytest.mark.parametrize(
    "words",
    [
        "--p 1.5",
        "--runs_dir {0}/held",  # the last thing that is refused
        "--dry_run",
    ],
)
def test_jax_is_not_imported_before_a_sweep_trains(words: str, tmp_path: Path) -> None:
    script = "import sys, runpy; sys.modules['jax'] = None; runpy.run_module('eval_noise', run_name='__main__')"
    line = [sys.executable, "-c", script, "--runs_dir", f"{tmp_path}/runs", "--out", f"{tmp_path}/results.csv"]
    with locked(tmp_path / "held"):
        before = snapshot(tmp_path)
        done = subprocess.run([*line, *words.format(tmp_path).split()], cwd=ROOT, capture_output=True, text=True)
        assert snapshot(tmp_path) == before
    assert done.returncode == (0 if "dry_run" in words else 2), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == (0 if "dry_run" in words else 1)


def test_what_is_there_stays_when_a_sweep_is_refused(swept: Paths, tmp_path: Path, refused: Refused) -> None:
    at = copied(swept, tmp_path)
    for words in (["--p", "2"], ["--out", at.runs], ["--shard", "0/1"], ["--overwrite", "--width", "0"]):
        assert refused("eval_noise", *GRID, "--seeds", "0,1", *at.flags(), *words)  # which compares all files


@pytest.mark.parametrize("command", DRIVERS)
def test_two_sweeps_do_not_share_a_folder(command: str, tmp_path: Path, refused: Refused) -> None:
    with locked(tmp_path / "runs"):
        for words in [[], ["--shard", "1/2"], ["--overwrite"]][: 3 if command == "eval_noise" else 1]:
            said = refused(command, "--runs_dir", "runs", "--out", "results.csv", *words)
            assert "runs is in use by another process" in said


def test_a_refused_sweep_says_nothing_of_its_kernel(
    swept: Paths,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a compiler a sweep says that XLA computes it, once it has its folder and all of its runs."""
    bare = tmp_path_factory.mktemp("bare")  # beside the folder that is compared
    monkeypatch.setenv("PATH", str(bare / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    at = copied(swept, tmp_path)
    with locked(at.runs):
        assert "runs is in use" in refused("eval_noise", *GRID, "--seeds", "0,1", *at.flags())
    with locked(max(path for path in at.runs.iterdir() if path.is_dir())):
        assert "in use" in refused("eval_noise", *GRID, "--seeds", "0,1", *at.flags(), "--overwrite")


def test_a_shard_runs_once_and_keeps_out_the_whole(tmp_path: Path, refused: Refused) -> None:
    with locked(tmp_path / "runs", shared=True), locked(tmp_path / "runs", ".lock_1_of_2"):
        for words in ([], ["--shard", "1/2"]):
            assert "runs is in use" in refused("eval_noise", "--runs_dir", "runs", "--out", "results.csv", *words)


def test_a_run_in_use_is_not_cleared_nor_any_other(swept: Paths, tmp_path: Path, refused: Refused) -> None:
    at = copied(swept, tmp_path)
    last = max(path for path in at.runs.iterdir() if path.is_dir())
    with locked(last):
        said = refused("eval_noise", *GRID, "--seeds", "0,1", *at.flags(), "--overwrite")
        assert f"{last} is in use by another process" in said


@pytest.mark.parametrize("which", ["--out", "--runs_dir"])
def test_a_sweep_on_a_file_system_that_is_read_only(which: str, tmp_path: Path, ran: Ran) -> None:
    with mounted(tmp_path / "disk", "size=1m,ro") as disk:
        flags = {"--out": "results.csv", "--runs_dir": "runs", which: disk / "x"}
        done = ran("eval_order", *(word for pair in flags.items() for word in pair))
        said = f"error: argument {which}: {disk}/x cannot be made: nothing can be written in {disk}\n"
        assert (done.status, done.out, done.err) == (2, "", said)
        assert list(disk.iterdir()) == []
        remount(disk, "rw")
    assert sorted(os.listdir(tmp_path)) == ["disk"]


def damaged(folder: Path, content: str) -> Path:
    out = folder / "results.csv"
    write_plan(folder / "runs", out, tiny_plan())
    path = plan_file(folder / "runs", out)
    text = path.read_text()
    changed = {"half": text[: len(text) // 2], "old": json.dumps(json.loads(text) | {"results_version": 1})}
    path.write_text(changed.get(content, content))
    return folder / "runs"


@pytest.mark.parametrize("command", ["sweeps.status", "sweeps.collect"])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("half", "plan_results.json cannot be read: "),
        ("", "plan_results.json cannot be read: "),
        ("[]", "plan_results.json cannot be read: it does not hold a JSON object"),
        ("old", "plan_results.json is of another results version; run its sweep again"),
        ("{}", "plan_results.json is of another results version; run its sweep again"),
    ],
)
def test_a_damaged_plan_is_one_sentence(
    command: str, content: str, sentence: str, tmp_path: Path, refused: Refused
) -> None:
    runs = damaged(tmp_path, content)
    out = [] if command == "sweeps.status" else ["--out", "results.csv"]
    assert sentence in refused(command, "--runs_dir", runs, *out)


@pytest.mark.parametrize("command", ["sweeps.status", "sweeps.collect"])
def test_what_is_no_sweep_has_neither_status_nor_table(command: str, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "empty").mkdir()
    out = [] if command == "sweeps.status" else ["--out", "results.csv"]
    for folder in ("missing", "empty"):
        assert f"{folder} is not the folder of a sweep: it has no plan_<table>.json" in refused(
            command, "--runs_dir", folder, *out
        )
    assert "--runs_dir" in refused(command, *out)


@pytest.mark.parametrize("out", ["other.csv", "folder", "/proc/1/x.csv"])
def test_a_table_is_not_collected_over_something_else(out: str, tmp_path: Path, refused: Refused) -> None:
    write_plan(tmp_path / "runs", Path(out), tiny_plan())
    (tmp_path / "other.csv").write_text("exp,loss\na,1\n")
    (tmp_path / "folder").mkdir()
    assert out in refused("sweeps.collect", "--runs_dir", "runs", "--out", out)
