"""The figure of loss per layer beside loss per step: what it shows stands in its CSV, and wrong files are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.plots import compare_depth, style
from icl_lab.plots.compare_depth import NAME, Series, figure_of
from icl_lab.store.outputs import RECORD
from tests.doors import Ran, Refused, ran, refused

__all__ = ["ran", "refused"]

GD = {"steps": 3, "mse": [3.0, 2.0, 1.0], "sem": [0.3, 0.2, 0.1]}
TF = {"layers": 2, "mse": [3.1, None], "sem": [0.1, None]}


def written(folder: Path, name: str, values: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(values))
    return path


def test_the_figure_reads_as_the_contract_says() -> None:
    gd, tf = (Series(label, np.ones(2), np.zeros(2)) for label in ("Gradient descent", "Trained Transformer"))
    figure = figure_of(gd, [tf], [], "", False)
    (panel,) = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("GD Steps / Transformer Layers", "Loss")
    green, purple = (line for line in panel.get_lines() if len(line.get_xdata()) == 2)
    assert (green.get_color(), green.get_linestyle()) == (style.DESCENT, "-")
    assert (purple.get_color(), purple.get_linestyle(), purple.get_marker()) == (style.TRANSFORMER, "None", "+")
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {"Gradient descent", "Trained Transformer"}


def test_files_that_hold_no_more_than_they_must(ran: Ran, tmp_path: Path) -> None:
    gd, tf = written(tmp_path, "gd.json", GD), written(tmp_path, "tf.json", TF)
    done = ran("plots.compare_depth", "--gd", gd, "--layerwise", tf, "--out", tmp_path / "figs")
    assert (done.status, done.err) == (0, "")
    files = {path.name for path in (tmp_path / "figs").iterdir()}
    assert files == {RECORD, *(f"{NAME}.{s}" for s in ("csv", "pdf", "png"))}
    rows = (tmp_path / "figs" / f"{NAME}.csv").read_text().splitlines()
    assert rows[0] == "series,x,loss,low,high,statistic"
    assert rows[1] == f"Gradient descent,1,3.0,{3 - 1.96 * 0.3},{3 + 1.96 * 0.3},mean"
    assert rows[4] == f"Trained Transformer,1,3.1,{3.1 - 1.96 * 0.1},{3.1 + 1.96 * 0.1},mean"
    assert rows[5] == "Trained Transformer,2,,,,mean"


def test_the_statistic_asked_for_is_drawn() -> None:
    values = GD | {"median": [2.0, 1.0, 0.5], "trimmed_mean": [2.5, 1.5, 0.9], "trimmed_sem": [0.1] * 3}
    found = {name: compare_depth.series("x", values, name).loss.tolist() for name in compare_depth.STATISTICS}
    assert found == {"mse": values["mse"], "trimmed_mean": values["trimmed_mean"], "median": values["median"]}


def test_one_figure_has_one_statistic_which_its_table_names(ran: Ran, tmp_path: Path) -> None:
    """The mean where one of the files, as of an earlier version, has no other: not half of the curves each."""
    more = {"median": [2.0, 1.0, 0.5], "trimmed_mean": [2.5, 1.5, 0.9], "trimmed_sem": [0.1] * 3}
    gd, tf = written(tmp_path, "gd.json", GD | more), written(tmp_path, "tf.json", TF)
    longer = written(tmp_path, "longer.json", TF | {name: values[:2] for name, values in more.items()})
    for files, words, first in (([tf], "mean", 3.0), ([longer], "mean without the largest .1 %", 2.5)):
        done = ran("plots.compare_depth", "--gd", gd, "--layerwise", *files, "--out", tmp_path / "figs")
        assert (done.status, done.err) == (0, "")
        _, *rows = (tmp_path / "figs" / f"{NAME}.csv").read_text().splitlines()
        assert {row.split(",")[-1] for row in rows} == {words}
        assert float(rows[0].split(",")[2]) == first


@pytest.mark.parametrize(
    ("gd", "tf", "words", "sentence"),
    [
        ({**GD, "steps": [1, 2, 3]}, TF, "", "gd.json is not a file of losses with steps"),
        ({**GD, "steps": 2}, TF, "", "gd.json is not a file of losses with steps"),
        ({**GD, "mse": ["a", "b", "c"]}, TF, "", "gd.json is not a file of losses"),
        (GD, GD, "", "tf.json is not a file of losses with layers"),
        (GD, TF, "--references ridge", "gd.json is not a file of losses with these references"),
        ({**GD, "data": {"dim": 3}}, {**TF, "data": {"dim": 4}}, "", "tf.json is about other tasks than"),
        (GD, TF, "--references best", "references has 'best'; each must be one of ridge"),
        (GD, {**TF, "mse": [None] * 2}, "", "tf.json has nothing to draw: no loss is a finite number"),
        ({**GD, "mse": [None] * 3}, TF, "", "gd.json has nothing to draw: no loss is a finite number"),
        (GD, TF, "--statistic mode", "invalid choice: 'mode'"),
    ],
)
def test_what_cannot_be_drawn(gd: Any, tf: Any, words: str, sentence: str, refused: Refused, tmp_path: Path) -> None:
    files = ["--gd", written(tmp_path, "gd.json", gd), "--layerwise", written(tmp_path, "tf.json", tf)]
    assert sentence in refused("plots.compare_depth", *files, "--out", "figs", *words.split())


def test_nothing_to_draw(refused: Refused, tmp_path: Path) -> None:
    gd = written(tmp_path, "gd.json", GD)
    assert "give --layerwise" in refused("plots.compare_depth", "--gd", gd, "--out", "figs")
    assert "missing.json does not exist" in refused(
        "plots.compare_depth", "--gd", gd, "--layerwise", "missing.json", "--out", "figs"
    )
