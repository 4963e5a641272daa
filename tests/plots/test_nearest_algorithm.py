"""The map of nearest algorithms: a colour for each that is named, blank where none is."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.plots import nearest_algorithm, style
from icl_lab.store import StoreError, layout
from icl_lab.store.atomic import write_csv
from tests.plots.readable import check_readable

NAMED = {0: ("", "prior", "prior"), 10: ("", "", "bayes"), 200: ("", "bayes = least_squares", "bayes")}  # by step
WORDS = ["the best constant", "Bayes (exact)", "Bayes (exact) = least squares"]


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Figure:
    figures: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: figures.append(figure) or path)
    return of_table(NAMED, tmp_path, monkeypatch, figures)


def of_table(
    named: dict[int, tuple[str, ...]], run: Path, monkeypatch: pytest.MonkeyPatch, figures: list[Figure]
) -> Figure:
    monkeypatch.setattr(nearest_algorithm, "read_config", lambda run: FunctionsConfig())
    rows = [
        {"step": step, "position": k, "prompts": 50, "named": name}
        for step, names in named.items()
        for k, name in enumerate(names)
    ]
    write_csv(run / layout.NEAREST_ALGORITHM, rows)
    nearest_algorithm.draw_nearest_algorithm(run)
    return figures[-1]


def test_a_cell_has_the_colour_that_the_legend_gives_its_algorithm(drawn: Figure) -> None:
    (legend,), (panel,) = drawn.legends, drawn.axes
    assert [text.get_text() for text in legend.get_texts()] == WORDS
    colours = [patch.get_facecolor() for patch in legend.get_patches()]
    assert colours[0] == to_rgba(style.GREY)
    assert len({*colours}) == 3
    (image,) = panel.get_images()
    values = image.get_array()
    assert values is not None
    prior, bayes, both = (tuple(image.cmap(image.norm(number))) for number in range(3))
    assert [prior, bayes, both] == colours
    expected = np.array([[np.nan, np.nan, np.nan], [0, np.nan, 2], [0, 1, 1]])
    np.testing.assert_array_equal(np.ma.filled(values, np.nan), expected)
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0", "10", "200"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["0", "1", "2"]
    check_readable(drawn, width=None)


def test_a_run_of_which_nothing_is_named_is_drawn_blank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: figures.append(figure) or path)
    figure = of_table({30: ("", "")}, tmp_path, monkeypatch, figures)
    assert not figure.legends
    assert np.ma.getmaskarray(figure.axes[0].get_images()[0].get_array()).all()


def test_a_damaged_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_algorithm, "read_config", lambda run: FunctionsConfig())
    rows = [{"step": 0, "position": 0, "prompts": 3}]
    write_csv(tmp_path / layout.NEAREST_ALGORITHM, rows)
    with pytest.raises(StoreError, match="it has no column named"):
        nearest_algorithm.draw_nearest_algorithm(tmp_path)
    write_csv(tmp_path / layout.NEAREST_ALGORITHM, [row | {"named": "prior"} for row in rows * 2])
    with pytest.raises(StoreError, match="is not the nearest algorithms of a run"):
        nearest_algorithm.draw_nearest_algorithm(tmp_path)
