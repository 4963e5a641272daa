"""Curves of a table: means over seeds, seeds one by one, what is cut off and what has diverged."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy import stats

from icl_lab.plots import curve_marks, style
from icl_lab.plots.curves import _figure, draw_curves
from icl_lab.store.atomic import write_csv
from icl_lab.store.readers import StoreError, read_csv
from icl_lab.studies.curve_rows import ABOVE, BELOW, Curve, curve_rows
from icl_lab.studies.figure import Figure as StudyFigure
from tests.plots.readable import check_readable

LABELS = {"title": "A title", "x_label": "GD Steps / Transformer Layers", "y_label": "Loss", "log_x": False}
LABELS |= {"log_y": False}
RUNS = [
    {("", "Gradient descent"): ([1, 2], [1.0, 0.5]), ("", "Trained Transformer"): ([1, 2], [1.1 + seed, 0.6])}
    for seed in range(3)
]


def rows_of(runs: Sequence[Any], **how: Any) -> list[dict[str, Any]]:
    """The rows of the curves of seeds 0, 1, ..."""
    return curve_rows(enumerate(runs), **how)


def drawn(rows: list[dict[str, Any]], folder: Path, **labels: Any) -> Figure:
    """The figure of a table, in the style in which it is saved."""
    write_csv(folder / "fig.csv", rows)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "icl_lab.plots.style.save_both", lambda figure, path: found.append((figure, check_readable(figure)))
        )
        draw_curves(folder / "fig.csv", LABELS | labels)
    return found[0][0]


def caption(figure: Figure) -> str:
    return style.whole_caption(figure)


def test_rows_are_means_with_t_intervals_over_runs() -> None:
    found = {(row["series"], row["x"]): row for row in rows_of(RUNS)}
    assert found["Gradient descent", 1]["low"] == found["Gradient descent", 1]["high"] == 1.0
    row, values = found["Trained Transformer", 1], np.array([1.1, 2.1, 3.1])
    ends = stats.t.interval(0.9, 2, values.mean(), values.std(ddof=1) / np.sqrt(3))
    assert (row["low"], row["high"]) == pytest.approx(tuple(ends))
    assert row["seeds"] == 3


def test_on_a_logarithmic_axis_means_and_intervals_are_those_of_logarithms(tmp_path: Path) -> None:
    values = np.array([1.0, 10.0, 1000.0])
    runs = [{(panel, "a"): ([1, 2], [value, value - 1]) for panel in ("loss", "cosine")} for value in values]
    rows = rows_of(runs, scale_of=lambda panel: {"loss": "log", "cosine": "linear"}[panel])
    found = {(row["panel"], row["x"]): row for row in rows}
    ends = stats.t.interval(0.9, 2, np.log(values).mean(), np.log(values).std(ddof=1) / np.sqrt(3))
    assert found["loss", 1]["mean"] == pytest.approx(stats.gmean(values))
    assert (found["loss", 1]["low"], found["loss", 1]["high"]) == pytest.approx(tuple(np.exp(ends)))
    assert found["cosine", 1]["mean"] == pytest.approx(values.mean())
    assert [row["average"] for row in found.values()] == ["geometric", "", "", ""]  # 0 has no logarithm
    assert (found["loss", 2]["mean"], found["loss", 2]["low"]) == (pytest.approx((values - 1).mean()), 0)
    assert found["cosine", 2]["low"] < 0
    written = caption(drawn(rows, tmp_path, log_y=("loss",)))
    assert written == "A title; means of 3 seeds, 95 % intervals; geometric on log axes"


def test_means_and_intervals_are_on_the_scale_of_their_panel() -> None:
    """Cosines .6, .9 and .999 on Fisher's: linear, their interval would reach 1.35; so would accuracies'."""
    values = np.array([0.6, 0.9, 0.999])
    runs = [{(panel, "a"): ([1], [value]) for panel in ("cosine", "accuracy", "loss")} for value in values]
    figure = StudyFigure(
        "f", "t", (), lambda run, name: {}, "x", "y", scale={"cosine": "fisher", "accuracy": "fraction"}
    )
    found = {row["panel"]: row for row in rows_of(runs, scale_of=figure.scale_of)}
    z = stats.t.interval(0.9, 2, np.arctanh(values).mean(), np.arctanh(values).std(ddof=1) / np.sqrt(3))
    assert found["cosine"]["mean"] == pytest.approx(np.tanh(np.arctanh(values).mean()))
    assert (found["cosine"]["low"], found["cosine"]["high"]) == pytest.approx(tuple(np.tanh(z)))
    linear = stats.t.interval(0.9, 2, values.mean(), values.std(ddof=1) / np.sqrt(3))
    assert (found["accuracy"]["low"], found["accuracy"]["high"]) == (pytest.approx(linear[0]), 1)
    assert found["loss"]["high"] == pytest.approx(linear[1])
    assert figure._replace(log_y=("loss",)).scale_of("loss") == "log"
    with pytest.raises(ValueError, match="not possible on the scale 'nonnegative'"):
        rows_of([{("loss", "a"): ([1], [-0.1])}], scale_of=figure.scale_of)


def test_a_table_that_says_its_level_is_drawn_with_it(tmp_path: Path) -> None:
    assert "95 % intervals" in caption(drawn(rows_of(RUNS), tmp_path))  # as earlier tables have
    assert "90 % intervals" in caption(drawn(rows_of(RUNS), tmp_path, level=0.9))
    assert "90 % exact intervals" in caption(drawn(rows_of(RUNS), tmp_path, level=0.9, interval="Clopper-Pearson"))


def test_two_seeds_have_no_interval(tmp_path: Path) -> None:
    rows = rows_of(RUNS[:2])
    assert all(row["low"] == row["mean"] == row["high"] for row in rows)
    assert caption(drawn(rows, tmp_path)) == "A title; means of 2 seeds"


def test_a_figure_is_drawn_beside_its_table(tmp_path: Path) -> None:
    source = tmp_path / "fig.csv"
    write_csv(source, rows_of(RUNS))
    assert [path.name for path in draw_curves(source, LABELS)] == ["fig.png", "fig.pdf"]
    panel = _figure(read_csv(source, ("x", "mean", "low", "high", "seeds"), ("series",)).assign(panel=""), LABELS).axes[
        0
    ]
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("GD Steps / Transformer Layers", "Loss")
    descent, transformer = panel.get_lines()
    assert (descent.get_label(), descent.get_linestyle(), descent.get_marker()) == ("Gradient descent", "-", "None")
    assert (transformer.get_label(), transformer.get_linestyle(), transformer.get_marker()) == (
        "Trained Transformer",
        "None",
        "+",
    )
    np.testing.assert_allclose(transformer.get_ydata(), [2.1, 0.6])


# Two seeds learn, one does not: a mean of .5 is no run's.
LEARNT_OR_NOT = [{("", "a"): ([0, 10], [1.0, end])} for end in (0.25, 0.25, 1.0)]


def test_rows_by_seed_keep_every_seed_and_no_mean_of_learnt_and_stuck() -> None:
    rows = rows_of(LEARNT_OR_NOT, means=False, by_seed=True)
    assert [(row["seed"], row["mean"]) for row in rows if row["x"] == 10] == [("0", 0.25), ("1", 0.25), ("2", 1.0)]
    assert all(row["low"] == row["mean"] == row["high"] and row["seeds"] == 1 for row in rows)
    both = [row for row in rows_of(LEARNT_OR_NOT, by_seed=True) if row["x"] == 10]
    assert [(row["seed"], row["mean"], row["seeds"]) for row in both[:2]] == [("", 0.5, 3), ("0", 0.25, 1)]
    assert len(both) == 4


def test_tables_of_means_have_the_columns_that_they_always_had() -> None:
    assert {tuple(row) for row in rows_of(RUNS)} == {("panel", "series", "x", "mean", "low", "high", "seeds")}


def test_seeds_are_thin_lines_of_their_series_colour(tmp_path: Path) -> None:
    figure = drawn(rows_of(LEARNT_OR_NOT, means=False, by_seed=True), tmp_path, x_label="training step")
    lines = figure.axes[0].get_lines()
    assert sorted(line.get_ydata()[-1] for line in lines) == [0.25, 0.25, 1.0]
    assert {to_hex(line.get_color()) for line in lines} == {style.SERIES[0].lower()}
    assert max(line.get_linewidth() for line in lines) < style.COMPACT["lines.linewidth"]
    assert caption(figure) == "A title; 3 seeds"


CENSORED = [
    {("", "t"): Curve([2, 4, 8], [5.0, turn, 100.0], [BELOW, "" if turn < 100 else ABOVE, ABOVE])}
    for turn in (20.0, 40.0, 100.0)
]


def test_a_point_of_which_a_seed_is_censored_has_no_mean_and_that_seed_a_row() -> None:
    found = [(row["x"], row["mean"], row["seeds"], row["seed"], row["censored"]) for row in rows_of(CENSORED)]
    below = [(2, 5.0, 1, str(seed), BELOW) for seed in range(3)]
    assert found == [
        *below,
        (4, 100.0, 1, "2", ABOVE),
        *((8, 100.0, 1, str(seed), ABOVE) for seed in range(3)),
    ]


def test_censored_seeds_are_open_dots_with_arrows_and_their_number(tmp_path: Path) -> None:
    figure = drawn(rows_of(CENSORED), tmp_path, log_x=True, log_y=True)
    (panel,) = figure.axes
    dots = [line for line in panel.get_lines() if line.get_markerfacecolor() == "white"]
    assert [line.get_ydata()[0] for line in dots] == [5, 100, 100]
    assert [(text.get_text(), text.xyann[1] > 0) for text in panel.texts] == [("3", False), ("1", True), ("3", True)]
    low, high = panel.get_ylim()
    assert low < 5 < 100 < high
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["t", curve_marks.CENSORED]
    assert "means" not in caption(figure)


DIVERGING = [{("", "a"): ([1, 2, 3], [1.0, middle, 1e6]), ("", "b"): ([1], [2.0])} for middle in (2.0, 3.0, np.nan)]


def test_a_point_of_which_a_seed_has_diverged_has_no_mean_and_says_how_many() -> None:
    rows = rows_of(DIVERGING, limit=100.0)
    found = {(row["series"], row["x"]): (row["mean"], row["seeds"], row["diverged"]) for row in rows}
    assert found == {("a", 1): (1, 3, 0), ("a", 2): (None, 3, 1), ("a", 3): (None, 3, 3), ("b", 1): (2, 3, 0)}
    seeds = [(row["x"], row["seed"]) for row in rows_of(DIVERGING, limit=100.0, by_seed=True) if row["seed"]]
    assert seeds == [(1, "0"), (1, "1"), (1, "2"), (2, "0"), (2, "1"), *((1, seed) for seed in "012")]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_an_infinite_value_leaves_no_mean_whatever_the_limit(scale: str) -> None:
    (row,) = rows_of([{("", "a"): ([1], [value])} for value in (1.0, 2.0, np.inf)], scale_of=lambda panel: scale)
    assert (row["mean"], row["seeds"], row["diverged"]) == (None, 3, 1)


def test_what_has_diverged_is_crossed_at_the_upper_edge_above_all_ticks(tmp_path: Path) -> None:
    figure = drawn(rows_of(DIVERGING, limit=100.0), tmp_path)
    (panel,) = figure.axes
    (crosses,) = [line for line in panel.get_lines() if line.get_marker() == "x"]
    assert crosses.get_xdata().tolist() == [2, 3]
    assert [text.get_text() for text in panel.texts] == ["1 of 3", "3 of 3"]
    strip = 1 - curve_marks.ROW
    place = panel.transAxes.inverted().transform(crosses.get_transform().transform(crosses.get_xydata()))[:, 1]
    assert strip < place.min() <= place.max() < 1
    assert max(panel.get_yticks()) <= panel.get_ylim()[1] * strip
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", curve_marks.DIVERGED]


def test_numbers_of_crosses_without_room_are_one_range(tmp_path: Path) -> None:
    runs = [{("", "a"): (range(50), [1.0] * (20 + seed) + [1e6] * (30 - seed))} for seed in range(3)]
    figure = drawn(rows_of(runs, limit=100.0), tmp_path)
    assert [text.get_text() for text in figure.axes[0].texts] == ["1 to 3 of 3"]


def test_a_logarithmic_axis_may_be_one_panels(tmp_path: Path) -> None:
    runs = [{("loss", "a"): ([0, 1], [0.3, 8.0]), ("cosine", "a"): ([0, 1], [0.0, 1.0])}]
    panels = drawn(rows_of(runs), tmp_path, log_y=["loss"]).axes
    assert [panel.get_yscale() for panel in panels] == ["log", "linear"]


def test_a_logarithmic_axis_shows_intervals_as_far_as_twice_the_means(tmp_path: Path) -> None:
    near = [{("", "GD++"): ([1.0, 2.0], [1.0 + 0.1 * seed, 2.0 + 0.3 * seed])} for seed in range(3)]
    rows = rows_of(near)
    low, high = drawn(rows, tmp_path, log_y=True).axes[0].get_ylim()
    assert low < min(row["low"] for row in rows)
    assert max(row["high"] for row in rows) < high
    far = [{("", "GD++"): ([1.0, 2.0], [0.1 + 9.9 * seed, 5.0])} for seed in range(3)]  # 10 [-15, 35], and 5
    low, high = drawn(rows_of(far), tmp_path, log_y=True).axes[0].get_ylim()
    assert 1 < low < 5
    assert 20 < high < 35


def test_tokens_have_colours_that_stand_for_nothing_else(tmp_path: Path) -> None:
    names = ("Trained Transformer", "Gradient descent", "own token", "next token", "other token")
    figure = drawn(rows_of([{("", name): ([0, 1], [1.0, 2.0]) for name in names}]), tmp_path, x_label="training step")
    assert len({to_hex(line.get_color()) for line in figure.axes[0].get_lines()}) == 5


def test_more_series_than_colours_are_told_apart_by_dashes(tmp_path: Path) -> None:
    names = [f"class {k}" for k in range(len(style.SERIES) + 1)]
    figure = drawn(rows_of([{("", name): ([0, 1], [1.0, 2.0]) for name in names}]), tmp_path)
    lines = figure.axes[0].get_lines()
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(names)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"seed": "first"}, "column seed"), ({"diverged": "yes"}, "column diverged"), ({"censored": "left"}, "none of")],
)
def test_marks_of_something_else_are_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "fig.csv", [row | changed for row in rows_of(RUNS)])
    with pytest.raises(StoreError, match=message):
        draw_curves(tmp_path / "fig.csv", LABELS)
