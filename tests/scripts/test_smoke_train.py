"""The smoke runs' checks: each passes on runs as they should be, and each finds the one thing that was broken."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from icl_lab.lab.executors.signals import Signals, catch_signals
from icl_lab.scripts import smoke_train
from icl_lab.store import layout
from icl_lab.store.atomic import write_bytes, write_npy, write_npz
from icl_lab.store.metrics import read_metrics
from icl_lab.store.readers import StoreError, read_npy, read_npz
from tests.runners.tiny import LSA1, ROOT, STEPS, Workshop, copied

NOISE = f"--noise_mode label_noise --noise_p {smoke_train.RATE} --noise_sigma 0.5".split()


@pytest.fixture(scope="session")
def ordered_run(workshop: Workshop) -> Path:
    """A finished run of lsa1 in order, with noise: the smoke runs' second and third in one. Read only."""
    order = ["--ordering", "smallnorm2largenorm"]
    return workshop.finished("ordered", LSA1, "--save_attention", *order, *NOISE)


@pytest.fixture
def smoke(
    lsa1_run: Path, twolayer_run: Path, ordered_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Copies of short runs under the names of the smoke runs; hardly trained, so the loss is to fall below 1."""
    monkeypatch.setattr(smoke_train, "STEP", STEPS)
    monkeypatch.setattr(smoke_train, "LOSS", 1.0)
    made = {"lsa1": lsa1_run, "lsa1_ordered": ordered_run, "lsa1_noisy": ordered_run, "twolayer": twolayer_run}
    assert made.keys() == smoke_train.RUNS.keys()
    for name, run in made.items():
        copied(run, tmp_path / name)
    return tmp_path


def checked(smoke: Path) -> int:
    return smoke_train.main(["--check_only", "--out", str(smoke)])


def test_runs_as_they_should_be_pass(smoke: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(smoke) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["ok", f"{name}:"] for name in smoke_train.RUNS]


def raise_the_loss(run: Path) -> None:
    records = read_metrics(run)
    lines = [json.dumps(record | {"eval_loss": record["eval_loss"] + 1}) for record in records]
    (run / layout.METRICS).write_text("".join(line + "\n" for line in lines))


def forget_the_order(run: Path) -> None:
    index = read_npy(run / layout.ORDERING_INDEX)
    write_npy(run / layout.ORDERING_INDEX, np.broadcast_to(np.arange(index.shape[1], dtype=np.int32), index.shape))


def repeat_a_pair(run: Path) -> None:
    index = read_npy(run / layout.ORDERING_INDEX).copy()
    index[0] = index[0, 0]
    write_npy(run / layout.ORDERING_INDEX, index)


def unsort_the_inputs(run: Path) -> None:
    arrays = read_npz(run / layout.ANALYSIS_BATCH, ["x", "y", "x_query", "y_query", "w"])
    write_npz(run / layout.ANALYSIS_BATCH, arrays | {"x": arrays["x"][:, ::-1]})


def reorder(run: Path) -> None:
    write_npy(run / layout.ORDERING_INDEX, read_npy(run / layout.ORDERING_INDEX)[:, ::-1])


def hit_others(run: Path) -> None:
    shape = read_npy(run / layout.NOISE_MASK).shape
    write_npy(run / layout.NOISE_MASK, np.random.default_rng(0).uniform(size=shape) < 0.5)


def hit_nobody(run: Path) -> None:
    write_npy(run / layout.NOISE_MASK, np.zeros_like(read_npy(run / layout.NOISE_MASK)))


def blank(run: Path) -> None:
    from matplotlib.image import imsave

    imsave(layout.figure(run, "attention_layer0_head0"), np.ones((40, 60, 3)))


def lose_a_figure(run: Path) -> None:
    layout.figure(run, "attention_layer0_head0").unlink()


def lose_the_last_figure(run: Path) -> None:
    layout.figure(run, "attention_layer1_head0").unlink()


@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("lsa1", raise_the_loss, f"the loss at step {STEPS} is 1."),
        ("lsa1", reorder, "random order is not the order drawn"),
        ("twolayer", reorder, "random order is not the order drawn"),
        ("lsa1_ordered", forget_the_order, "smallnorm2largenorm changed no index"),
        ("lsa1_ordered", repeat_a_pair, "an ordering's index is not a permutation"),
        ("lsa1_ordered", unsort_the_inputs, "the inputs do not ascend by norm"),
        ("lsa1_noisy", hit_others, "the mask's rate is 0."),
        ("lsa1_noisy", hit_nobody, "the mask's rate is 0.0000, not 0.25"),
        *((name, blank, "attention_layer0_head0.png is empty") for name in smoke_train.RUNS),
        *((name, lose_a_figure, "attention_layer0_head0.png is missing") for name in smoke_train.RUNS),
        ("twolayer", lose_the_last_figure, "attention_layer1_head0.png is missing"),
    ],
)
def test_a_run_that_is_broken_in_one_way_fails(
    name: str, damage: Callable[[Path], None], sentence: str, smoke: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(smoke / name)
    assert checked(smoke) == 1
    lines = capsys.readouterr().out.splitlines()
    wrong = [line for line in lines if line.startswith("wrong: ")]
    assert len(wrong) == 1
    assert wrong[0].startswith(f"wrong: {smoke / name}: ")
    assert sentence in wrong[0]
    assert [line.split()[1] for line in lines if line.startswith("FAILED")] == [f"{name}:"]


@pytest.mark.parametrize(
    ("name", "check", "content", "said"),
    [
        (layout.ORDERING_INDEX, smoke_train.is_in_order_drawn, np.zeros((0, 10), np.int32), "is not the order drawn"),
        (layout.ORDERING_INDEX, smoke_train.is_sorted, np.zeros((0, 10), np.int32), "changed no index"),
        (layout.NOISE_MASK, smoke_train.has_its_rate, np.zeros((0, 10), bool), "has no pairs"),
        ("", smoke_train.shows_attention, np.zeros((0, 11, 11), np.float32), "the same everywhere"),
    ],
)
def test_no_check_passes_on_nothing(
    name: str, check: smoke_train.Check, content: np.ndarray, said: str, lsa1_run: Path, tmp_path: Path
) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    write_npy(run / name if name else layout.attention_head(run, 0, 0), content)
    assert said in (check(run) or "")


@pytest.mark.parametrize(
    ("file", "content"),
    [(layout.METRICS, b"{}\n"), (layout.NOISE_MASK, b""), ("figs/attention_layer0_head0.png", b"\x89PNG\r\n")],
)
def test_a_file_that_cannot_be_read_is_named(file: str, content: bytes, smoke: Path) -> None:
    write_bytes(smoke / "lsa1_noisy" / file, content)
    write_bytes(smoke / "lsa1" / file, content)
    with pytest.raises(StoreError, match=file):
        checked(smoke)


def test_a_signal_ends_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from icl_lab.runners import loop

    def signalled(*_: object, signals: Signals | None = None, **__: object) -> str:
        with nullcontext(signals) if signals else catch_signals() as caught:
            os.kill(os.getpid(), signal.SIGINT)
            assert caught.received == [signal.SIGINT]
        trained.append(1)
        return "stopped"

    trained: list[int] = []
    monkeypatch.setattr(loop, "run_pack", signalled)
    assert smoke_train.main(["--out", str(tmp_path)]) == 128 + signal.SIGINT
    assert len(trained) == 1
    assert "stopped; the same command retrains the runs: " in capsys.readouterr().out


# scripts/smoke.sh

SHOWS = '#!/bin/sh\necho "NAME in $PWD"\nprintf "<%s>" "$@"\n'


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("environment", [True, False])
def test_the_script_takes_the_repositorys_python_or_else_python3(shell: str, environment: bool, tmp_path: Path) -> None:
    """From another folder, with a path that has spaces, and with the arguments as they were given."""
    repository, elsewhere = tmp_path / "a repository", tmp_path / "elsewhere"
    executable(repository / "scripts/smoke.sh", (ROOT / "scripts/smoke.sh").read_text())
    executable(elsewhere / "python3", SHOWS.replace("NAME", "python3"))
    if environment:
        executable(repository / ".venv/bin/python", SHOWS.replace("NAME", "the environment"))
    path = {"PATH": f"{elsewhere}:{os.environ['PATH']}", "CDPATH": str(elsewhere)}
    line = [shell, "../a repository/scripts/smoke.sh", "--out", "two words", ""]
    done = subprocess.run(line, cwd=elsewhere, env=os.environ | path, capture_output=True, text=True)
    python = "the environment" if environment else "python3"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{python} in {repository}\n<-m><scripts.smoke_train><--out><two words><>"


def test_the_script_is_the_command_and_what_make_runs(tmp_path: Path) -> None:
    line = ["bash", ROOT / "scripts/smoke.sh", "--check_only", "--out", "runs/nowhere"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: runs/nowhere/lsa1/metrics.jsonl does not exist")
    line = ["make", "-n", "-o", ".venv/.made", "smoke_train", "ARGS=--check_only --quiet"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "bash scripts/smoke.sh --check_only --quiet\n"


@pytest.mark.slow
def test_the_smoke_runs_pass(workshop: Workshop, tmp_path: Path) -> None:
    done = workshop.run("scripts.smoke_train", "--out", tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("\nok ") == len(smoke_train.RUNS)
