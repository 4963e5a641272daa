"""Logistic regression in context, of a folder that is no part of the tree: what a run, a pack and a sweep promise."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab import analysis, store
from icl_lab.families.task import training_set
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.loaded_plugins import LOADED
from icl_lab.plots import style, training
from icl_lab.store import layout, snapshots
from icl_lab.store.metrics import read_metrics
from icl_lab.store.readers import read_csv, read_npz
from tests.families.small import (
    LOGISTIC,
    PACK,
    RECORDED,
    RUN,
    SIZES,
    STEPS,
    SWEEP,
    TASKS,
    killed_and_resumed,
    trained,
)
from tests.runners.tiny import Workshop, copied, results

PLUGIN = ["--plugin", LOGISTIC]
SETTINGS = ["--weight_scale", "2", "--lr", "0.05"]


@pytest.fixture
def run(workshop: Workshop) -> Path:
    """A run with snapshots. Read only."""
    return trained(workshop, "logistic", LOGISTIC, "logistic", *SETTINGS)


def logits_of(params: Any, batch: Any) -> np.ndarray:
    """One layer of linear attention on tokens (x, y - 1/2), in float64 and apart from the library."""
    x, y, x_query = (np.asarray(part, float) for part in (batch.x, batch.y, batch.x_query))
    context = np.concatenate([x, y[..., None] - 0.5], axis=2)
    query = np.concatenate([x_query, np.zeros((len(x), 1))], axis=1)
    (layer,) = params.values()
    w_query, w_key, w_value, projection = (
        np.asarray(layer[name], float) for name in ("query", "key", "value", "projection")
    )
    scores = np.einsum("bw,whk,bnu,uhk->bhn", query, w_query, context, w_key)
    update = np.einsum("bhn,bnw,whk,hku->bu", scores, context, w_value, projection)
    return -update[:, -1]


def losses_of(params: Any, batch: Any) -> np.ndarray:
    """-log p(label), each [B]."""
    p = 1 / (1 + np.exp(-logits_of(params, batch)))
    y = np.asarray(batch.y_query, float)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p))


def test_it_trains_and_its_numbers_are_those_of_a_forward_pass_by_hand(run: Path, both: None) -> None:
    config, params, batch = store.load(run)
    records = read_metrics(run, ["eval_constant_loss"])
    assert tuple(record["step"] for record in records) == RECORDED
    assert {record["eval_constant_loss"] for record in records} == {math.log(2)}
    assert records[-1]["eval_loss"] == pytest.approx(losses_of(params, batch).mean(), rel=1e-5)
    assert records[-1]["eval_loss"] < records[0]["eval_loss"] - 0.01
    assert (config.family, config.data.weight_scale) == ("logistic", 2.0)
    logits = read_npz(run / layout.PREDICTIONS, ["logits"])["logits"]
    np.testing.assert_allclose(logits, logits_of(params, batch), rtol=1e-4, atol=1e-5)


def test_labels_are_drawn_with_the_probability_that_their_task_gives_them(both: None, run: Path) -> None:
    """The mean of y - sigmoid(w.x), over 8192 labels, within four standard errors, in every third of sigmoid(w.x)."""
    from logistic import task

    config, *_ = store.load(run)
    wide = type(config)(data=config.data, eval_tasks=8192)
    batch = task.TASK.make_eval_set(wide, {}).batch
    p = 1 / (1 + np.exp(-(np.asarray(batch.x_query, float) * np.asarray(batch.w)).sum(1)))
    y = np.asarray(batch.y_query)
    assert set(np.unique(y)) == {0, 1}
    for chosen in (p < 1 / 3, (p > 1 / 3) & (p < 2 / 3), p > 2 / 3):
        error = math.sqrt((p * (1 - p))[chosen].mean() / chosen.sum())
        assert abs((y - p)[chosen].mean()) < 4 * error
    assert np.asarray(batch.w).std() == pytest.approx(2, rel=0.03)


def test_the_common_analysis_measures_each_snapshot(run: Path, workshop: Workshop, tmp_path: Path, both: None) -> None:
    copy = copied(run, tmp_path / "run")
    done = workshop.run("analysis.losses", "--run", copy, *PLUGIN)
    assert done.returncode == 0, done.stderr
    *_, batch = store.load(copy)
    table = read_csv(copy / layout.LOSSES, ["step", "loss", "loss_se"])
    assert tuple(table["step"]) == RECORDED
    for (_, params), loss, error in zip(snapshots.read(copy), table["loss"], table["loss_se"], strict=True):
        expected = losses_of(params, batch)
        assert loss == pytest.approx(expected.mean(), rel=1e-5)
        assert error == pytest.approx(expected.std(ddof=1) / math.sqrt(TASKS), rel=1e-4)


def test_it_is_loaded_with_its_model_and_its_checkpoints(run: Path, both: None) -> None:
    loaded = analysis.load_run(run)
    np.testing.assert_allclose(loaded.predict(loaded.batch), logits_of(loaded.params, loaded.batch), atol=1e-5)
    moments = dict(loaded.checkpoints())
    assert tuple(moments) == RECORDED
    for then in moments.values():
        np.testing.assert_allclose(then.predict(then.batch), logits_of(then.params, then.batch), atol=1e-5)
    assert np.abs(moments[0].predict(loaded.batch) - moments[STEPS].predict(loaded.batch)).max() > 0.01


def test_its_figure_has_the_curves_that_it_names(run: Path, both: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert layout.figure(run, "loss").stat().st_size > 1000
    monkeypatch.setattr(style, "save", lambda figure, path, of: figure)
    figure: Any = training.draw_loss(run)
    (axes,) = figure.axes
    records = read_metrics(run)
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    fields = {"train batch": "train_loss", "model": "eval_loss", "log 2": "eval_constant_loss"}
    assert drawn == {label: [record[field] for record in records] for label, field in fields.items()}
    assert axes.get_ylabel() == "cross-entropy (nats)"


def test_what_it_says_at_the_end_is_its_own(run: Path, workshop: Workshop) -> None:
    summary = json.loads((run / layout.SUMMARY).read_text())
    assert summary["loss_convention"] == "loss: cross-entropy of a label of 0 or 1, in nats"
    assert summary["trained"]["conditions"][0]["value"] == summary["headline"]["loss"] / math.log(2)
    said = workshop.said("logistic")
    assert "loss (cross-entropy, nats) on 64 test tasks" in said
    assert f"{summary['headline']['teacher_loss']:.4f}" in said
    listed = workshop.run("store.runs", run.parent, *PLUGIN).stdout
    assert f"loss {summary['headline']['loss']:.4g}" in listed


@pytest.mark.slow
def test_members_of_a_pack_have_the_bits_of_training_alone(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    """They differ in seeds and, two of one seed, in the scale of the weights: a batched hyperparameter."""
    values = [{"data_seed": 0, "data.weight_scale": 1.0}, {"data_seed": 0, "data.weight_scale": 4.0}]
    values += [{"data_seed": 1, "init_seed": 1, "data.weight_scale": 2.0, "training.lr": 0.01}]
    done = workshop.python("-c", PACK, run, tmp_path, LOGISTIC, json.dumps(values))
    assert done.returncode == 0, done.stderr
    together, alone = ([results(tmp_path / f"{how}_{i}") for i in range(3)] for how in ("together", "alone"))
    assert together == alone
    assert len({files[layout.PARAMS] for files in together}) == 3
    first, second = (read_metrics(tmp_path / f"together_{index}") for index in (0, 1))
    assert first[0]["train_loss"] != second[0]["train_loss"]  # one seed: the batches differ in scale alone
    small, large = (read_npz(tmp_path / f"together_{i}" / layout.ANALYSIS_BATCH, ["w"])["w"] for i in (0, 1))
    np.testing.assert_allclose(4 * small, large, rtol=1e-6)


@pytest.mark.slow
def test_killed_it_ends_with_the_same_bytes(run: Path, workshop: Workshop, tmp_path: Path) -> None:
    words = ["logistic", *SIZES, "--config.snapshots=true", *SETTINGS, *PLUGIN]
    assert killed_and_resumed(workshop, tmp_path / "run", *words) == results(run)


@pytest.mark.slow
def test_a_finite_training_set_is_the_one_that_every_step_sees(workshop: Workshop, tmp_path: Path, both: None) -> None:
    """The loss of a step is that of the parameters before it, on the whole set."""
    words = ["logistic", "--steps", "4", "--config.batch_size=16", "--config.eval_tasks=8", "--config.test_tasks=8"]
    words += ["--config.snapshots=true", "--config.eval_every=1", "--config.full_batch=true", "--lr", "0.1"]
    done = workshop.run(RUN, *words, *PLUGIN, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    loaded, records = analysis.load_run(tmp_path / "run"), read_metrics(tmp_path / "run")
    everything = training_set(loaded.config)
    assert np.shape(everything.y) == (16, 20)
    for (_, then), record in zip(loaded.checkpoints(), records[1:], strict=False):
        assert record["train_loss"] == pytest.approx(losses_of(then.params, everything).mean(), rel=1e-5)
    assert len({record["train_loss"] for record in records[1:]}) == 4


def test_another_source_of_the_family_is_another_run(both: None) -> None:
    """Also of the default config, which has the plugin in it as every other has."""
    from logistic.config import LogisticConfig

    config = LogisticConfig()
    assert config.plugins == (LOADED["logistic"].record,)
    LOADED["logistic"] = LOADED["logistic"]._replace(digest="another", trained="another")
    changed = replace(config)
    assert changed.plugins == ("logistic:another",)
    assert config_id(changed) != config_id(config)


@pytest.mark.slow
def test_a_sweep_has_its_axes_and_its_columns(workshop: Workshop, tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out.csv"
    words = [SWEEP, "logistic", *SIZES, "--dim", "2,3", "--weight_scale", "3", *PLUGIN, "--executor", "process"]
    done = workshop.run(*words, "--runs_dir", runs, "--out", out)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [*rows[0]] == (
        "exp model dim weight_scale seed test_loss status trained constant_loss teacher_loss accuracy "
        "results_version runs_dir bitwise"
    ).split()
    assert [(row["model"], row["dim"], row["weight_scale"], row["status"]) for row in rows] == [
        ("logistic", dim, "3.0", "done") for dim in ("2", "3")
    ]
    for row in rows:
        assert row["exp"].startswith(f"logistic_dim{row['dim']}_scale3_seed0-")
        headline = json.loads((runs / row["exp"] / layout.SUMMARY).read_text())["headline"]
        for column, name in {"test_loss": "loss", "teacher_loss": "teacher_loss", "accuracy": "accuracy"}.items():
            assert float(row[column]) == headline[name]


def test_a_value_of_a_lane_is_no_reason_for_another_pack(workshop: Workshop, tmp_path: Path) -> None:
    words = [SWEEP, "logistic", *SIZES, "--dim", "2,3", "--weight_scale", "1,3", "--seeds", "0,1", *PLUGIN, "--dry_run"]
    done = workshop.run(*words, "--executor", "packed", "--runs_dir", tmp_path / "runs", "--out", tmp_path / "out.csv")
    assert "8 runs to do: 8 trainings in 2 packs of at most 8, executor packed" in done.stdout
