"""The figure of a curve of LLCs, from a table that is made here."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from icl_lab.analysis.llc import verdict
from icl_lab.plots import llc_curve, style
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv
from tests.plots.readable import check_readable

ROW: dict[str, Any] = {
    **{"step": 100, "nbeta": 100.0, "llc": 5.0, "llc_low": 4.5, "llc_high": 5.5, "predicted": 5.1, "d_gamma": -0.4},
    **{"d_nbeta": 0.4, "degree": 2.0, "distance": 1.0, "norm": 4.0, "verdict": "curvature", "on_plateau": False},
}


@pytest.mark.parametrize("nbetas", [(100.0,), (10.0, 100.0, 1000.0)])
def test_points_are_told_apart(nbetas: tuple[float, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rings around points on a plateau, hollow points that are not usable, dashes for the prediction."""
    seen: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: seen.append(figure) or path)
    changes = ({}, {"on_plateau": True}, {"verdict": "none"}, {"llc": np.nan, "verdict": "none"})
    rows = [
        ROW | {"nbeta": nbeta, "gamma": 10.0 ** (1 + place / 2)} | change
        for nbeta in nbetas
        for place, change in enumerate(changes)
    ]
    write_csv(tmp_path / layout.LLC_CURVE, [ROW | {"step": 0, "gamma": 1.0}, *rows])
    llc_curve.draw_curve(tmp_path)
    (figure,) = seen
    figure.canvas.draw()
    check_readable(figure, smallest=6.0, width=None)
    panel = figure.axes[0]
    assert [label.get_text() for label in panel.get_xticklabels()] == ["10", "31.6", "100", "316"]
    hollow = [line for line in panel.lines if line.get_markerfacecolor() == "white"]
    rings = [line for line in panel.lines if line.get_markerfacecolor() == "none"]
    assert [len(line.get_xdata()) for line in hollow] == [1] * len(nbetas)
    assert [len(line.get_xdata()) for line in rings] == [1] * len(nbetas)


def test_the_bounds_that_are_drawn_are_those_of_the_verdict() -> None:
    """Plots import no measures, so the numbers stand twice."""
    assert (llc_curve.FLAT, llc_curve.NEAR) == (verdict.FLAT, verdict.NEAR)


def test_a_table_of_something_else_is_one_sentence(tmp_path: Path) -> None:
    write_csv(tmp_path / layout.LLC_CURVE, [{"a": 1}])
    with pytest.raises(Exception, match=r"llc_curve\.csv"):
        llc_curve.draw_curve(tmp_path)
