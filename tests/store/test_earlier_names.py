"""Names say which tasks a number is of; files of earlier versions are read, and a resumed run keeps its names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from icl_lab import store
from icl_lab.lab.configs import earlier_names
from icl_lab.lab.configs.registry import FAMILIES, named, outputs_of
from icl_lab.store import layout
from icl_lab.store.export import Copy
from icl_lab.store.listing import list_runs
from icl_lab.store.metrics import append_metrics, read_metrics, read_summary
from icl_lab.store.readers import read_csv
from icl_lab.sweeps import table
from tests.store.test_runs import made

# (an earlier version's, today's), of each family
RECORDS = {
    "regression": (
        {"test_loss": 0.2, "gd_loss": 0.3, "preds_diff": 0.4, "model_diff": 0.5, "model_cos": 0.6},
        {"eval_loss": 0.2, "eval_gd_loss": 0.3, "eval_preds_diff": 0.4, "eval_model_diff": 0.5, "eval_model_cos": 0.6},
    ),
    "layerwise": ({"test_loss": 0.2, "gd_loss": 0.3}, {"eval_loss": 0.2, "eval_gd_loss": 0.3}),
    "sine": ({"test_loss": 0.2, "initial_loss": 0.3}, {"eval_loss": 0.2, "eval_initial_loss": 0.3}),
    "autoencoder": ({"test_loss": 0.2, "test_accuracy": 0.3}, {"eval_loss": 0.2, "eval_accuracy": 0.3}),
    "languages": (
        {"test_loss": 0.1, "test_accuracy": 0.2, "no_context_loss": 0.3, "way_to_optimum": 0.4, "gd_preds_mse": 0.5}
        | {"optimum_cosine": 0.6, "unseen_loss": 0.7, "unseen_accuracy": 0.8, "llc": 0.9},
        {"eval_loss": 0.1, "eval_accuracy": 0.2, "eval_no_context_loss": 0.3, "eval_way_to_optimum": 0.4}
        | {"eval_gd_preds_mse": 0.5, "eval_optimum_cosine": 0.6, "eval_unseen_loss": 0.7, "eval_unseen_accuracy": 0.8}
        | {"llc": 0.9},
    ),
    "diversity": (
        {"test_loss": 0.2, "id_loss": 0.3, "ood_delta_ridge": 0.4, "id_errors": [0.5]},
        {"eval_loss": 0.2, "eval_id_loss": 0.3, "eval_ood_delta_ridge": 0.4, "eval_id_errors": [0.5]},
    ),
    # as they would have been
    "tokens": ({"test_loss": 0.2}, {"eval_loss": 0.2}),
    "functions": ({"test_loss": 0.2, "id_errors": [0.5]}, {"eval_loss": 0.2, "eval_id_errors": [0.5]}),
}
COMMON = {"step": 0, "train_loss": 1.0}


def test_every_family_is_here() -> None:
    assert {*RECORDS} == {*FAMILIES.built_in}


@pytest.mark.parametrize("family", RECORDS)
def test_earlier_metrics_are_read_and_continued_under_their_names(family: str, tmp_path: Path) -> None:
    """By every reader of metrics; what a resumed run appends has the names that its file began with."""
    earlier, today = RECORDS[family]
    for name, began, then in (("old", earlier, earlier), ("new", today, today)):
        run = made(tmp_path / name, family=family, status="stopped")
        (run / layout.METRICS).write_text(json.dumps(COMMON | began) + "\n")
        append_metrics(run, COMMON | today | {"step": 40})
        lines = (run / layout.METRICS).read_text().splitlines()
        assert [json.loads(line) for line in lines] == [COMMON | then, COMMON | then | {"step": 40}]
        assert read_metrics(run, [*today][:1]) == [COMMON | today, COMMON | today | {"step": 40}]
        (entry,) = list_runs(run)
        assert entry.loss == ("eval_loss", today["eval_loss"])
        row = store.table(run).iloc[0]
        numbers = {name: value for name, value in today.items() if isinstance(value, float)}
        assert {name: row[name] for name in numbers} == numbers
        assert not {*earlier} - {*today} & {*row.index}
        target = Target()
        assert [*Copy(run, lambda target=target: target).update()] == [0, 40]
        assert target.written == [{"train_loss": 1.0, **numbers}] * 2


class Target:
    """Keeps what is exported."""

    def __init__(self) -> None:
        self.written: list[dict[str, float]] = []

    def write(self, step: int, numbers: dict[str, float]) -> None:
        self.written.append(numbers)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("family", RECORDS)
def test_an_earlier_summary_is_read(family: str, tmp_path: Path) -> None:
    earlier, today = RECORDS[family]
    rest: dict[str, Any] = {
        "num_steps": 40,
        "headline": {"gd_loss": 1.0},
        "alignment": {"gd_loss": 2.0, "model_cos": 1},
    }
    for values in (earlier, today):
        (tmp_path / layout.SUMMARY).write_text(json.dumps(COMMON | values | rest))
        assert read_summary(tmp_path) == COMMON | today | rest


HEADER = "exp,model,seed,status,results_version"
TABLES = {
    "lsa1": (
        "test_mse,align_cos,test_loss,gd_mse,gd_loss,loss_ratio,loss_ratio_se,ridge_loss,gd_tuned_step_loss,slope,"
        "preds_diff,eval_ordering,auroc,headline_tasks",
        "test_mse,align_cos,test_loss,gd_mse,test_gd_loss,test_loss_ratio,test_loss_ratio_se,test_ridge_loss,"
        "test_gd_tuned_step_loss,eval_slope,eval_preds_diff,eval_ordering,auroc,test_tasks",
    ),
    "lsa": ("test_mse,test_loss,gd_mse,gd_loss,ridge_loss", "test_mse,test_loss,gd_mse,test_gd_loss,test_ridge_loss"),
    "tiny": ("id_tf_loss,ood_delta_ridge_se", "test_id_tf_loss,test_ood_delta_ridge_se"),
    "languages": (
        "accuracy,accuracy_se,no_context_accuracy,unseen_loss,way_to_optimum",
        "test_accuracy,test_accuracy_se,test_no_context_accuracy,test_unseen_loss,test_way_to_optimum",
    ),
    "of nobody": ("gd_loss,accuracy", "gd_loss,accuracy"),
}


@pytest.mark.parametrize("model", TABLES)
def test_an_earlier_table_is_read(model: str, tmp_path: Path) -> None:
    """By `read_csv`, which figures, studies and `store.table` read with, and by the sweeps that append to it."""
    for names in TABLES[model]:
        path = tmp_path / "table.csv"
        path.write_text(f"{HEADER},{names}\na,{model},0,done,1{',0.5' * len(names.split(','))}\n")
        today = [*HEADER.split(","), *TABLES[model][1].split(",")]
        assert [*read_csv(path, ("seed",), ("exp",)).columns] == today
        assert [*table.read(path)[0]] == today
        assert {*store.table(path).columns} == {"path", *today}


def test_words_of_an_earlier_table_are_read_as_todays(tmp_path: Path) -> None:
    """As by sweeps that append to it; in a table that is no sweep's the word stands for itself."""
    path = tmp_path / "table.csv"
    path.write_text(f"{HEADER},schedule\na,tiny,0,done,1,triangle\nb,tiny,1,done,1,constant\n")
    for columns in ((), ("schedule",)):
        assert [*read_csv(path, ("seed",), ("exp", *columns))["schedule"]] == ["linear_up_down", "constant"]
    assert [row["schedule"] for row in table.read(path)] == ["linear_up_down", "constant"]
    (tmp_path / "curve.csv").write_text("step,schedule\n0,triangle\n")
    assert [*read_csv(tmp_path / "curve.csv", ("step",))["schedule"]] == ["triangle"]


