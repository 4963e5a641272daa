"""A run of task diversity, from its command line to its directory: complete, true, resumable, packed, and refused."""

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from icl_lab.families.diversity.task import make_model
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.runners.pack import programs
from icl_lab.runners.static_shape import static_shape, training_part
from icl_lab.src.prng import Purpose, key, purpose_key
from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_metrics
from tests.doors import Refused, ran, refused
from tests.processes import python
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, Workshop, in_float64, results

__all__ = ["ran", "refused"]

RUNNER, NAME = "runners.run_task_diversity", "diversity"
TASKS, STEPS, DIM, PAIRS, SEQUENCES = 4, 40, 4, 8, 64
RECORDED = (0, 1, 3, 6, 15, 16, 30, 40)  # every 15th, and 40^(i/4) for i = 0 to 4: 1, 2.5, 6.3, 15.9, 40
NOISE_VARIANCE = DIM / 32
SETTINGS = {
    "num_layers": 1,
    "batch_size": 16,
    "d_model": 8,
    "mlp_width": 16,
    "eval_tasks": SEQUENCES,
    "test_tasks": SEQUENCES,
    "eval_every": 15,
    "log_records": 5,
}
SIZES = [
    *f"--steps {STEPS} --num_tasks {TASKS} --num_heads 2".split(),
    *(f"--config.{key}={value}" for key, value in SETTINGS.items()),
]
# Compiling is nine tenths of a run as short as these, and half of it is for speed.
QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
FILES = {
    *("config.json", "meta.json", "metrics.jsonl", "metrics_summary.json", "params.safetensors", "params.pkl", ".lock"),
    "manifest.jsonl",
    *("snapshots.safetensors", "analysis/analysis_batch.npz", "analysis/latent_batch.npz", "analysis/predictions.npz"),
    "figs/loss.png",
    "checkpoints/step_00000040.safetensors",
}


class Sequences(NamedTuple):
    """Stored sequences in float64, with the model's predictions on them."""

    x: np.ndarray
    y: np.ndarray
    w: np.ndarray
    tf: np.ndarray


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def finished(workshop: Workshop, name: str, *words: str) -> Path:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XLA_FLAGS", QUICK["XLA_FLAGS"])
        return workshop.finished(name, RUNNER, sizes=words)


@pytest.fixture(scope="module")
def run(workshop: Workshop) -> Path:
    """A finished run of a pool of four tasks. Read only."""
    return finished(workshop, NAME, *SIZES)


@pytest.fixture(scope="module")
def held(run: Path) -> dict[str, Sequences]:
    """Sequences in distribution (id) and out of it (ood)."""
    params, _ = in_float64(run)
    predict = jax.jit(make_model(rundir.read_config(run)).predict)
    found = {}
    for prefix, name in (("id", layout.ANALYSIS_BATCH), ("ood", layout.LATENT_BATCH)):
        with np.load(run / name) as archive:
            batch = {field: archive[field] for field in ("x", "y", "w")}
        single = jax.tree.map(lambda leaf: leaf.astype(np.float32), params)
        tf = predict(single, Seen(**batch))
        found[prefix] = Sequences(*(np.asarray(part, np.float64) for part in (*batch.values(), tf)))
    return found


class Seen(NamedTuple):
    """What of a batch a model sees, and its tasks."""

    x: np.ndarray
    y: np.ndarray
    w: np.ndarray


def ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Predictions [B, K] of ridge regression on the pairs before each, with the penalty of w ~ N(0, I)."""
    found = np.zeros_like(y)
    for sequence in range(len(x)):
        for k in range(1, x.shape[1]):
            seen, labels = x[sequence, :k], y[sequence, :k]
            w = np.linalg.solve(seen.T @ seen + NOISE_VARIANCE * np.eye(DIM), seen.T @ labels)
            found[sequence, k] = w @ x[sequence, k]
    return found


def dmmse(x: np.ndarray, y: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """Predictions [B, K]: the tasks' mean, weighed by how likely they make the pairs before each."""
    labels = np.einsum("bkd,md->bkm", x, pool)
    squared = np.cumsum((y[:, :, None] - labels) ** 2, axis=1)
    before = np.concatenate([np.zeros_like(squared[:, :1]), squared[:, :-1]], axis=1)
    weights = np.exp(-(before - before.min(axis=2, keepdims=True)) / (2 * NOISE_VARIANCE))
    return (weights * labels).sum(axis=2) / weights.sum(axis=2)


