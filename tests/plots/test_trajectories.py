"""Trajectories in a plane: order, colours, arrows, stars, and whether nine series can be read in a column."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgba

from plots import style
from plots.trajectories import ARROWS, DASH, NUMBERS, TEXT, _arrows, _figure, draw_trajectories
from store.atomic import write_csv
from store.readers import StoreError, read_csv
from tests.plots.readable import check_readable

LABELS = {"title": "A title", "x_label": "PC1 (24 %)", "y_label": "PC2 (11 %)"}
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def row(series: str, step: float | None, x: float, y: float, kind: str = "path", panel: str = "a") -> dict[str, Any]:
    return {"panel": panel, "series": series, "step": step, "x": x, "y": y, "kind": kind}


def table(panels: tuple[str, ...] = ("a", "b")) -> list[dict[str, Any]]:
    """Nine paths of thirty checkpoints in each panel with their dMMSE, and ridge."""
    rows = []
    for panel in panels:
        for number, size in enumerate(SIZES):
            x = np.linspace(0, 1, 30)
            y = np.sin(3 * x) * (number - 4)
            rows += [row(f"M = {size}", 100 * t, x[t], y[t], panel=panel) for t in range(30)]
            rows.append(row(f"M = {size}", None, 1.1, y[-1], "point", panel))
        rows.append(row("Ridge (Bayes)", None, 1.1, 3.0, "point", panel))
    return rows


def figure(rows: list[dict[str, Any]], folder: Path, **labels: str):
    source = folder / "plane.csv"
    write_csv(source, rows)
    return _figure(read_csv(source, NUMBERS, TEXT), LABELS | labels)


def lines(panel, marker: str) -> list:
    return [line for line in panel.get_lines() if line.get_marker() == marker]


def test_both_files_are_drawn_beside_the_table_and_again_to_the_byte(tmp_path: Path) -> None:
    source = tmp_path / "plane.csv"
    write_csv(source, table())
    paths = draw_trajectories(source, LABELS)
    assert paths == [tmp_path / "plane.png", tmp_path / "plane.pdf"]
    first = [path.read_bytes() for path in paths]
    assert (first[0][:4], first[1][:4]) == (b"\x89PNG", b"%PDF")
    assert [path.read_bytes() for path in draw_trajectories(source, LABELS)] == first


def test_nine_series_can_be_read_in_a_column(tmp_path: Path) -> None:
    write_csv(tmp_path / "plane.csv", table())
    drawn = []
    with pytest.MonkeyPatch.context() as patch:  # in the style in which it is drawn
        patch.setattr("plots.style.save_both", lambda figure, path: drawn.append((figure, check_readable(figure))))
        draw_trajectories(tmp_path / "plane.csv", LABELS)
    found = drawn[0][0]
    assert [axes.get_title() for axes in found.axes] == ["a", "b"]
    assert [axes.get_ylabel() for axes in found.axes] == ["PC2 (11 %)"] * 2
    assert found.axes[-1].get_xlabel() == "PC1 (24 %)"
    words = " ".join(found.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ").split())
    assert words == "A title; arrows: order of training, dots: its end"
    names = [text.get_text() for text in found.legends[0].get_texts()]
    assert names == [f"M = {size}" for size in SIZES] + ["dMMSE of the same M", "Ridge (Bayes)"]


def test_a_path_runs_by_its_steps_and_ends_in_a_dot(tmp_path: Path) -> None:
    """Rows in another order than their steps, of two series in turn."""
    rows = [row("A", 2, 5, 6), row("B", 0, 0, 0), row("A", 0, 1, 2), row("A", 1, 3, 4), row("B", 1, 9, 9)]
    (panel,) = figure(rows, tmp_path).axes
    paths, dots = lines(panel, "None"), lines(panel, "o")
    np.testing.assert_array_equal(paths[0].get_xydata(), [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(paths[1].get_xydata(), [[0, 0], [9, 9]])
    assert [dot.get_xydata().tolist() for dot in dots] == [[[5, 6]], [[9, 9]]]
    assert len(panel.texts) == 2 * len(ARROWS)
    assert panel.get_title() == "a"


def test_colours_go_with_the_order_of_series_in_all_panels_and_ridge_is_a_black_star(tmp_path: Path) -> None:
    rows = [row("A", 0, 0, 0), row("A", 1, 1, 1), row("Ridge", None, 2, 2, "point"), row("B", None, 3, 3, "point")]
    rows += [row("C", 0, 0, 0, panel="b"), row("C", 1, 1, 1, panel="b"), row("A", None, 4, 4, "point", "b")]
    first, second = figure(rows, tmp_path).axes
    a, b, c = colormaps["viridis"]([0.0, style.LIGHTEST / 2, style.LIGHTEST])
    assert to_rgba(lines(first, "None")[0].get_color()) == pytest.approx(a)
    assert to_rgba(lines(second, "None")[0].get_color()) == pytest.approx(c)
    stars = {tuple(line.get_xydata()[0]): line for panel in (first, second) for line in lines(panel, "*")}
    expected = {(2.0, 2.0): (0, 0, 0, 1), (3.0, 3.0): b, (4.0, 4.0): a}
    assert stars.keys() == expected.keys()
    for place, colour in expected.items():
        assert to_rgba(stars[place].get_color()) == pytest.approx(colour)
    assert stars[2.0, 2.0].get_markersize() > stars[3.0, 3.0].get_markersize()


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], ["A"]),
        (["ridge"], ["A", "ridge"]),
        (["A"], ["A", "its limit"]),
        (["ridge", "A"], ["A", "its limit", "ridge"]),
    ],
)
def test_the_legend_names_what_is_there(points: list[str], expected: list[str], tmp_path: Path) -> None:
    rows = [row("A", 0, 0, 0), row("A", 1, 1, 1)] + [row(name, None, 2, 2, "point") for name in points]
    found = figure(rows, tmp_path, points="its limit")
    assert [text.get_text() for text in found.legends[0].get_texts()] == expected


def test_arrows_lie_on_the_path_and_point_along_it() -> None:
    """On an L of two sides of equal length on its scaled axes, whose corner is at half of it; rests do not count."""
    path = np.array([[0, 0], [10, 0], [10, 0], [10, 0.1]])
    heads = {share: [20 * share, 0] if share < 0.5 else [10, 0.2 * share - 0.1] for share in ARROWS}
    ways = {share: [20 * DASH, 0] if share < 0.5 else [0, 0.2 * DASH] for share in ARROWS}
    for (tail, head), share in zip(_arrows(path), ARROWS, strict=True):
        np.testing.assert_allclose(head, heads[share], atol=1e-12)
        np.testing.assert_allclose(head - tail, ways[share], atol=1e-12)


@pytest.mark.parametrize("path", [[[1.0, 2.0]], [[1.0, 2.0]] * 3])
def test_what_stands_still_has_no_arrows(path: list, tmp_path: Path) -> None:
    assert len(_arrows(np.array(path))) == 0
    (panel,) = figure([row("A", step, x, y) for step, (x, y) in enumerate(path)], tmp_path).axes
    assert len(panel.texts) == 0
    assert lines(panel, "o")[0].get_xydata().tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "line"}, "neither of path, point"),
        ({"x": None}, "without x or y"),
        ({"step": None}, "checkpoint without a step"),
        ({"y": "high"}, "column y does not hold numbers"),
    ],
)
def test_a_table_of_something_else_is_refused(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "plane.csv", [row("A", 0, 0, 0), row("A", 1, 1, 1) | changed])
    with pytest.raises(StoreError, match=message):
        draw_trajectories(tmp_path / "plane.csv", LABELS)
    assert [path.name for path in tmp_path.iterdir()] == ["plane.csv"]
