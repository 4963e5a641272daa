"""Trajectories in a plane: order, colours, markers, arrows, and whether nine series can be read in a column."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from icl_lab.plots import style
from icl_lab.plots.style import ORDERED, in_order
from icl_lab.plots.trajectories import ARROWS, DASH, MARKERS, NUMBERS, TEXT, _arrows, _figure, draw_trajectories
from icl_lab.store.atomic import write_csv
from icl_lab.store.readers import StoreError, read_csv
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
        patch.setattr(
            "icl_lab.plots.style.save_both", lambda figure, path: drawn.append((figure, check_readable(figure)))
        )
        draw_trajectories(tmp_path / "plane.csv", LABELS)
    found = drawn[0][0]
    assert [axes.get_title() for axes in found.axes] == ["a", "b"]
    assert [axes.get_ylabel() for axes in found.axes] == ["PC2 (11 %)"] * 2
    assert found.axes[-1].get_xlabel() == "PC1 (24 %)"
    words = style.whole_caption(found)
    assert words == "A title; arrows: order of training, filled: its end"
    names = [text.get_text() for text in found.legends[0].get_texts()]
    assert names == [f"M = {size}" for size in SIZES] + ["dMMSE of the same M", "Ridge (Bayes)"]


def test_a_path_runs_by_its_steps_and_ends_in_its_marker(tmp_path: Path) -> None:
    """Rows in another order than their steps, of two series in turn."""
    rows = [row("A", 2, 5, 6), row("B", 0, 0, 0), row("A", 0, 1, 2), row("A", 1, 3, 4), row("B", 1, 9, 9)]
    (panel,) = figure(rows, tmp_path).axes
    paths, ends = lines(panel, "None"), [*lines(panel, MARKERS[0]), *lines(panel, MARKERS[1])]
    np.testing.assert_array_equal(paths[0].get_xydata(), [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(paths[1].get_xydata(), [[0, 0], [9, 9]])
    assert [end.get_xydata().tolist() for end in ends] == [[[5, 6]], [[9, 9]]]
    assert len(panel.texts) == 2 * len(ARROWS)
    assert panel.get_title() == "a"


def test_colours_and_markers_go_with_the_order_of_series_in_all_panels_and_ridge_is_a_black_star(
    tmp_path: Path,
) -> None:
    rows = [row("A", 0, 0, 0), row("A", 1, 1, 1), row("Ridge", None, 2, 2, "point"), row("B", None, 3, 3, "point")]
    rows += [row("C", 0, 0, 0, panel="b"), row("C", 1, 1, 1, panel="b"), row("A", None, 4, 4, "point", "b")]
    first, second = figure(rows, tmp_path).axes
    a, b, c = ORDERED[0], ORDERED[4], ORDERED[8]
    assert to_rgba(lines(first, "None")[0].get_color()) == to_rgba(a)
    assert to_rgba(lines(second, "None")[0].get_color()) == to_rgba(c)
    found = {
        tuple(line.get_xydata()[0]): line
        for panel in (first, second)
        for line in panel.get_lines()
        if line.get_marker() == "*" or line.get_markerfacecolor() == "none"
    }
    expected = {(2.0, 2.0): ("black", "*"), (3.0, 3.0): (b, MARKERS[1]), (4.0, 4.0): (a, MARKERS[0])}
    assert found.keys() == expected.keys()
    for place, (colour, marker) in expected.items():
        assert (to_rgba(found[place].get_color()), found[place].get_marker()) == (to_rgba(colour), marker)


# sRGB as readers without one of the three kinds of cones see it: Machado, Oliveira and Fernandes 2009, severity 1
VISION = {
    "all": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = XYZ.sum(axis=1)


def lab(colour: str, vision: Any) -> np.ndarray:
    """CIE 1976 L*a*b* of a colour as someone sees it."""
    encoded = np.array(to_rgba(colour)[:3])
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(XYZ @ np.clip(np.asarray(vision) @ linear, 0, 1) / WHITE)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
def test_ten_numbers_of_tasks_have_colours_that_all_readers_can_tell_apart(vision: str) -> None:
    """A difference of 2.3 is just noticeable; ten of viridis come down to 7."""
    colours = in_order([*(f"M = {size}" for size in SIZES), "M = ∞"]).values()
    assert len(colours) == 10
    seen = [lab(colour, VISION[vision]) for colour in colours]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 15


def test_a_number_of_tasks_keeps_its_colour_whether_infinity_is_there_or_not() -> None:
    names = [f"M = {size}" for size in SIZES]
    assert in_order([*names, "M = ∞"]) == in_order(names) | {"M = ∞": "#000000"}
    assert len(set(in_order(map(str, range(12))).values())) == 12


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