# The directory


def test_every_file_is_there_and_no_other(run: Path) -> None:
    assert {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} == FILES
    assert read(run / layout.META)["status"] == "done"


def test_the_config_is_the_one_asked_for(run: Path) -> None:
    config = rundir.read_config(run)
    assert (config.family, config.name, config.data.num_tasks) == ("diversity", "tiny", TASKS)
    assert (config.data.dim, config.data.num_pairs) == (DIM, PAIRS)
    assert config.data.noise_std**2 == pytest.approx(NOISE_VARIANCE)
    assert config.training.schedule == "linear_up_down"


def test_records_are_made_on_a_linear_and_on_a_logarithmic_grid(run: Path) -> None:
    records = read_metrics(run)
    assert tuple(record["step"] for record in records) == RECORDED
    assert records[1]["train_loss"] == records[0]["train_loss"]  # that of the first batch, before the first step
    assert len({record["train_loss"] for record in records[1:]}) == len(RECORDED) - 1
    summary = read(run / layout.SUMMARY)
    assert {name: summary[name] for name in records[-1]} == records[-1]
    assert (summary["name"], summary["num_steps"], summary["headline"]["tasks"]) == ("tiny", STEPS, SEQUENCES)


def test_sequences_are_of_the_pool_or_of_fresh_tasks(held: Mapping[str, Sequences]) -> None:
    """With noise of variance D/32, within 4 standard errors of 512 Gaussians."""
    inside, outside = held["id"], held["ood"]
    assert (inside.x.shape, inside.w.shape) == ((SEQUENCES, PAIRS, DIM), (SEQUENCES, DIM))
    assert len(np.unique(inside.w, axis=0)) == TASKS
    assert len(np.unique(np.concatenate([inside.w, outside.w]), axis=0)) == TASKS + SEQUENCES
    for found in held.values():
        noise = found.y - np.einsum("bkd,bd->bk", found.x, found.w)
        assert noise.var() == pytest.approx(NOISE_VARIANCE, rel=4 * np.sqrt(2 / noise.size))


@pytest.mark.parametrize("prefix", ["id", "ood"])
def test_the_last_record_is_what_numpy_makes_of_the_stored_files(
    prefix: str, run: Path, held: Mapping[str, Sequences]
) -> None:
    """Errors of noiseless labels over D, and Deltas to predictors written here; float32 in the run, hence 1e-4."""
    x, y, w, tf = held[prefix]
    pool = np.unique(held["id"].w, axis=0)  # 64 sequences miss none of four tasks
    expected = {"tf": tf, "ridge": ridge(x, y), "dmmse": dmmse(x, y, pool)}
    with np.load(run / layout.PREDICTIONS) as archive:
        assert set(archive) == {f"{one}_{name}" for one in held for name in expected}
        for name, values in expected.items():
            np.testing.assert_allclose(archive[f"{prefix}_{name}"], values, rtol=1e-4, atol=1e-4)
    squared = (tf - np.einsum("bkd,bd->bk", x, w)) ** 2 / DIM
    record = read_metrics(run)[-1]
    assert record[f"eval_{prefix}_loss"] == pytest.approx(squared.mean(), rel=1e-4)
    np.testing.assert_allclose(record[f"eval_{prefix}_errors"], squared.mean(axis=0), rtol=1e-4)
    for name in ("ridge", "dmmse"):
        delta = np.mean((tf - expected[name]) ** 2) / DIM
        assert record[f"eval_{prefix}_delta_{name}"] == pytest.approx(delta, rel=1e-4)
    if prefix == "id":
        assert record["eval_loss"] == pytest.approx(np.mean((tf - y) ** 2) / 2, rel=1e-4)


