"""Dots with intervals, a row for each condition: whether noisy pairs are separated, and the alignment with GD."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plots import style
from plots.sweep_figures import grouping, panels
from plots.sweep_figures.grouping import Line
from plots.sweep_figures.panels import DESCENT, INK, MODEL, Drawn, Looks
from plots.sweep_figures.points import Series, points, records
from plots.sweep_figures.table import TASKS

if TYPE_CHECKING:
    import pandas as pd

# column -> whose it is, how it looks; the transformer has its model's colour
SCORES: dict[str, tuple[str, dict[str, Any]]] = {
    "auroc": (MODEL, {"marker": "o"}),
    "gd_auroc": (DESCENT, {"color": style.DESCENT, "marker": "s", "markerfacecolor": "w"}),
    "auroc_position": ("position alone", {"color": style.GREY, "marker": "x"}),
}
# column -> its axis, where GD itself is
METRICS = {
    "align_cos": ("cosine of sensitivities\nto GD's", 1.0),
    "align_l2": ("RMS difference of\npredictions to GD's", 0.0),
}
AUROC = "AUROC"  # the measure, which is also the axis' label
# measure -> what it can be
POSSIBLE = {AUROC: (0.0, 1.0), "align_cos": (-1.0, 1.0), "align_l2": (0.0, math.inf)}
LETTERS = {1: 30, 2: 21}  # of a condition's name in one line, with this many panels
ROW, LINE = 0.18, 0.1  # inches that a condition needs, and a line of its name
LEAST_AUROC = 0.03  # that its axis shows on either side of .5
MARGIN = 0.05  # of an axis, beyond where gradient descent is
TICKS = 3  # numbers below an axis, side by side


@style.compact
def draw_separation(table: pd.DataFrame) -> Drawn:
    """Position-matched AUROC of |influence|, clean against noisy pairs, with GD's own and what position alone gives."""
    noisy = table[table["noisy"]]
    used = noisy[noisy["done"] & noisy["auroc"].notna()]
    if used.empty:
        return panels.nothing_noisy(table)
    lines = grouping.lines(used)
    models = list(dict.fromkeys(line.settings["model"] for line in lines))
    modes = list(dict.fromkeys(line.settings["noise_mode"] for line in lines))
    modes = modes if len(modes) in LETTERS else [None]
    places, shown = _conditions(lines, len(modes), {"model", "noise_mode"} if modes != [None] else {"model"})
    figure, axes = style.column_figure([_height(shown)] * len(models), len(modes), sharex=True, sharey=True)
    looks, series = Looks(lines), []
    for line, place in zip(lines, places, strict=True):
        model, mode = line.settings["model"], line.settings["noise_mode"]
        panel = axes[models.index(model), modes.index(mode) if mode in modes else 0]
        panel.set_title("\n".join(map(style.plain, [model] + [mode] * (len(modes) > 1))))
        for number, (column, (owner, how)) in enumerate(SCORES.items()):
            found = points(line.rows, owner, line.rows[column])
            if found:
                look = {"color": looks.of_model(model)["color"]} | how | {"linestyle": "", "markersize": 3}
                at = [place + 0.25 * (number - 1)]
                panels.error_bars(panel, at, found, across=True, within=POSSIBLE[AUROC], **look)
                looks.explain(owner, **{"color": INK} | how | {"linestyle": ""})
                series.append(Series(owner, AUROC, line.settings, found))
    for panel in axes.flat:
        panel.axvline(0.5, color=style.GREY, linewidth=0.7, zorder=1)
    axes[0, 0].set_xlim(np.clip(panels.widen(axes[0, 0].get_xlim(), 0.5, LEAST_AUROC), *POSSIBLE[AUROC]))
    _label(axes[:, 0], shown)
    for panel in axes[-1]:
        panel.set_xlabel(AUROC)
        panel.locator_params(axis="x", nbins=TICKS)
    what = ("AUROC: clean above noisy pairs, within positions", panels.cut(series, POSSIBLE))
    text = panels.described(lines, series, used, table, TASKS["auroc"], *what)
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records(series))


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
            found = points(line.rows, column, line.rows[column])
            at = place + 0.55 * ((models.index(model) + 0.5) / len(models) - 0.5)
            panels.error_bars(panel, [at], found, across=True, within=POSSIBLE[column], **looks.of_model(model))
            looks.explain(model, **looks.of_model(model))
            series.append(Series(MODEL, column, line.settings, found))
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
    found = [line.settings for line in lines]
    differing = [name for name in grouping.split(found)[0] if name not in apart]
    of_lines = grouping.labels(found, differing or ["ordering"])
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
