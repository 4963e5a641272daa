"""Curves of a table, over seeds."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from plots.curves import _figure, draw_curves
from store.atomic import write_csv
from store.readers import read_csv
from studies.figure import mean_rows as rows_of

LABELS = {"title": "A title", "x_label": "GD Steps / Transformer Layers", "y_label": "Loss", "log_x": False}
LABELS |= {"log_y": False}
RUNS = [
    {("", "Gradient descent"): ([1, 2], [1.0, 0.5]), ("", "Trained Transformer"): ([1, 2], [1.1 + seed, 0.6])}
    for seed in range(3)
]


def test_rows_are_means_with_t_intervals_over_runs() -> None:
    found = {(row["series"], row["x"]): row for row in rows_of(RUNS)}
    assert found["Gradient descent", 1]["low"] == found["Gradient descent", 1]["high"] == 1.0
    row, values = found["Trained Transformer", 1], np.array([1.1, 2.1, 3.1])
    ends = stats.t.interval(0.95, 2, values.mean(), values.std(ddof=1) / np.sqrt(3))
    assert (row["low"], row["high"]) == pytest.approx(ends)
    assert row["seeds"] == 3


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