def test_the_headline_has_the_losses_that_theory_gives(run: Path) -> None:
    """Of zero on fresh tasks E(w.x)^2 / D = 1; dMMSE is the best in distribution, ridge out of it; 5 errors."""
    headline = read(run / layout.SUMMARY)["headline"]
    assert abs(headline["ood_zero_loss"] - 1) < 5 * headline["ood_zero_loss_se"]
    for prefix, best in (("id", "dmmse"), ("ood", "ridge")):
        others = {f"{prefix}_{name}_loss" for name in ("tf", "ridge", "dmmse", "zero")} - {f"{prefix}_{best}_loss"}
        assert all(headline[f"{prefix}_{best}_loss"] < headline[name] for name in others)
    assert headline["verdict"] == "between"  # after 40 steps it is neither


def test_the_command_prints_what_the_summary_holds(run: Path, workshop: Workshop) -> None:
    lines, headline = workshop.said(run.name).splitlines(), read(run / layout.SUMMARY)["headline"]
    assert f"tiny_1layer, seed 0: {STEPS} steps of 16 tasks" in lines
    assert f"  tasks of its pool of {TASKS}:" in lines
    rows = [line.split()[-2:] for line in lines if line.startswith("    ")]
    names = [*(f"{name}_loss" for name in ("tf", "dmmse", "ridge", "zero")), "delta_dmmse", "delta_ridge"]
    keys = [f"{prefix}_{name}" for prefix in ("id", "ood") for name in names]
    assert rows == [[f"{headline[key]:.4f}", f"{headline[f'{key}_se']:.4f}"] for key in keys]
    assert f"verdict: {headline['verdict']}" in lines


# Over training


def test_snapshots_go_from_the_initial_to_the_final_parameters(run: Path) -> None:
    from safetensors.numpy import load_file

    found, config = load_file(run / layout.SNAPSHOTS), rundir.read_config(run)
    assert tuple(found.pop("step")) == RECORDED
    final = load_file(run / layout.PARAMS)
    assert found.keys() == final.keys()
    init = jax.jit(make_model(config).init, compiler_options={"xla_backend_optimization_level": 0})
    initial = init(purpose_key(key(config.init_seed), Purpose.INIT))
    for name, rows in found.items():
        module, _, last = name.rpartition("/")
        np.testing.assert_allclose(rows[0], initial[module][last], rtol=1e-6, err_msg=name)  # of one run, not a pack
        np.testing.assert_array_equal(rows[-1], final[name], err_msg=name)
        assert all((one != other).any() for one, other in pairwise(rows)), name


@pytest.mark.slow
def test_a_killed_run_ends_with_the_bytes_of_one_that_was_not(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    line = [RUNNER, *SIZES, *EVERY_CHUNK, "--out", tmp_path / "run"]
    for place in (
        "before:step_00000016.safetensors:SIGKILL",  # record and snapshot are there, the checkpoint is not
        "during:metrics.jsonl:SIGKILL:2",
        "before:predictions.npz:SIGKILL",
        "after:snapshots.safetensors:SIGKILL",
    ):
        killed = workshop.run(*line, INTERRUPT=place, PYTHONPATH=INTERRUPTED, **QUICK)
        assert killed.returncode == -9, f"{place}: {killed.stderr}"
    done = workshop.run(*line, **QUICK)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "run") == results(run)


# Packs


