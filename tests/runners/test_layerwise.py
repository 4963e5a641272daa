"""The depth curve's runs, end to end in processes of their own: train, resume, measure, draw; and what is refused."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab import store
from icl_lab.analysis.command import OF_ANY_FAMILY
from icl_lab.analysis.layerwise import layerwise
from icl_lab.analysis.loaded_run import load_run
from icl_lab.lab.progress import NullLogger
from icl_lab.runners.loop import Run, run_pack
from icl_lab.store import layout
from icl_lab.sweeps.collect import collect
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import plan, runs_of
from tests.doors import Ran, Refused, ran, refused
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, Workshop, copied, results

__all__ = ["ran", "refused"]

RUNNER = "runners.run_layerwise"
TINY = (
    "--steps 60 --eval_every 30 --batch_size 32 --config.dim=3 --config.num_pairs=6 --config.num_queries=4 "
    "--config.eval_tasks=32 --config.test_tasks=100"
).split()


def made(workshop: Workshop, name: str, *words: object) -> Path:
    """A finished tiny run. Read only."""
    return workshop.finished(name, RUNNER, *words, sizes=TINY)


@pytest.fixture(scope="module")
def lsa_run(workshop: Workshop) -> Path:
    return made(workshop, "depth_lsa")


@pytest.fixture(scope="module")
def stack_run(workshop: Workshop) -> Path:
    small = "--config.d_model=8 --config.key_size=8 --config.mlp_width=8 --num_layers 2".split()
    return made(workshop, "depth_softmax", "--model", "softmax", "--config.deep_supervision=true", *small)


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


@pytest.mark.slow
def test_a_run_leaves_what_the_contract_says(lsa_run: Path, stack_run: Path) -> None:
    for run in (lsa_run, stack_run):
        files = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} - {layout.LOCK}
        assert files == {
            *(layout.MANIFEST, layout.CONFIG, layout.META, layout.METRICS, layout.SUMMARY),
            *(layout.PARAMS, layout.PARAMS_PICKLE, "checkpoints/step_00000060.safetensors"),  # its last state
            *(layout.ANALYSIS_BATCH, layout.LAYERWISE, "figs/loss.png", "figs/layerwise.png"),
        }
        assert read(run / layout.META)["status"] == "done"
        records = [json.loads(line) for line in (run / layout.METRICS).read_text().splitlines()]
        assert [record["step"] for record in records] == [0, 30, 60]
        assert set(records[0]) == {"step", "train_loss", "eval_loss", "eval_gd_loss"}


def test_the_eval_loss_is_that_of_the_stored_batch_and_parameters(stack_run: Path) -> None:
    config, params, batch = store.load(stack_run)
    assert batch.x_query.shape == (32, 4, 3)
    model = load_run(stack_run).model
    predictions = np.asarray(model.trace(params, batch).layer_predictions[-1], float)
    last = json.loads((stack_run / layout.METRICS).read_text().splitlines()[-1])
    assert last["eval_loss"] == pytest.approx(0.5 * np.mean((predictions - batch.y_query) ** 2), rel=1e-5)
    assert config.training.deep_supervision


@pytest.mark.slow
def test_what_is_measured_is_written_and_repeats(lsa_run: Path, stack_run: Path) -> None:
    for run, layers in ((lsa_run, 50), (stack_run, 2)):
        found = read(run / layout.LAYERWISE)
        assert found["layers"] == len(found["mse"]) == len(found["sem"]) == len(found["gd"]["mse"]) == layers
        again = layerwise(load_run(run))
        assert again["mse"] == pytest.approx(found["mse"], rel=1e-6)
        assert read(run / layout.SUMMARY)["layerwise"] == found


@pytest.mark.slow
def test_a_stopped_run_resumes_to_the_same_bytes(lsa_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    words = [RUNNER, *TINY, *EVERY_CHUNK, "--out", tmp_path / "run"]
    place = "after:step_00000030.safetensors:SIGTERM"
    stopped = workshop.run(*words, INTERRUPT=place, PYTHONPATH=INTERRUPTED)
    assert (stopped.returncode, "stopped at step 30" in stopped.stdout) == (128 + signal.SIGTERM, True)
    assert workshop.run(*words).returncode == 0
    assert results(tmp_path / "run") == results(lsa_run)


@pytest.mark.slow
def test_a_finished_run_is_shown_again(lsa_run: Path, workshop: Workshop) -> None:
    done = workshop.run(RUNNER, *TINY, "--out", lsa_run)
    assert done.returncode == 0
    assert "rolled out with damping 0.75" in done.stdout
    found = read(lsa_run / layout.LAYERWISE)["references"]
    for label, name in {"  ridge (Bayes) ": "ridge", "  zero ": "zero"}.items():
        (row,) = (line for line in done.stdout.splitlines() if line.startswith(label))
        assert row.split()[-3:] == [
            f"{found[name][statistic][0]:.4g}" for statistic in ("trimmed_mean", "trimmed_sem", "median")
        ]


@pytest.mark.slow
def test_the_analysis_writes_where_it_is_told(lsa_run: Path, ran: Ran, tmp_path: Path) -> None:
    run = copied(lsa_run, tmp_path / "run")
    words = f"--run {run} --num_tasks 30 --layers 3 --damping 0.5 --out {tmp_path / 'other.json'}"
    done = ran("analysis.layerwise", *words.split())
    assert (done.status, done.err) == (0, "")
    found = read(tmp_path / "other.json")
    assert (found["layers"], found["num_tasks"], found["damping"]) == (3, 30, 0.5)
    assert (run / layout.LAYERWISE).read_bytes() == (lsa_run / layout.LAYERWISE).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("damping", ["1e30", "1e10", "1e39"])
def test_a_damping_that_overflows_is_refused_and_the_file_stays(
    lsa_run: Path, refused: Refused, tmp_path: Path, damping: str
) -> None:
    run = copied(lsa_run, tmp_path / "run")
    said = refused("analysis.layerwise", "--run", run, "--num_tasks", 30, "--layers", 5, "--damping", damping)
    said_of_it = (
        f"damping is {float(damping):g}",
        f"damping is {float(damping)}",
        f"--damping: '{damping}' is not a number",
    )
    assert any(words in said for words in said_of_it)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--ordering easy2hard", "unknown argument --ordering"),
        ("--config.base.ordering=easy2hard", "unknown config key 'base.ordering' of the family layerwise"),
        ("--config.eval.noise_p=0.5", "unknown config key 'eval.noise_p' of the family layerwise"),
        ("--pos_enc_size 4", "unknown argument --pos_enc_size"),
        ("--config.tokens=interleaved", "unknown config key 'tokens' of the family layerwise"),
        ("--config.num_distractors=1", "unknown config key 'num_distractors' of the family layerwise"),
        ("--save_attention", "unknown argument --save_attention"),
        ("--config.num_queries=0", "num_queries is 0; it must be a whole number of at least 1"),
        ("--model resnet", "invalid choice: 'resnet'"),
        ("--config.warmup_steps=-1", "warmup_steps is -1"),
        ("--modell lsa", "did you mean --model?"),
    ],
)
def test_what_has_no_meaning_is_refused(refused: Refused, words: str, sentence: str) -> None:
    assert sentence in refused(RUNNER, "--out", "fresh", *words.split())


@pytest.mark.parametrize("field", ["num_queries", "d_model", "deep_supervision"])
def test_and_what_is_the_depth_curves_is_refused_elsewhere(refused: Refused, field: str) -> None:
    said = refused("runners.run_softmax_copy", "--out", "fresh", f"--config.{field}=1")
    assert f"unknown config key {field!r} of the family regression" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--layers 3", "layers is 3, but this stack has 2; only a single layer"),
        ("--damping 0.5", "damping has no meaning for a stack"),
        ("--layers 0", "argument --layers: '0' is not a whole number from 1 to 100000"),
        ("--num_tasks 1", "argument --num_tasks: '1' is not a whole number from 2 to 2^22"),
    ],
)
def test_the_analysis_refuses(stack_run: Path, refused: Refused, tmp_path: Path, words: str, sentence: str) -> None:
    run = copied(stack_run, tmp_path / "run")
    assert sentence in refused("analysis.layerwise", "--run", run, *words.split())


@pytest.mark.slow
def test_analyses_of_another_family_say_so(lsa_run: Path, lsa1_run: Path, refused: Refused, tmp_path: Path) -> None:
    ours, theirs = copied(lsa_run, tmp_path / "ours"), copied(lsa1_run, tmp_path / "theirs")
    have = ", ".join((*OF_ANY_FAMILY, "layerwise"))
    assert f"is a run of the family layerwise, which has no alignment; it has {have}\n" in refused(
        "analysis.alignment", "--run", ours
    )
    have = ", ".join((*OF_ANY_FAMILY, "alignment"))
    assert f"is a run of the family regression, which has no layerwise; it has {have}" in refused(
        "analysis.layerwise", "--run", theirs
    )


@pytest.mark.slow
def test_a_sweep_has_runs_of_the_depth_curve_and_rows_with_their_losses(tmp_path: Path) -> None:
    sizes = {"steps": 2, "dim": 3, "num_pairs": 6, "num_queries": 4, "batch_size": 8, "test_tasks": 8}
    softmax = sizes | {"eval_tasks": 8, "d_model": 8, "key_size": 8, "mlp_width": 8, "num_layers": 2}
    rows = plan([Grid(("lsa",), {}, (0,), {**sizes, "eval_tasks": 8}), Grid(("softmax",), {}, (0,), softmax)])
    for run in runs_of(rows):
        assert run_pack([Run(tmp_path / run.name, run.config)], NullLogger()) == "done"
    for row, layers in zip(collect(rows, tmp_path, tmp_path / "results.csv"), (50, 2), strict=True):
        found = read(tmp_path / row["exp"] / layout.SUMMARY)["layerwise"]
        last = found["mse"][layers - 1]
        assert (row["status"], row["test_mse"], row["gd_mse"]) == ("done", last, found["gd"]["mse"][layers - 1])
        assert row["test_loss"] == (None if last is None else last / 2)
        assert row["test_ridge_loss"] == found["references"]["ridge"]["mse"][0] / 2
        assert not {"align_cos", "auroc", "loss_ratio", "ood_alpha3", "ordering"} & {*row}
