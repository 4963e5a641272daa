"""The matrix as a figure: its cells and lines are the table's numbers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from icl_lab.plots import style
from icl_lab.plots.algorithm_distance import draw_algorithm_distance
from icl_lab.plots.run_figures import draw_run
from icl_lab.store import StoreError, layout
from icl_lab.store.atomic import write_csv
from tests.plots.readable import _overlap, shown
from tests.runners.tiny import copied

NAMES = ("tf", "gd", "gd_plus_plus", "ridge", "zero")
COSINE = {("tf", "gd"): 0.952, ("tf", "gd_plus_plus"): 0.9984, ("tf", "ridge"): -0.25, ("gd", "gd_plus_plus"): 0.9}


def rows(steps: tuple[int, ...] = ()) -> list[dict[str, object]]:
    """A table of a small matrix, with cosines at these steps."""
    nan = float("nan")
    found: list[dict[str, object]] = [
        {"step": str(step), "row": "tf", "column": name, "measure": "cosine", "value": value}
        for step, values in zip(steps, ((-0.01, 0.02), (0.99, 0.95), (0.95, 0.998)), strict=False)
        for name, value in zip(("gd", "gd_plus_plus"), values, strict=True)
    ]
    found += [
        {"step": str(step), "row": "tf", "column": name, "measure": measure, "value": value}
        for step, value in zip(steps, (0.5, 0.05, 0.04), strict=False)
        for measure in ("difference", "loss_ratio")
        for name in ("zero", "gd", "gd_plus_plus")
    ]
    found += [{"step": str(step), "row": "tf", "column": "", "measure": "loss", "value": 0.3} for step in steps]
    for row in NAMES:
        for column in NAMES:
            same, pair = row == column, COSINE.get((row, column), COSINE.get((column, row), nan))
            values = {"cosine": 1.0 if same else pair, "difference": 0.0 if same else 0.125, "loss_ratio": 2e-5}
            found += [
                {"step": "final", "row": row, "column": column, "measure": name, "value": value}
                for name, value in values.items()
            ]
    return [row | {"value_se": 0.001, "reason": ""} for row in found]


@pytest.fixture
def run(lsa1_run: Path, tmp_path: Path) -> Path:
    out = copied(lsa1_run, tmp_path / "run")
    shutil.rmtree(out / layout.FIGURES)
    return out


def figures(run: Path, monkeypatch: pytest.MonkeyPatch, steps: tuple[int, ...] = ()) -> dict[str, Figure]:
    """The figures of a table by name, before they are saved."""
    drawn: dict[str, Figure] = {}
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.update({path.stem: figure}) or path)
    write_csv(run / layout.ALGORITHM_DISTANCE, rows(steps))
    draw_algorithm_distance(run)
    return drawn


def test_cells_are_the_tables_numbers(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = figures(run, monkeypatch)
    assert [*drawn] == ["algorithm_distance"]
    cosine, difference, ratio = drawn["algorithm_distance"].axes
    cells = {text.get_position(): text.get_text() for text in cosine.texts}
    assert len(cells) == 25
    assert [cells[column, 0] for column in range(5)] == ["1.000", ".952", ".998", "-.250", "-"]
    assert (cells[1, 2], cells[2, 1]) == (".900", ".900")
    assert {text.get_text() for text in difference.texts} == {".00", ".12"}
    assert {text.get_text() for text in ratio.texts} == {"<.001"}
    labels = ["transformer", "GD, one step size", "GD++, best", "ridge", "zero"]
    assert [label.get_text() for label in cosine.get_yticklabels()] == labels
    assert [label.get_text() for label in ratio.get_xticklabels()] == labels


def test_numbers_stand_out_from_their_cells(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the contrast of WCAG 2, at least 3 to 1."""

    def luminance(colour: np.ndarray) -> float:
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    for axes in figures(run, monkeypatch)["algorithm_distance"].axes:
        (image,) = axes.get_images()
        pixels = image.to_rgba(image.get_array())
        for text in axes.texts:
            column, row = text.get_position()
            below = luminance(pixels[int(row), int(column), :3]) if text.get_text() != "-" else 1.0
            above = {"white": 1.0, "black": 0.0}[str(text.get_color())]
            assert (max(below, above) + 0.05) / (min(below, above) + 0.05) > 3, text


def test_no_word_lies_on_another(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for figure in figures(run, monkeypatch, (0, 500, 1000)).values():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        texts = [text for text in shown(figure) if not text.get_rotation()]
        boxes = [text.get_window_extent(canvas.get_renderer()) for text in texts]
        for number, box in enumerate(boxes):
            assert not any(_overlap(box, other) for other in boxes[number + 1 :]), texts[number]


def test_lines_are_the_cosines_over_training(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1 - cosine on a logarithmic axis whose ticks are cosines, 1 at the top."""
    drawn = figures(run, monkeypatch, (0, 500, 1000))
    panel = drawn["algorithms_over_training"].axes[0]
    lines = {str(line.get_label()): line for line in panel.get_lines()}
    assert {*lines} == {"GD, one step size", "GD++, best"}
    np.testing.assert_array_equal(lines["GD++, best"].get_xdata(), [0, 500, 1000])
    np.testing.assert_allclose(1 - np.asarray(lines["GD++, best"].get_ydata()), [0.02, 0.95, 0.998])
    ticks = {
        label.get_text(): 1 - place for label, place in zip(panel.get_yticklabels(), panel.get_yticks(), strict=True)
    }
    assert all(float(words) == pytest.approx(cosine) for words, cosine in ticks.items())
    assert panel.yaxis_inverted()


def test_an_algorithm_has_one_colour_in_all_panels(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one has no cosines, and where one is a user's."""
    table = [row | {"column": {"ridge": "mine"}.get(str(row["column"]), row["column"])} for row in rows((0, 500))]
    mine = [row | {"column": "mine"} for row in table if row["column"] == "gd" and row["step"] != "final"]
    drawn: dict[str, Figure] = {}
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.update({path.stem: figure}) or path)
    write_csv(run / layout.ALGORITHM_DISTANCE, [*table, *mine])
    draw_algorithm_distance(run)
    panels = drawn["algorithms_over_training"].axes
    assert [len(panel.get_lines()) for panel in panels] == [3, 4, 4]
    found = {(str(line.get_label()), str(line.get_color())) for panel in panels for line in panel.get_lines()}
    assert len(found) == len({name for name, _ in found}) == len({colour for _, colour in found}) == 4
    for panel in panels[1:]:
        assert panel.get_yscale() == "log"
        low, high = panel.get_ylim()
        assert low < 0.05 < 0.5 < high < 1


def test_a_runs_figures_are_drawn_again_from_the_table(run: Path) -> None:
    write_csv(run / layout.ALGORITHM_DISTANCE, rows((0, 500)))
    draw_run(run)
    for name in ("algorithm_distance", "algorithms_over_training"):
        assert layout.figure(run, name).stat().st_size > 10_000
    write_csv(run / layout.ALGORITHM_DISTANCE, [{"step": "final", "value": 1.0}])
    with pytest.raises(StoreError, match=r"algorithm_distance\.csv.*no column row"):
        draw_algorithm_distance(run)
