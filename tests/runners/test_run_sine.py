"""A run of sines, from its command line to its directory: complete, true, resumable, and refused where it must be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis.command import OF_ANY_FAMILY
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.progress import NullLogger
from icl_lab.runners.loop import Run, run_pack
from icl_lab.scripts.reference_page import files
from icl_lab.store import layout, rundir
from icl_lab.sweeps.collect import collect
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import plan, runs_of
from tests.doors import Refused, ran, refused
from tests.runners.tiny import (
    EVERY_CHUNK,
    INTERRUPTED,
    PAIRS,
    RECORDED,
    SINE,
    SINE_SIZES,
    STEPS,
    TASKS,
    Workshop,
    in_float64,
    results,
)

__all__ = ["ran", "refused"]

FILES = {
    *("config.json", "meta.json", "metrics.jsonl", "metrics_summary.json", "params.safetensors", "params.pkl", ".lock"),
    "manifest.jsonl",
    *("analysis/analysis_batch.npz", "analysis/predictions.npz"),
    *("analysis/sine_functions.csv", "analysis/sine_functions.json"),
    *("figs/loss.png", "figs/sine_functions.png"),
    "checkpoints/step_00000100.safetensors",
}


@pytest.fixture(params=["sine", "sine_control"])
def run(request: pytest.FixtureRequest, sine_run: Path, control_run: Path) -> Path:
    """Either run."""
    return {"sine": sine_run, "sine_control": control_run}[request.param]


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def test_every_file_is_there_and_no_other(run: Path) -> None:
    assert {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} == FILES
    assert read(run / layout.META)["status"] == "done"


def test_the_reference_lists_these_files() -> None:
    """And those of a command of its own."""
    described = {files.entry(name) for name in FILES - {".lock"}}
    assert None not in described
    assert {file.name for file in files.FILES if "sine" in file.left_by} <= FILES | {
        *(layout.SINE_COMPARISON, layout.SINE_COMPARISON_FUNCTIONS, "figs/sine_comparison.png"),
    }


def test_the_numbers_agree_with_each_other(run: Path) -> None:
    """Losses are half mean squared errors of the stored predictions on the stored batch, which holds sines."""
    _, batch = in_float64(run)
    assert (batch.x.shape, batch.w.shape) == ((TASKS, PAIRS, 1), (TASKS, 2))
    np.testing.assert_allclose(batch.y, batch.w[:, :1] * np.sin(batch.x[..., 0] + batch.w[:, 1:]), atol=1e-6)
    records = [json.loads(line) for line in (run / layout.METRICS).read_text().splitlines()]
    assert tuple(record["step"] for record in records) == RECORDED
    stored = np.load(run / layout.PREDICTIONS)
    for name, field in {"after": "eval_loss", "before": "eval_initial_loss"}.items():
        np.testing.assert_allclose(records[-1][field], 0.5 * np.mean((stored[name] - batch.y_query) ** 2), rtol=1e-5)
    summary = read(run / layout.SUMMARY)
    assert {name: summary[name] for name in records[-1]} == records[-1]
    assert (summary["name"], summary["num_steps"], summary["headline"]["tasks"]) == (run.name, STEPS, 200)
    # E a^2 sin^2 / 2 = (1/2) E a^2 / 2 = .0258, but for the range of x, which is no multiple of the period
    assert abs(summary["headline"]["zero_loss"] - 0.0258) < 5 * summary["headline"]["zero_loss_se"]
    assert "half" in summary["loss_convention"]


def test_the_functions_are_of_one_sine_over_the_range(run: Path) -> None:
    about = read(run / layout.SINE_FUNCTIONS_FACTS)
    table = np.genfromtxt(run / layout.SINE_FUNCTIONS, delimiter=",", names=True)
    np.testing.assert_allclose(table["x"], np.linspace(-5, 5, 100), atol=1e-6)
    np.testing.assert_allclose(table["target"], about["amplitude"] * np.sin(table["x"] + about["phase"]), atol=1e-6)
    labels = about["amplitude"] * np.sin(np.array(about["context_x"]) + about["phase"])
    np.testing.assert_allclose(about["context_y"], labels, atol=1e-6)
    for name in ("before", "after"):
        loss = 0.5 * np.mean((table[name] - table["target"]) ** 2)
        np.testing.assert_allclose(about[f"{name}_loss"], loss, rtol=1e-5)
    assert np.abs(table["after"] - table["before"]).max() > 1e-3


def test_the_command_prints_what_the_summary_holds(run: Path, workshop: Workshop) -> None:
    lines, headline = workshop.said(run.name).splitlines(), read(run / layout.SUMMARY)["headline"]
    assert f"{run.name}, seed 0: {STEPS} steps of 64 tasks" in lines
    for label, name in {"after the context": "loss", "before the context": "initial_loss", "zero": "zero_loss"}.items():
        row = next(line.split() for line in lines if line.strip().startswith(label))
        assert row[-2:] == [f"{headline[name]:.5f}", f"{headline[f'{name}_se']:.5f}"]


@pytest.mark.slow
def test_a_killed_run_ends_with_the_bytes_of_one_that_was_not(
    sine_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    line = [SINE, *SINE_SIZES, *EVERY_CHUNK, "--config.key_size=6", "--out", out]
    for place in ("before:step_00000030.safetensors:SIGKILL", "before:sine_functions.csv:SIGKILL"):
        assert workshop.run(*line, INTERRUPT=place, PYTHONPATH=INTERRUPTED).returncode == -9
    done = workshop.run(*line)
    assert done.returncode == 0, done.stderr
    assert results(out) == results(sine_run)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--ordering random", "unknown argument --ordering"),
        ("--noise_p .5", "unknown argument --noise_p"),
        ("--save_attention", "unknown argument --save_attention"),
        ("--pos_enc_size 4", "unknown argument --pos_enc_size"),
        ("--control --num_layers 2", "num_layers is 2, but has no meaning for a control"),
        ("--config.dim=2", "unknown config key 'dim' of the family sine"),
        ("--config.amplitude_high=0", "amplitude_high is 0.0; it must be above 0.1"),
        ("--config.embedded=labels", "embedded is 'labels'; it must be one of pairs, inputs"),
        ("--config.eval.ordering=easy2hard", "unknown config key 'eval.ordering' of the family sine"),
    ],
)
def test_what_has_no_meaning_for_sines_is_refused(words: str, sentence: str, refused: Refused) -> None:
    assert sentence in refused(SINE, *words.split(), "--out", "run")


def test_analyses_of_regression_refuse_sines(sine_run: Path, workshop: Workshop) -> None:
    done = workshop.run("analysis.alignment", "--run", sine_run)
    assert done.returncode == 2
    have = ", ".join((*OF_ANY_FAMILY, "compare_sine"))
    expected = f"which has no alignment; it has {have}"
    assert done.stderr == f"error: {sine_run} is a run of the family sine, {expected}\n"


@pytest.mark.slow
def test_a_sweep_has_runs_of_sines_and_rows_with_their_losses(tmp_path: Path) -> None:
    sizes = {"d_model": 4, "mlp_width": 0, "batch_size": 8, "eval_tasks": 8, "test_tasks": 8}
    rows = plan([Grid(("sine", "sine_control"), {}, (0, 1), {"training.steps": 2, **sizes})])
    runs = [Run(tmp_path / planned.name, planned.config) for planned in runs_of(rows)]
    for pair in (runs[:2], runs[2:]):
        assert run_pack(pair, NullLogger(), width=2) == "done"
    for row in collect(rows, tmp_path, tmp_path / "results.csv"):
        headline = read(tmp_path / row["exp"] / layout.SUMMARY)["headline"]
        assert (row["status"], row["test_loss"], row["test_mse"]) == ("done", headline["loss"], 2 * headline["loss"])
        assert not {"align_cos", "auroc", "gd_loss", "ood_alpha3", "ordering"} & {*row}
    assert {rundir.read_meta(run.directory)["pack_width"] for run in runs} == {2}


def test_presets_of_sines() -> None:
    """The facts of the published code: batch 2048, Adam 3e-4, clip 100, embedding 40, MLP 160, step .1/10, U(-5, 5)."""
    transformer, control = (resolve(preset(name, "paper")) for name in ("sine", "sine_control"))
    for config in (transformer, control):
        training = config.training
        assert (training.batch_size, training.lr, training.grad_clip, training.steps) == (2048, 3e-4, 100.0, 50_000)
        assert (config.model.d_model, config.model.mlp_width, config.model.embedded) == (40, 160, "pairs")
        assert (config.data.dim, config.data.num_pairs, config.data.input_range) == (1, 10, 10.0)
        assert (config.data.amplitude_low, config.data.amplitude_high) == (0.1, 0.5)
    assert (transformer.model.key_size, transformer.model.step_size, control.model.step_size) == (40, 0.0, 0.01)
    literal = preset("sine_control")
    set_values(literal, {"embedded": "inputs"})
    assert resolve(literal).model.embedded == "inputs"
