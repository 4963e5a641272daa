"""The depth sweep's script: it trains, measures and draws; called again it has nothing to train; bad words end it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runners.tiny import ROOT, Workshop

SCRIPT = "scripts/run_depth_sweep.sh"
TINY = (
    "--batch_size 8 --config.dim=2 --config.num_queries=2 --config.eval_tasks=8 --config.test_tasks=20 "
    "--config.num_heads=1"
).split()


def ran(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The script with this interpreter."""
    inherited = os.environ | {"PY": sys.executable} | environment
    return subprocess.run(["sh", SCRIPT, *words], cwd=ROOT, env=inherited, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sweep", "width"], "sweep is 'width'; choose depth, noise or context"),
        (["--seeds", "one"], "seeds has 'one'; each must be a whole number"),
        (["--step", "3"], "unknown argument --step"),
        (["--steps"], "--steps needs a value"),
    ],
)
def test_bad_words_are_one_sentence(words: list[str], sentence: str) -> None:
    done = ran(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("sweep", "runs"),
    [
        ("depth", "--num_layers=2 --num_layers=4 --num_layers=8 --num_layers=12 --num_layers=24"),
        ("noise", "--config.noise_std=0.0 --config.noise_std=0.02 --config.noise_std=0.05 --config.noise_std=0.1"),
        ("context", "--config.num_pairs=10 --config.num_pairs=20 --config.num_pairs=40"),
    ],
)
def test_a_sweep_is_a_flag_of_the_runner_for_each_run(sweep: str, runs: str, tmp_path: Path) -> None:
    """As the commands are printed by a stand-in for the interpreter, which runs nothing."""
    printing = tmp_path / "python"
    printing.write_text('#!/bin/sh\necho "$@"\n')
    printing.chmod(0o755)
    done = ran("--sweep", sweep, PY=str(printing))
    assert (done.returncode, done.stderr) == (0, "")
    trained = [line.split() for line in done.stdout.splitlines() if "runners.run_layerwise" in line]
    assert [next(word for word in words if word in runs.split()) for words in trained] == runs.split()


@pytest.mark.slow
def test_it_trains_measures_draws_and_resumes(workshop: Workshop, tmp_path: Path) -> None:
    cache = {"JAX_COMPILATION_CACHE_DIR": str(workshop.folder / "compiled")}
    words = ["--sweep", "context", "--steps", "3", "--num_tasks", "20", "--out", str(tmp_path / "out"), "--", *TINY]
    done = ran(*words, **cache)
    assert done.returncode == 0, done.stderr
    for pairs in (10, 20, 40):
        folder = tmp_path / "out" / "linear" / f"config.num_pairs={pairs}"
        assert (folder / "compare_gd_vs_transformer.png").exists()
    stamp = (folder / "seed_0" / "params.safetensors").stat().st_mtime_ns
    assert ran(*words, **cache).returncode == 0
    assert (folder / "seed_0" / "params.safetensors").stat().st_mtime_ns == stamp
