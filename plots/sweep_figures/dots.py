"""Dots with intervals, a row for each condition: the alignment with GD."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.plots import style
from icl_lab.plots.sweep_figures import grouping, panels
from icl_lab.plots.sweep_figures.grouping import Line
from icl_lab.plots.sweep_figures.panels import DESCENT, MODEL, Drawn, Looks
from icl_lab.plots.sweep_figures.points import Series, points, records
from icl_lab.plots.sweep_figures.table import TASKS

if TYPE_CHECKING:
    import pandas as pd

# column -> its axis, where GD itself is
METRICS = {
    "align_cos": ("cosine of sensitivities\nto GD's", 1.0),
    "align_l2": ("RMS difference of\npredictions to GD's", 0.0),
}
# measure -> what it can be
POSSIBLE = {"align_cos": (-1.0, 1.0), "align_l2": (0.0, math.inf)}
LETTERS = {1: 30, 2: 21}  # of a condition's name in one line, with this many panels
ROW, LINE = 0.18, 0.1  # inches that a condition needs, and a line of its name
MARGIN = 0.05  # of an axis, beyond where gradient descent is
TICKS = 3  # numbers below an axis, side by side


@style.compact
def draw_alignment(table: pd.DataFrame) -> Drawn:
    """How near the model is to gradient descent, in its sensitivities and in its predictions."""
    used = table[table["done"] & table[list(METRICS)].notna().all(axis=1)]
    if used.empty:
        return panels.nothing("no cell is done", table)
    lines = grouping.lines(used)
    models = list(dict.fromkeys(line.settings["model"] for line in lines))
    places, shown = _conditions(lines, len(METRICS), {"model"})
    figure, axes = style.column_figure([_height(shown)], len(METRICS), sharey=True)
    looks, series = Looks(lines), []
    for panel, (column, (text, same)) in zip(axes[0], METRICS.items(), strict=True):
        for line, place in zip(lines, places, strict=True):
            model = line.settings["model"]
            means = points(line.rows, column, line.rows[column])
            at = place + 0.55 * ((models.index(model) + 0.5) / len(models) - 0.5)
            panels.error_bars(panel, [at], means, across=True, within=POSSIBLE[column], **looks.of_model(model))
            looks.explain(model, **looks.of_model(model))
            series.append(Series(MODEL, column, line.settings, means))
        panel.axvline(same, color=style.DESCENT, linestyle="--", zorder=1)
        low, high = panel.get_xlim()
        panel.set_xlim(panels.widen((low, high), same, MARGIN * (max(high, same) - min(low, same))))
        panel.set_xlabel(text)
        panel.locator_params(axis="x", nbins=TICKS)
    looks.explain(DESCENT, color=style.DESCENT, linestyle="--")
    _label(axes[:, 0], shown)
    text = panels.described(lines, series, used, table, TASKS["alignment"], panels.cut(series, POSSIBLE))
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records(series))


def _conditions(lines: Sequence[Line], columns: int, apart: set[str]) -> tuple[list[int], list[str]]:
    """The row of each line, and the rows' names: all settings that differ, but those that have panels of their own."""
    line_settings = [line.settings for line in lines]
    differing = [name for name in grouping.split(line_settings)[0] if name not in apart]
    of_lines = grouping.labels(line_settings, differing or ["ordering"])
    names = list(dict.fromkeys(of_lines))
    shown = [textwrap.fill(style.plain(name), LETTERS[columns]) for name in names]
    return [names.index(name) for name in of_lines], shown


def _height(names: Sequence[str]) -> float:
    lines = 1 + max(name.count("\n") for name in names)
    return (len(names) + 0.2) * max(ROW, LINE * lines + 0.03)


def _label(axes: np.ndarray, names: Sequence[str]) -> None:
    """Rows from the top down; axes share them."""
    for panel in axes:
        panel.set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.4, -0.6)
