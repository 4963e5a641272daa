"""A run directory is complete, and what is stored in it is true: recomputed here in NumPy from its own files."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab import store
from icl_lab.families.regression.task import make_model
from icl_lab.src.prng import Purpose, key, purpose_key
from icl_lab.store import layout
from tests import reference
from tests.runners.tiny import BATCH, DIM, PAIRS, RECORDED, STEPS, TASKS, THREADS, Workshop, in_float64, tokens

KIND = {"lsa1": "concatenated", "twolayer": "interleaved"}
CODE = {"lsa1": 0, "twolayer": 10}
RANDOM_AND_CLEAN = {
    "ordering": "random",
    "difficulty": "gd_error",
    "noise_mode": "clean",
    "noise_p": 0.0,
    "noise_sigma": 0.0,
    "noise_placement": "mixed",
}


@pytest.fixture(params=["lsa1", "twolayer"])
def run(request: pytest.FixtureRequest, lsa1_run: Path, twolayer_run: Path) -> Path:
    """Either run."""
    return {"lsa1": lsa1_run, "twolayer": twolayer_run}[request.param]


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / layout.METRICS).read_text().splitlines()]


# What is there


def test_every_file_of_the_contract_is_there_and_no_other(run: Path) -> None:
    layers = {"lsa1": 1, "twolayer": 2}[run.name]
    expected = {
        *(
            "manifest.jsonl",
            "config.json",
            "meta.json",
            "metrics.jsonl",
            "metrics_summary.json",
            "params.safetensors",
            "params.pkl",
        ),
        *("ordering_idx.npy", "noise_mask.npy", "attn/summary.json", ".lock"),
        *(f"attn/layer{layer}.npz" for layer in range(layers)),
        *(f"attn/layer{layer}_head0.npy" for layer in range(layers)),
        *(f"figs/attention_layer{layer}_head0.png" for layer in range(layers)),
        *(f"figs/{name}.png" for name in ("loss", "alignment", "weights")),
        *(f"analysis/{name}.npz" for name in ("analysis_batch", "predictions", "weights")),
        *(f"analysis/{name}.npy" for name in ("ordering_idx", "noise_mask", "train_ordering_idx", "train_noise_mask")),
        *(f"analysis/{name}" for name in ("analysis_metadata.json", "alignment.json", "alignment.csv", "ood.csv")),
        *(["analysis/copying.json"] if run.name == "twolayer" else ["analysis/solutions.json"]),
        "checkpoints/step_00000100.safetensors",
    }
    assert {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()} == expected


def test_the_arrays_have_their_shapes_and_types(run: Path) -> None:
    batch = np.load(run / "analysis/analysis_batch.npz")
    shapes = {
        "x": (TASKS, PAIRS, DIM),
        "y": (TASKS, PAIRS),
        "x_query": (TASKS, DIM),
        "y_query": (TASKS,),
        "w": (TASKS, DIM),
    }
    assert {name: batch[name].shape for name in batch} == shapes
    assert {batch[name].dtype for name in batch} == {np.dtype(np.float32)}
    predictions = np.load(run / "analysis/predictions.npz")
    assert {name: predictions[name].shape for name in predictions} == {"tf": (TASKS,), "gd": (TASKS,)}
    for name, kind in {"ordering_idx": np.int32, "noise_mask": np.bool_}.items():
        for folder, size in {"": TASKS, "analysis/": TASKS, "analysis/train_": BATCH}.items():
            array = np.load(run / f"{folder}{name}.npy")
            assert (array.dtype, array.shape) == (kind, (size, PAIRS))
        assert (run / f"{name}.npy").read_bytes() == (run / f"analysis/{name}.npy").read_bytes()


def test_metrics_are_at_the_first_step_every_so_often_and_at_the_last(run: Path) -> None:
    records = metrics(run)
    assert tuple(record["step"] for record in records) == RECORDED
    for record in records:
        assert list(record)[:3] == ["step", "train_loss", "eval_loss"]
        assert not any(re.search("time|second|date|clock", name) for name in record)
        assert all(np.isfinite(value) for value in record.values())


def test_the_summary_holds_the_last_record_and_the_settings(run: Path) -> None:
    summary, last = read(run / layout.SUMMARY), metrics(run)[-1]
    assert {name: summary[name] for name in last} == last
    assert (summary["num_steps"], summary["name"]) == (STEPS, run.name)
    assert summary["contexts"] == dict.fromkeys(("base", "train", "eval"), RANDOM_AND_CLEAN)
    assert "half" in summary["loss_convention"]
    assert summary["alignment"] == read(run / layout.ALIGNMENT)
    assert summary["headline"]["tasks"] == 200


def test_meta_says_where_the_run_came_from(run: Path) -> None:
    meta = read(run / layout.META)
    expected = {"status": "done", "threads": THREADS, "pack_width": 1, "seeds": {"data_seed": 0, "init_seed": 0}}
    assert {name: meta[name] for name in expected} == expected
    assert f"--out {run}" in meta["command"]
    assert min(meta["run_seconds"], meta["compile_seconds"]) > 0
    assert meta["start"] <= meta["end"]
    named = {"schema_version", "results_version", "config_id", "git_hash", "git_dirty", "versions", "device", "prng"}
    assert named | {"precision", "loss_convention", "platform", "chunk_steps"} <= set(meta)


def test_the_metadata_says_that_nothing_was_done(run: Path) -> None:
    words = read(run / layout.ANALYSIS_METADATA)
    nothing = RANDOM_AND_CLEAN | dict.fromkeys(
        (f"{name}_had_effect" for name in ("order", "noise", "placement")), False
    )
    assert words == {"train": nothing, "eval": nothing}
    assert not np.load(run / layout.NOISE_MASK).any()
    np.testing.assert_array_equal(np.load(run / layout.ORDERING_INDEX), np.tile(np.arange(PAIRS), (TASKS, 1)))


def test_the_command_names_its_device_first_and_then_the_numbers(run: Path, workshop: Workshop) -> None:
    lines = workshop.said(run.name).splitlines()
    meta, headline = read(run / layout.META), read(run / layout.SUMMARY)["headline"]
    assert lines[0] == f"device: {meta['device']}"
    assert f"{run.name}, seed 0: {STEPS} steps of {BATCH} tasks" in lines
    for label, name in {"trained transformer": "tf", "gradient descent, 1 step": "gd", "zero": "zero"}.items():
        row = next(line.split() for line in lines if line.strip().startswith(label))
        assert row[-2:] == [f"{headline[f'{name}_loss']:.4f}", f"{headline[f'{name}_loss_se']:.4f}"]
    assert str(run / layout.FIGURES) in lines[-1]


# What is true


def test_the_batch_is_noiseless_regression(run: Path) -> None:
    _, batch = in_float64(run)
    np.testing.assert_allclose(batch.y, np.einsum("bnd,bd->bn", batch.x, batch.w), atol=1e-6)
    np.testing.assert_allclose(batch.y_query, np.einsum("bd,bd->b", batch.x_query, batch.w), atol=1e-6)
    assert np.abs(batch.x).max() <= 0.5
    assert np.abs(batch.x).max() > 0.49


def test_predictions_are_the_models_and_gradient_descents(run: Path) -> None:
    """The stored parameters on the stored batch, through a transformer and a gradient descent written in NumPy."""
    params, batch = in_float64(run)
    align, stored = read(run / layout.ALIGNMENT), np.load(run / layout.PREDICTIONS)
    layers = reference.stack(params, store.load(run).config, tokens(batch, KIND[run.name], CODE[run.name]))
    np.testing.assert_allclose(stored["tf"], layers[-1][2], atol=2e-6)
    np.testing.assert_allclose(stored["gd"], reference.gd(batch, align["eta"], align["gd_steps"]), atol=2e-6)
    assert np.abs(stored["gd"]).mean() > 0.05


def test_the_recorded_losses_are_half_the_mean_squared_errors(run: Path) -> None:
    _, batch = in_float64(run)
    stored, last, align = np.load(run / layout.PREDICTIONS), metrics(run)[-1], read(run / layout.ALIGNMENT)
    tf, gd = (0.5 * np.mean((stored[name] - batch.y_query) ** 2) for name in ("tf", "gd"))
    np.testing.assert_allclose([last["eval_loss"], align["tf_loss"]], tf, rtol=1e-5)
    np.testing.assert_allclose([last["eval_gd_loss"], align["gd_loss"]], gd, rtol=1e-5)
    assert {record["eval_gd_loss"] for record in metrics(run)} == {last["eval_gd_loss"]}


def test_the_headline_is_consistent(run: Path) -> None:
    numbers = read(run / layout.SUMMARY)["headline"]
    np.testing.assert_allclose(numbers["loss_ratio"], numbers["tf_loss"] / numbers["gd_loss"], rtol=1e-12)
    assert (
        numbers["ridge_loss"] < 1e-4 < numbers["gd_loss"] < numbers["zero_loss"]
    )  # 6 noiseless pairs determine 4 weights
    assert abs(numbers["gd_loss"] - numbers["gd_loss_averaged"]) < 4 * numbers["gd_loss_se"]
    assert numbers["gd_loss_averaged_se"] < numbers["gd_loss_se"] / 3


def test_the_curves_repeat_the_metrics(run: Path) -> None:
    rows = np.genfromtxt(run / layout.ALIGNMENT_CURVE, delimiter=",", names=True)
    logged = {name: f"eval_{name}" for name in ("preds_diff", "model_diff", "model_cos", "gd_loss")}
    for name, of in {"step": "step", "tf_loss": "eval_loss", **logged}.items():
        np.testing.assert_array_equal(rows[name], [record[of] for record in metrics(run)])


def test_ood_at_scale_1_is_the_headline(run: Path) -> None:
    """mse is the mean squared error, loss half of it; at alpha = 1 both are of the same tasks."""
    rows, numbers = np.genfromtxt(run / layout.OOD, delimiter=",", names=True), read(run / layout.SUMMARY)["headline"]
    assert rows.dtype.names[:3] == ("alpha", "test_mse", "gd_test_mse")
    np.testing.assert_array_equal(rows["alpha"], [1, 1.5, 2, 3])
    np.testing.assert_allclose(rows["test_mse"][0], 2 * numbers["tf_loss"], rtol=1e-6)
    np.testing.assert_allclose(rows["gd_test_mse"][0], 2 * numbers["gd_loss"], rtol=1e-6)


def test_attention_is_the_models(run: Path) -> None:
    params, batch = in_float64(run)
    first = type(batch)(*(leaf[:16] for leaf in batch))
    layers = reference.stack(params, store.load(run).config, tokens(first, KIND[run.name], CODE[run.name]))
    rows = {"lsa1": PAIRS + 1, "twolayer": 2 * PAIRS + 1}[run.name]
    for layer, (_, maps, _) in enumerate(layers):
        stored = np.load(run / f"attn/layer{layer}.npz")["data"]
        assert stored.shape == (16, 1, rows, rows - 1)
        np.testing.assert_allclose(stored, maps, atol=1e-5 * np.abs(maps).max())
        mean = np.load(run / f"attn/layer{layer}_head0.npy")
        np.testing.assert_allclose(mean, maps[:, 0].mean(axis=0), atol=1e-5 * np.abs(maps).max())
    summary = read(run / layout.ATTENTION_SUMMARY)
    assert summary["tasks"] == 16
    assert [part["kind"] for part in summary["layers"]] == ["softmax", "linear"][-len(layers) :]


def test_weights_are_the_products_of_the_parameters(run: Path) -> None:
    params, _ = in_float64(run)
    stored = np.load(run / layout.WEIGHTS)
    for layer in range(len(params)):
        part = params[f"layer_{layer}/attention"]
        kq = part["key"][:, 0] @ part["query"][:, 0].T
        pv = (part["value"][:, 0] @ part["projection"][0]).T
        softmax = run.name == "twolayer" and layer == 0  # no scale can move there
        beta = 1.0 if softmax else np.diag(kq)[:DIM].mean()
        np.testing.assert_allclose(stored["kq"][layer, 0], kq, atol=1e-12)
        np.testing.assert_allclose(stored["pv"][layer, 0], pv, atol=1e-12)
        np.testing.assert_allclose(stored["rescaled_kq"][layer, 0], kq / beta, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(stored["rescaled_pv"][layer, 0], pv * beta, rtol=1e-9, atol=1e-12)
    if run.name == "lsa1":
        label = np.diag(np.arange(DIM + 1) == DIM)
        np.testing.assert_allclose(stored["construction_kq"][0, 0], np.eye(DIM + 1) - label)
        np.testing.assert_allclose(stored["construction_pv"][0, 0], -read(run / layout.ALIGNMENT)["eta"] * label)
    else:
        assert stored["construction_kq"].size == stored["construction_pv"].size == 0


def test_the_pickle_holds_the_same_parameters(run: Path) -> None:
    params, _ = in_float64(run)
    with open(run / layout.PARAMS_PICKLE, "rb") as file:
        pickled = pickle.load(file)
    assert pickled.keys() == params.keys()
    for module, leaf in params.items():
        for name, value in leaf.items():
            np.testing.assert_array_equal(pickled[module][name], value)


def adam_bound(steps: int, lr: float = 1e-3, b1: float = 0.9, b2: float = 0.98) -> float:
    """The furthest that Adam can move a weight: lr sum_t |m_t| / sqrt(v_t), each at most sqrt(sum_i a_i^2 / b_i).

    a_i and b_i are the weights of the i-th gradient in m_t and v_t, bias-corrected; Cauchy and Schwarz.
    """
    furthest = 0.0
    for t in range(1, steps + 1):
        age = np.arange(t)
        a = (1 - b1) * b1**age / (1 - b1**t)
        b = (1 - b2) * b2**age / (1 - b2**t)
        furthest += lr * np.sqrt(np.sum(a**2 / b))
    return furthest


def test_training_moved_the_parameters_by_no_more_than_adam_can(run: Path) -> None:
    params, _ = in_float64(run)
    config = store.load(run).config
    start = make_model(config).init(purpose_key(key(config.init_seed), Purpose.INIT))
    for module, leaf in params.items():
        for name, value in leaf.items():
            moved = np.abs(value - np.asarray(start[module][name]))
            assert 1e-3 < moved.max() < adam_bound(STEPS)
