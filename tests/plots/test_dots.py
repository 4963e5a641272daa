"""Dots of settings: every mean and interval stands where its table has it."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from icl_lab.plots.dots import draw_dots
from icl_lab.store.atomic import write_csv
from tests.plots.readable import check_readable


def drawn(folder: Path, rows: list[dict[str, object]], intervals: str = "95 % t intervals") -> Figure:
    write_csv(folder / "dots.csv", rows)
    found: list[Figure] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "icl_lab.plots.style.save_both",
            lambda figure, path: found.append(figure) or check_readable(figure, width=None),
        )
        draw_dots(folder / "dots.csv", "A title", intervals)
    return found[0]


def test_every_mean_is_drawn_in_its_row_and_panel(tmp_path: Path) -> None:
    rows = [
        {"setting": setting, "panel": panel, "series": series, "mean": mean, "low": mean - 0.1, "high": mean + 0.1}
        | {"seeds": 5}
        for number, setting in enumerate(("as published", "sound"))
        for panel, series, mean in (("accuracy", "model", 0.5 + number / 4), ("cosine", "model", 0.1 + number / 2))
    ]
    figure = drawn(tmp_path, rows)
    for panel, means in zip(figure.axes, ((0.5, 0.75), (0.1, 0.6)), strict=True):
        points = [line for line in panel.lines if len(line.get_xdata()) == 1]
        assert [float(np.ravel(point.get_xdata())[0]) for point in points] == pytest.approx(means)
        assert [round(float(np.ravel(point.get_ydata())[0])) for point in points] == [0, 1]
        bars = [line.get_xdata() for line in panel.lines if len(line.get_xdata()) == 2]
        np.testing.assert_allclose(bars, [[mean - 0.1, mean + 0.1] for mean in means])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["as published", "sound"]


def test_seeds_of_a_series_stand_on_one_line_and_the_caption_says_what_they_are(tmp_path: Path) -> None:
    rows = [
        {"setting": "one", "panel": "loss", "series": series, "mean": value, "low": value, "high": value, "seeds": 1}
        for series, values in {"model": (1.0, 1.9), "descent": (1.4, 1.5)}.items()
        for value in values
    ]
    figure = drawn(tmp_path, rows, intervals="")
    points = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    heights = [float(np.ravel(point.get_ydata())[0]) for point in points]
    assert heights[0] == heights[1] != heights[2] == heights[3]
    assert any("a dot is a seed" in text.get_text() for text in figure.texts)