TOGETHER = """
import sys
from dataclasses import replace
from pathlib import Path
import jax
from icl_lab.runners.loop import Run, OutputOptions, run_pack
from icl_lab.store import rundir
from icl_lab.lab.progress import NullLogger

chunks = []
def listen(name, seconds, **facts):
    if name.endswith("backend_compile_duration") and facts.get("fun_name") == "jit(chunk)":
        chunks.append(name)
jax.monitoring.register_event_duration_secs_listener(listen)

def run(name, num_tasks):
    config = rundir.read_config(Path(sys.argv[1]))
    config = replace(config, data=replace(config.data, num_tasks=num_tasks))
    return Run(Path(sys.argv[2]) / f"{name}_{num_tasks}", config)

def train(runs, width):
    assert run_pack(runs, NullLogger(), OutputOptions(figures=False), width=width) == "done"
    print(len(chunks))

train([run("together", 1), run("together", 4), run("together", 0)], 3)
train([run("alone", 1)], 1)
train([run("alone", 0)], 1)
"""
POOLS = (1, TASKS, 0)  # 0 is infinity


@pytest.mark.slow
def test_runs_of_several_pools_in_one_pack_are_the_runs_alone(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    """To rounding, as programs of other widths round differently; one program trains all of a width, whatever M is.

    5e-5 of parameters: the gradient of a key's bias is 0 but for rounding, of which Adam makes steps.
    """
    done = workshop.python("-c", TOGETHER, run, tmp_path, **QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "2", "2"]
    final = {}
    for num_tasks in POOLS:
        alone = run if num_tasks == TASKS else tmp_path / f"alone_{num_tasks}"
        packed = tmp_path / f"together_{num_tasks}"
        assert rundir.read_meta(packed)["pack_width"] == 3
        assert (packed / layout.ANALYSIS_BATCH).read_bytes() == (alone / layout.ANALYSIS_BATCH).read_bytes()
        assert (packed / layout.LATENT_BATCH).read_bytes() == (run / layout.LATENT_BATCH).read_bytes()
        one, other = in_float64(packed)[0], in_float64(alone)[0]
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=5e-5), one, other)
        for record, expected in zip(read_metrics(packed), read_metrics(alone), strict=True):
            assert record.keys() == expected.keys()
            for name, value in record.items():
                np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)
        final[num_tasks] = np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(other)])
    for one_pool, other_pool in ((1, TASKS), (TASKS, 0), (0, 1)):
        assert np.abs(final[one_pool] - final[other_pool]).max() > 1e-3


def tiny(**values: Any) -> RegressionConfig:
    config = preset("tiny")
    set_values(config, SETTINGS | {"num_tasks": TASKS, "training.steps": STEPS} | values)
    return resolve(config)


def test_pools_of_any_size_share_programs() -> None:
    base = tiny()
    for other in (tiny(num_tasks=1), tiny(num_tasks=0), tiny(num_tasks=2**15), tiny(data_seed=3, init_seed=4)):
        assert programs(static_shape(other), 3) is programs(static_shape(base), 3)
        assert training_part(other) != training_part(base)
    for other in (tiny(noise_std=0.0), tiny(task_distribution="sphere"), tiny(dim=3), tiny(weight_decay=0.1)):
        assert static_shape(other) != static_shape(base)


# Other runs


