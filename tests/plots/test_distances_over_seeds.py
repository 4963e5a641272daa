"""Distances over seeds as figures: cells and lines are the table's numbers, and nothing leaves the image."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from icl_lab.plots import style
from icl_lab.plots.algorithm_distance import LABELS, NEAREST, draw_matrices, draw_over_training
from icl_lab.store import StoreError
from icl_lab.store.atomic import write_csv

NAMES = ("tf", "gd", "gd_plus_plus")
COSINES = np.array([[1.0, 0.95, 0.998], [0.95, 1.0, 0.9], [0.998, 0.9, 1.0]])
DIFFERENCES = np.array([[0.0, 0.25, 0.0004], [0.25, 0.0, 0.1], [0.0004, 0.1, 0.0]])
RATIOS = np.array([[1.0, 0.5, 250.0], [2.0, 1.0, 4.0], [0.004, 0.25, 1.0]])
MATRICES = {"cosine": COSINES, "difference": DIFFERENCES, "loss_ratio": RATIOS}
SPREAD = {"low": 0.9, "high": 1.0, "seeds": 8}


def matrices() -> list[dict[str, object]]:
    return [
        {"row": row, "column": column, "measure": measure, "mean": values[i, j]} | SPREAD
        for measure, values in MATRICES.items()
        for i, row in enumerate(NAMES)
        for j, column in enumerate(NAMES)
    ]


def curves(names: tuple[str, ...] = NAMES[1:]) -> list[dict[str, object]]:
    means = {0: -0.01, 500: 0.99, 1000: 1.0}
    cosines = [
        {"algorithm": name, "step": step, "measure": "cosine", "mean": mean, "low": mean - 0.005}
        | {"high": min(1.0, mean + 0.005), "seeds": 8}
        for name in names
        for step, mean in reversed(means.items())
    ]
    others = [
        {"algorithm": name, "step": step, "measure": measure, "mean": mean, "low": mean / 2, "high": mean * 2}
        | {"seeds": 8}
        for measure, of_steps in (("difference", (0.5, 0.05, 0.01)), ("loss_ratio", (3.0, 1.1, 0.9)))
        for name in names
        for step, mean in zip(means, of_steps, strict=True)
    ]
    return cosines + others


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


def cells(panel: Axes, row: int) -> list[str]:
    shown = {text.get_position(): text.get_text() for text in panel.texts}
    return [shown[column, row] for column in range(len(NAMES))]


def test_cells_are_the_means(drawn: list[Figure], tmp_path: Path) -> None:
    """A panel a measure: cosines, mean prediction differences, ratios of losses."""
    write_csv(tmp_path / "table.csv", matrices())
    draw_matrices(tmp_path / "table.csv", "Two layers")
    cosines, differences, ratios = drawn[0].axes
    assert (cells(cosines, 0), cells(cosines, 2)) == (["1.000", ".950", ".998"], [".998", ".900", "1.000"])
    assert (cells(differences, 0), cells(differences, 1)) == ([".00", ".25", "<.001"], [".25", ".00", ".10"])
    assert (cells(ratios, 0), cells(ratios, 2)) == (["1", ".5", "250"], [".004", ".25", "1"])
    titles = [panel.get_title() for panel in drawn[0].axes]
    assert titles == ["cosine of sensitivities", "mean |prediction difference|", "loss of the row / loss of the column"]
    assert [label.get_text() for label in cosines.get_yticklabels()] == [
        "transformer",
        "GD, one step size",
        "GD++, best",
    ]
    assert "Two layers; means over 8 seeds" in style.whole_caption(drawn[0])
    assert texts_inside(drawn[0])


def test_a_table_of_an_earlier_version_is_of_cosines(drawn: list[Figure], tmp_path: Path) -> None:
    """It has no column that names a measure."""
    rows = [row for row in matrices() if row.pop("measure") == "cosine"]
    write_csv(tmp_path / "table.csv", rows)
    draw_matrices(tmp_path / "table.csv", "Two layers")
    (panel,) = drawn[0].axes
    assert cells(panel, 0) == ["1.000", ".950", ".998"]


def test_lines_are_means_and_bands_their_intervals(drawn: list[Figure], tmp_path: Path) -> None:
    """In the order of training; a cosine of 1 is at the top."""
    write_csv(tmp_path / "table.csv", curves())
    draw_over_training(tmp_path / "table.csv", "Two layers")
    cosines, differences, ratios = drawn[0].axes
    lines = {str(line.get_label()): line for line in cosines.get_lines()}
    assert {*lines} == {"GD, one step size", "GD++, best"}
    np.testing.assert_array_equal(lines["GD++, best"].get_xdata(), [0, 500, 1000])
    np.testing.assert_allclose(np.asarray(lines["GD++, best"].get_ydata()), [1.01, 0.01, NEAREST])
    assert band(cosines, 500) == (pytest.approx(0.005), pytest.approx(0.015))
    assert cosines.yaxis_inverted()
    for panel, at_500, label in ((differences, 0.05, "prediction difference"), (ratios, 1.1, "loss")):
        assert panel.get_yscale() == "log"
        assert label in panel.get_ylabel()
        assert panel.get_lines()[0].get_ydata()[1] == at_500
        assert band(panel, 500) == (pytest.approx(at_500 / 2), pytest.approx(at_500 * 2))
    assert "means over 8 seeds, 95 % intervals" in style.whole_caption(drawn[0])


def band(panel: Axes, step: int) -> tuple[float, float]:
    """The ends of the first line's interval."""
    ends = panel.collections[0].get_paths()[0].vertices
    at = ends[np.isclose(ends[:, 0], step), 1]
    return at.min(), at.max()


def test_the_legend_of_all_algorithms_stays_inside(drawn: list[Figure], tmp_path: Path) -> None:
    write_csv(tmp_path / "table.csv", curves((*list(LABELS)[1:], "ridge")))
    draw_over_training(tmp_path / "table.csv", "Two layers")
    assert texts_inside(drawn[0])


def test_names_of_rows_are_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the image is saved: drawn once."""
    names = [*list(LABELS)[:7], "newton_schulz", "ridge"]
    table = [
        {"row": row, "column": column, "measure": measure, "mean": 0.5} | SPREAD
        for measure in MATRICES
        for row in names
        for column in names
    ]
    write_csv(tmp_path / "table.csv", table)
    left: list[float] = []
    rendered = style.rendered

    def first(figure: Figure, suffix: str) -> bytes:
        image = rendered(figure, suffix)
        if not left:
            left.extend(label.get_window_extent().x0 for axes in figure.axes for label in axes.get_yticklabels())
        return image

    monkeypatch.setattr(style, "rendered", first)
    draw_matrices(tmp_path / "table.csv", "Two layers")
    assert len(left) == 3 * len(names)
    assert min(left) >= 0


def test_a_table_with_a_pair_twice_is_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "table.csv", [*matrices(), matrices()[1]])
    with pytest.raises(StoreError, match="twice"):
        draw_matrices(tmp_path / "table.csv", "Two layers")
