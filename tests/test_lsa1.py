"""The committed run is whole and stays what it is: later versions must read it, analyse it and draw it."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab import store
from icl_lab.analysis import alignment
from icl_lab.analysis.loaded_run import load_compared
from icl_lab.families.regression.task import make_model
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.plots.run_figures import draw_run
from icl_lab.store import layout, rundir
from tests import reference
from tests.doors import Ran, ran
from tests.runners.tiny import LSA1, copied, in_float64, results, tokens

__all__ = ["ran"]

# Pinned, for the run stands for all that were made in its form. One of a later form is another folder beside it.
FILES = {
    *("manifest.jsonl", "config.json", "meta.json", "metrics.jsonl", "metrics_summary.json", "params.safetensors"),
    *("params.pkl",),
    *("ordering_idx.npy", "noise_mask.npy", "attn/layer0.npz", "attn/layer0_head0.npy", "attn/summary.json"),
    *(f"figs/{name}.png" for name in ("loss", "alignment", "weights", "attention_layer0_head0")),
    *(f"analysis/{name}.npz" for name in ("analysis_batch", "predictions", "weights")),
    *(f"analysis/{name}.npy" for name in ("ordering_idx", "noise_mask", "train_ordering_idx", "train_noise_mask")),
    *(f"analysis/{name}" for name in ("analysis_metadata.json", "alignment.json", "alignment.csv", "ood.csv")),
}
SCHEMA_VERSION, RESULTS_VERSION = 2, 4
PARAMS = "efd4b39f1cb43fde"  # the first digits of the SHA-256 of its parameters
MOST_BYTES = 2_000_000


@pytest.fixture(scope="module")
def example(root: Path) -> Path:
    return root / "demos_ref" / "lsa1"


@pytest.fixture
def copy(example: Path, tmp_path: Path) -> Path:
    return copied(example, tmp_path / "run")


def read(run: Path, name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((run / name).read_text())
    return value


def test_its_files_and_versions_are_those_it_was_committed_with(example: Path) -> None:
    files = {path.relative_to(example).as_posix(): path for path in example.rglob("*") if path.is_file()}
    files.pop(layout.LOCK, None)  # of whoever analysed it where it stands
    assert set(files) == FILES
    assert sum(path.stat().st_size for path in files.values()) <= MOST_BYTES
    meta = read(example, layout.META)
    assert (meta["schema_version"], meta["results_version"]) == (SCHEMA_VERSION, RESULTS_VERSION)
    assert (meta["status"], meta["seeds"]) == ("done", {"data_seed": 0, "init_seed": 0})
    assert hashlib.sha256((example / layout.PARAMS).read_bytes()).hexdigest()[:16] == PARAMS


def test_git_keeps_all_of_it(root: Path) -> None:
    if not (root / ".git").exists():
        pytest.skip("not a git checkout")
    names = [f"demos_ref/lsa1/{name}" for name in sorted(FILES)]
    ignored = subprocess.run(["git", "check-ignore", "--no-index", *names], cwd=root, capture_output=True, text=True)
    assert ignored.stdout == ""


def test_its_predictions_are_those_of_its_parameters(example: Path) -> None:
    """By this version's model to float32's rounding, and in float64 without it."""
    config, params, batch = store.load(example)
    stored = np.load(example / layout.PREDICTIONS)["tf"]
    np.testing.assert_allclose(make_model(config).predict(params, batch), stored, rtol=2e-5, atol=2e-6)
    exact, doubled = in_float64(example)
    found = reference.stack(exact, config, tokens(doubled, "concatenated"))[-1][2]
    np.testing.assert_allclose(found, stored, rtol=2e-5, atol=2e-6)


def test_it_is_analysed_to_the_same_numbers(copy: Path) -> None:
    before = read(copy, layout.ALIGNMENT)
    (copy / layout.ALIGNMENT).unlink()
    alignment.write(load_compared(copy))
    after = read(copy, layout.ALIGNMENT)
    assert after.keys() >= before.keys()
    for name, value in before.items():
        expected = pytest.approx(value, rel=1e-3) if isinstance(value, float) else value
        assert after[name] == expected, name


def test_its_figures_are_drawn_again(copy: Path) -> None:
    shutil.rmtree(copy / layout.FIGURES)
    draw_run(copy)
    drawn = {path.relative_to(copy).as_posix() for path in (copy / layout.FIGURES).iterdir()}
    assert drawn == {name for name in FILES if name.startswith(layout.FIGURES)}


def test_it_is_a_row_of_the_table(example: Path) -> None:
    (row,) = store.table(example).to_dict("records")
    assert (row["status"], row["training.steps"], row["model.num_layers"]) == ("done", 5000, 1)
    assert row["headline.tf_loss"] == read(example, layout.SUMMARY)["headline"]["tf_loss"]


FLAGS = "--save_attention --attention_batch 64 --eval_every 100".split()  # of the command in docs/contract.md


def test_its_own_flags_find_it_done_and_show_it(copy: Path, ran: Ran) -> None:
    """None of its files is touched; other settings are refused."""
    before = results(copy)
    done = ran(LSA1, *FLAGS, "--out", copy)
    assert (done.status, done.err) == (0, "")
    loss = read(copy, layout.SUMMARY)["headline"]["tf_loss"]
    (line,) = (line for line in done.out.splitlines() if "trained transformer" in line)
    assert line.split()[2] == f"{loss:.4f}"
    assert results(copy) == before
    other = ran(LSA1, *FLAGS, "--steps", 10, "--out", copy)
    assert (other.status, "holds a run of another config" in other.err) == (2, True)


def test_it_is_found_without_out_too(example: Path, tmp_path: Path) -> None:
    """What `--overwrite` redoes is the newest run of the config, and no other one."""
    stored = rundir.read_config(copied(example, tmp_path / "runs" / "lsa1"))
    for config, name in ((stored, "lsa1"), (resolve(preset("lsa1")), "lsa1_1")):
        assert rundir.choose(config, None, overwrite=True, runs=tmp_path / "runs").name == name
