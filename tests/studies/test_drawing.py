"""Figures from tables: labels that are computed, and tables of earlier versions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes, json_bytes
from icl_lab.store.readers import StoreError, read_csv, read_json
from icl_lab.studies.drawing import DRAWN, as_drawn, redraw
from icl_lab.studies.figure import Figure, HeatMaps, Plane, of_first_seed, over_seeds
from icl_lab.studies.ledger import WRITER
from icl_lab.studies.study import Study

CURVES = Figure("curves", "Today's title", ("runs",), lambda run, name: {}, "step", "loss", means=False, by_seed=True)
MAPS = HeatMaps("maps", "one layer", ("runs",), lambda runs: [])
STUDY = Study("made", figures=(CURVES, MAPS))
MEAN = {"panel": "", "series": "a", "x": 1.0, "mean": 2.0, "low": 1.0, "high": 3.0, "seeds": 3}
CELL = {"row": "trained", "i": 0, "j": 0, "value": 1.0}
EARLIER = {"title": "As it was", "x_label": "share", "y_label": "loss", "log_x": False, "log_y": False}


def lies(folder: Path, name: str, rows: list[dict[str, Any]], seeds: tuple[int, ...], **labels: Any) -> Path:
    """A table with its bundle; two runs of each seed."""
    table = folder / "made" / f"{name}.csv"
    configs = [{"init_seed": seed} for seed in seeds for _ in range(2)]
    bundle = {"labels": labels, "command": "python -m studies.run made", "configs": configs}
    outputs.write({table: csv_bytes(rows), table.with_suffix(".json"): json_bytes(bundle)}, WRITER)
    return table


def title(table: Path) -> str:
    return str(read_json(table.with_suffix(".json"))["labels"]["title"])


@pytest.mark.parametrize(
    ("seeds", "mean", "first"),
    [
        ((0, 1, 2), "mean over 3 seeds", "seed 0"),
        (tuple(range(8)), "mean over 8 seeds", "seed 0"),
        ((4,), "seed 4", "seed 4"),
    ],
)
def test_what_is_shown_of_which_seeds_is_computed(
    seeds: tuple[int, ...], mean: str, first: str, tmp_path: Path
) -> None:
    maps = lies(tmp_path, "maps", [CELL | {"matrix": matrix} for matrix in (0, 1)], seeds, title="over 99 seeds")
    redraw(STUDY, tmp_path)
    assert title(maps) == f"one layer, {mean}"
    planes = [
        Plane("p", "Title", (), lambda runs: [], "x", "y", "stars", whose) for whose in (over_seeds, of_first_seed)
    ]
    assert [plane.labels(seeds)["title"] for plane in planes] == [f"Title; {mean}", f"Title; {first}"]


def test_a_table_without_a_column_of_today_is_drawn_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The axes of its own labels, and the figures after it too."""
    table = lies(tmp_path, "curves", [MEAN], (0,), **EARLIER)
    maps = lies(tmp_path, "maps", [CELL | {"matrix": matrix} for matrix in (0, 1)], (0, 1), title="earlier")
    redraw(STUDY, tmp_path)
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "curves.csv was written before it had a column seed: it is drawn as it was" in said
    assert "'python -m studies.run made' measures it again" in said
    assert (title(table), title(maps)) == ("As it was", "one layer, mean over 2 seeds")
    assert (table.parent / DRAWN / "curves.png").exists()
    assert [figure.title for figure in as_drawn(STUDY, tmp_path / "made")] == [title(table), title(maps)]


def test_a_table_with_all_columns_has_todays_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = lies(tmp_path, "curves", [MEAN | {"seed": "0", "seeds": 1}], (0,), **EARLIER)
    redraw(STUDY, tmp_path)
    assert (title(table), capsys.readouterr().out) == ("Today's title", "")


def test_a_bundle_of_something_else_is_refused(tmp_path: Path) -> None:
    table = lies(tmp_path, "maps", [CELL | {"matrix": 0}], ())
    with pytest.raises(StoreError, match=r"maps\.json is not what a figure is drawn with"):
        redraw(STUDY, tmp_path)
    assert not [*table.parent.rglob("*.png")]


def test_a_figure_lies_with_the_results_where_a_page_shows_it_and_apart_where_none_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So claims and their figures add no picture to what is kept, until the page names one."""
    for name, matrix in (("shown", 0), ("apart", 1)):
        lies(tmp_path, name, [CELL | {"matrix": matrix} for matrix in (0, 1)], (0,), title="earlier")
    figures = [MAPS._replace(name=name) for name in ("shown", "apart")]
    monkeypatch.setattr("icl_lab.studies.study.figures_shown", lambda page: {"shown"})
    redraw(replace(STUDY, figures=figures), tmp_path)
    pictures = {path.relative_to(tmp_path / "made").as_posix() for path in tmp_path.rglob("*.p[nd][gf]")}
    assert pictures == {"shown.png", "shown.pdf", f"{DRAWN}/apart.png", f"{DRAWN}/apart.pdf"}


def test_a_figure_drawn_again_cuts_intervals_of_another_scale(tmp_path: Path) -> None:
    """At what is possible, in its table; a seed's own value, which rounding puts above 1, is no interval."""
    figure = CURVES._replace(by_seed=False, means=True, scale={"c": "fisher"})
    ends = [("c", 0.7, 1.108), ("c", -1.2, 0.9), ("c", 1.0000001, 1.0000001), ("c", 0.7, 0.95), ("loss", -0.1, 1.2)]
    rows = [MEAN | {"panel": panel, "mean": high, "low": low, "high": high} for panel, low, high in ends]
    table = lies(tmp_path, "curves", rows, (0,), **EARLIER)
    redraw(Study("made", figures=(figure,)), tmp_path)
    written = read_csv(table, ("low", "high"))
    expected = [(0.7, 1.0), (-1.0, 0.9), (1.0000001, 1.0000001), (0.7, 0.95), (0.0, 1.2)]
    assert [*zip(written["low"], written["high"], strict=True)] == expected
