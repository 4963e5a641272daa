"""Distances over seeds as figures: cells and lines are the table's numbers, and nothing leaves the image."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from plots import style
from plots.algorithm_distance import LABELS, NEAREST
from plots.distances_over_seeds import draw_matrix, draw_nearest
from store import StoreError
from store.atomic import write_csv

NAMES = ("tf", "gd", "gd_plus_plus")
COSINES = np.array([[1.0, 0.95, 0.998], [0.95, 1.0, 0.9], [0.998, 0.9, 1.0]])
SPREAD = {"low": 0.9, "high": 1.0, "seeds": 8}


def matrix() -> list[dict[str, object]]:
    return [
        {"row": row, "column": column, "mean": COSINES[i, j]} | SPREAD
        for i, row in enumerate(NAMES)
        for j, column in enumerate(NAMES)
    ]


def nearest(names: tuple[str, ...] = NAMES[1:]) -> list[dict[str, object]]:
    means = {0: -0.01, 500: 0.99, 1000: 1.0}
    return [
        {"algorithm": name, "step": step, "mean": mean, "low": mean - 0.005, "high": min(1.0, mean + 0.005), "seeds": 8}
        for name in names
        for step, mean in reversed(means.items())
    ]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    figures: list[Figure] = []
    monkeypatch.setattr(style, "save_both", lambda figure, source: figures.append(figure) or [source])
    return figures


def texts_inside(figure: Figure) -> bool:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [text.get_window_extent() for legend in figure.legends for text in legend.get_texts()]
    boxes += [text.get_window_extent() for axes in figure.axes for text in (*axes.get_yticklabels(), axes.title)]
    return all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 for box in boxes)


def test_cells_are_the_means(drawn: list[Figure], tmp_path: Path) -> None:
    write_csv(tmp_path / "table.csv", matrix())
    draw_matrix(tmp_path / "table.csv", "Two layers")
    (panel,) = drawn[0].axes
    cells = {text.get_position(): text.get_text() for text in panel.texts}
    assert [cells[column, 0] for column in range(3)] == ["1.000", ".950", ".998"]
    assert [cells[column, 2] for column in range(3)] == [".998", ".900", "1.000"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["transformer", "GD, one step size", "GD++, best"]
    assert "Two layers; means over 8 seeds" in drawn[0].get_supxlabel()
    assert texts_inside(drawn[0])


def test_lines_are_means_and_bands_their_intervals(drawn: list[Figure], tmp_path: Path) -> None:
    """In the order of training; a cosine of 1 is at the top."""
    write_csv(tmp_path / "table.csv", nearest())
    draw_nearest(tmp_path / "table.csv", "Two layers")
    (panel,) = drawn[0].axes
    lines = {str(line.get_label()): line for line in panel.get_lines()}
    assert {*lines} == {"GD, one step size", "GD++, best"}
    np.testing.assert_array_equal(lines["GD++, best"].get_xdata(), [0, 500, 1000])
    np.testing.assert_allclose(np.asarray(lines["GD++, best"].get_ydata()), [1.01, 0.01, NEAREST])
    for band in panel.collections:
        ends = band.get_paths()[0].vertices
        at = ends[np.isclose(ends[:, 0], 500), 1]
        assert (at.min(), at.max()) == (pytest.approx(0.005), pytest.approx(0.015))
    assert panel.yaxis_inverted()
    assert "means over 8 seeds, 95 % intervals" in drawn[0].get_supxlabel().replace("\n", " ").replace("\xa0", " ")


def test_the_legend_of_all_algorithms_stays_inside(drawn: list[Figure], tmp_path: Path) -> None:
    write_csv(tmp_path / "table.csv", nearest((*list(LABELS)[1:], "ridge")))
    draw_nearest(tmp_path / "table.csv", "Two layers")
    assert texts_inside(drawn[0])


def test_a_table_with_a_pair_twice_is_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "table.csv", [*matrix(), matrix()[1]])
    with pytest.raises(StoreError, match="twice"):
        draw_matrix(tmp_path / "table.csv", "Two layers")