def test_another_table_keeps_its_names(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("step,tf_loss,gd_loss\n0,1,2\n")
    assert [*read_csv(tmp_path / "curve.csv", ("gd_loss",)).columns] == ["step", "tf_loss", "gd_loss"]


@pytest.mark.parametrize("family", RECORDS)
def test_names_of_results_say_which_tasks_they_are_of(family: str) -> None:
    """In tables every loss, ratio and accuracy is `test_`; what figures of metrics draw is `train_` or `eval_`."""
    declared = outputs_of(named(family))
    columns = {*declared.columns.first, *declared.columns.measured, *declared.columns.further(None)}
    fixed = {"gd_mse", "token_accuracy", "symbol_accuracy"}  # of the test tasks, as the meanings of the columns say
    kinds = ("_loss", "_loss_se", "_ratio", "_ratio_se", "_mse", "_accuracy", "_accuracy_se", "_cosine")
    assert all(name.startswith("test_") for name in columns - fixed if name.endswith(kinds))
    fields = {curve.field for panel in declared.panels for curve in panel.curves}
    assert all(name.startswith(("train_", "eval_")) for name in fields)
    assert declared.test_loss.name.startswith("test_")


def test_todays_names_are_their_own() -> None:
    today = {name for _, record in RECORDS.values() for name in record}
    assert {name: earlier_names.todays_metric(name) for name in today} == {name: name for name in today}