@pytest.mark.slow
def test_without_noise_a_run_has_no_predictors_to_compare_with(workshop: Workshop) -> None:
    """Ridge and dMMSE weigh the noise against the prior. The loss of w = 0 on unit tasks is 1/D."""
    words = "--noise_std 0 --task_distribution sphere --schedule constant --lr .01 --config.log_records=0".split()
    run = finished(workshop, "noiseless", *SIZES, *words)
    records, headline = read_metrics(run), read(run / layout.SUMMARY)["headline"]
    sets, predictors = ("id", "ood"), ("ridge", "dmmse")
    distances = {f"eval_{where}_delta_{name}" for where in sets for name in predictors}
    for record in records:  # the record says null, the summary why
        assert {name for name, value in record.items() if value is None} == distances
        assert min(record["eval_id_loss"], record["eval_ood_loss"]) > 0
    numbers = [number for name in predictors for number in (f"{name}_loss", f"delta_{name}")]
    undefined = {f"{where}_{number}" for where in sets for number in numbers}
    assert undefined <= {name for name, value in headline.items() if value is None}
    why = "noise_std is 0; this predictor needs noise in the labels, to weigh it against its prior"
    assert {headline[f"{name}_reason"] for name in undefined} == {why}
    assert min(headline["id_tf_loss"], headline["ood_tf_loss"]) > 0
    assert records[-1]["eval_id_loss"] < 0.98 * records[0]["eval_id_loss"]
    assert [record["step"] for record in records] == [0, 15, 30, 40]
    assert headline["verdict"] == "nothing to compare with"
    assert abs(headline["ood_zero_loss"] - 1 / DIM) < 5 * headline["ood_zero_loss_se"]
    with np.load(run / layout.ANALYSIS_BATCH) as archive:
        x, y, w = (archive[name].astype(float) for name in ("x", "y", "w"))
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(y, np.einsum("bkd,bd->bk", x, w), atol=1e-6)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--num_tasks 0", "argument --num_tasks: '0' is not a whole number from 1 to 2^31 - 1, nor inf"),
        ("--num_tasks -3", "argument --num_tasks: '-3' is not a whole number from 1 to 2^31 - 1, nor inf"),
        ("--num_tasks many", "argument --num_tasks: "),
        ("--config.num_tasks=-3", "num_tasks is -3; it must be a whole number of at least 1, or inf"),
        ("--config.num_tasks=4294967296", "num_tasks is 4294967296"),
        ("--num_pairs 1", "num_pairs is 1; a sequence is at least 2 pairs long, because the first has no context"),
        ("--schedule foo", "argument --schedule: invalid choice: 'foo'"),
        ("--task_distribution foo", "argument --task_distribution: invalid choice: 'foo'"),
        ("--num_heads 3", "d_model is 32; it does not divide among 3 heads"),
        ("--noise_std -1", "noise_std is -1.0; it must be at least 0"),
        ("--config.mlp_width=-1", "mlp_width is -1; it must be a whole number of at least 0"),
        ("--config.triangle=perhaps", "triangle is 'perhaps'; it must be true or false"),
        ("--config.schedule=foo", "schedule is 'foo'; it must be one of constant, cosine, linear_up_down"),
        ("--config.merged=true", "unknown config key 'merged' of the family diversity"),
        ("--config.num_distractors=1", "unknown config key 'num_distractors' of the family diversity"),
        ("--ordering random", "unknown argument --ordering"),
    ],
)
def test_what_cannot_be_run_is_refused(words: str, sentence: str, refused: Refused) -> None:
    assert refused(RUNNER, *words.split(), "--out", "run").startswith(f"error: {sentence}")


def test_fields_of_the_family_are_refused_elsewhere(refused: Refused) -> None:
    for field, value in {"num_tasks": 4, "block": "regression"}.items():
        said = refused("runners.run_concat_inputs_targets", f"--config.{field}={value}", "--out", "run")
        assert f"unknown config key {field!r} of the family regression" in said


@pytest.mark.robust
def test_a_large_batch_in_blocks_trains_as_a_whole_one_up_to_rounding(tmp_path: Path) -> None:
    words = ["--model", "tiny", "--steps", "3", "--config.batch_size=1024", "--config.eval_tasks=8"]
    for kernel in ("auto", "xla"):
        out = ["--config.test_tasks=8", "--kernel", kernel, "--out", tmp_path / kernel]
        done = python("-m", RUNNER, *words, *out)
        assert done.returncode == 0, done.stderr
    kernels = [rundir.read_meta(tmp_path / name)["kernel"] for name in ("auto", "xla")]
    assert kernels == ["xla, 256 tasks at a time", "xla"]
    blocks, whole = (read_metrics(tmp_path / name)[-1] for name in ("auto", "xla"))
    for name in ("train_loss", "eval_loss"):
        # rounding may turn the sign of Adam's step where a gradient is nearly 0; 3 steps of at most 3e-3
        assert blocks[name] == pytest.approx(whole[name], rel=1e-3)
