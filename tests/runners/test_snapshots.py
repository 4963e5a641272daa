"""A run's parameters over its training: they are the run's own, and an interrupted run keeps the same ones."""

import csv
from pathlib import Path

import numpy as np
import pytest

from icl_lab import store
from icl_lab.families.regression.task import make_model
from icl_lab.src.prng import Purpose, key, purpose_key
from icl_lab.store import layout, snapshots
from icl_lab.store.metrics import read_metrics
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, LSA1, RECORDED, SIZES, TWOLAYER, Workshop, copied, results

KEEPING = "--config.snapshots=true"


@pytest.fixture(scope="module")
def run(workshop: Workshop) -> Path:
    """Two layers that share their weights: GD++ can be fitted to them. Read only."""
    return workshop.finished("snapshots", LSA1, KEEPING, "--num_layers=2", "--config.recurrent=true")


def test_there_is_one_for_every_record_from_the_initial_to_the_final_parameters(run: Path) -> None:
    found = dict(snapshots.read(run))
    assert tuple(found) == RECORDED
    config, params, _ = store.load(run)
    initial = make_model(config).init(purpose_key(key(config.init_seed), Purpose.INIT))
    for module, leaves in params.items():
        for name, value in leaves.items():
            np.testing.assert_array_equal(found[RECORDED[-1]][module][name], value)
            np.testing.assert_allclose(found[0][module][name], initial[module][name], rtol=1e-6)
    assert not (run / layout.GROWING_SNAPSHOTS).exists()


@pytest.mark.slow
def test_they_change_no_bit_of_the_run(run: Path, workshop: Workshop) -> None:
    without = workshop.finished("no_snapshots", LSA1, "--num_layers=2", "--config.recurrent=true")
    assert (run / layout.METRICS).read_bytes() == (without / layout.METRICS).read_bytes()
    assert not (without / layout.SNAPSHOTS).exists()


@pytest.mark.slow
def test_an_interrupted_run_keeps_the_same_ones(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    line = [LSA1, *SIZES, *EVERY_CHUNK, KEEPING, "--num_layers=2", "--config.recurrent=true"]
    line += ["--out", tmp_path / "run"]
    for place in (
        "before:step_00000030.safetensors:SIGKILL",  # the record and the snapshot are there, the checkpoint is not
        "during:metrics.jsonl:SIGKILL:2",  # the snapshot is there, the record is half
        "before:snapshots.safetensors:SIGKILL",
        "after:snapshots.safetensors:SIGKILL",
    ):
        assert workshop.run(*line, INTERRUPT=place, PYTHONPATH=INTERRUPTED).returncode == -9, place
    assert workshop.run(*line).returncode == 0
    assert results(tmp_path / "run") == results(run)


@pytest.mark.slow
def test_over_training_repeats_what_the_run_logged(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(run, tmp_path / "run")
    done = workshop.run("analysis.over_training", "--run", run)
    assert done.returncode == 0, done.stderr
    with open(run / layout.OVER_TRAINING, encoding="utf-8") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    logged = read_metrics(run, ("eval_gd_loss", "eval_preds_diff", "eval_model_diff", "eval_model_cos"))
    assert [row["step"] for row in rows] == [record["step"] for record in logged]
    for row, record in zip(rows, logged, strict=True):
        found = [row["tf_loss"], *(row[f"gd_{name}"] for name in ("loss", "preds_diff", "model_diff", "model_cos"))]
        names = ("eval_loss", "eval_gd_loss", "eval_preds_diff", "eval_model_diff", "eval_model_cos")
        np.testing.assert_allclose(found, [record[name] for name in names], rtol=1e-4, atol=1e-6)  # another program
        assert row["gd_plus_plus_loss"] < row["gd_loss"]


@pytest.mark.slow
def test_interleaved_tokens_have_their_sensitivities_over_training(workshop: Workshop) -> None:
    run = workshop.finished("snapshots_twolayer", TWOLAYER, KEEPING)
    done = workshop.run("analysis.over_training", "--run", run)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(RECORDED)
    assert all("own" in line and "next" in line and "gd_plus_plus" not in line for line in lines)


def test_a_run_without_snapshots_is_refused(lsa1_run: Path, workshop: Workshop) -> None:
    done = workshop.run("analysis.over_training", "--run", lsa1_run)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {lsa1_run} has no snapshots of its training; --config.snapshots=true keeps them\n"
