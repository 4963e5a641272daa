"""Dots with intervals, a row for each condition: whether noisy pairs are told apart, and the alignment with GD."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plots import style
from plots.sweep_figures import panels, settings
from plots.sweep_figures.panels import DESCENT, MODEL, Drawn, Legend
from plots.sweep_figures.points import Series, points, records
from plots.sweep_figures.settings import Line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# column -> whose it is, how it looks
SCORES = {
    "auroc": (MODEL, {"color": style.TRANSFORMER, "marker": "o"}),
    "gd_auroc": (DESCENT, {"color": style.DESCENT, "marker": "s", "markerfacecolor": "w"}),
    "auroc_position": ("position alone", {"color": style.OTHER, "marker": "x"}),
}
# column -> its axis, where GD itself is
METRICS = {
    "align_cos": ("cosine of sensitivities to GD's", 1.0),
    "align_l2": ("RMS difference of predictions to GD's", 0.0),
}
LETTERS = (24, 36)  # of a condition's name in one line, beside one panel and several
ROW = 0.19  # inches of a condition, of one line
LEAST_AUROC = 0.05  # that its axis shows on either side of .5
MARGIN = 0.002  # of an axis, beyond where gradient descent is


@panels.compact
def draw_separation(table: pd.DataFrame) -> Drawn:
    """Position-matched AUROC of |influence|, clean against noisy pairs, with GD's own and what position alone gives."""
    noisy = table[table["noisy"]]
    used = noisy[noisy["done"] & noisy["auroc"].notna()]
    if used.empty:
        return panels.nothing_noisy(table)
    lines = settings.lines(used)
    models = list(dict.fromkeys(line.settings["model"] for line in lines))
    figure, axes, names = _rows(lines, len(models), sharex=True)
    series, legend = [], Legend()
    for panel, model in zip(axes, models, strict=True):
        panel.set_title(style.plain(model))
        panel.axvline(0.5, color=style.GREY, linewidth=0.8)
        for line, condition in zip(lines, names, strict=True):
            for number, (column, (owner, how)) in enumerate(SCORES.items()):
                found = points(line.rows, owner, line.rows[column]) if line.settings["model"] == model else []
                if found:
                    place = condition + 0.22 * (number - 1)
                    legend.add(owner, panels.error_bars(panel, [place], found, across=True, linestyle="", **how))
                    series.append(Series(owner, line.settings, found))
        panel.set_xlabel("AUROC (clean > noisy)")
    low, high = axes[0].get_xlim()
    axes[0].set_xlim(min(low, 0.5 - LEAST_AUROC), max(high, 0.5 + LEAST_AUROC))
    panels.finish(figure, legend, panels.described(lines, series, used, len(noisy)))
    return Drawn(figure, records(series))


@panels.compact
def draw_alignment(table: pd.DataFrame) -> Drawn:
    """How near the model is to gradient descent, in its sensitivities and in its predictions."""
    used = table[table["done"] & table[list(METRICS)].notna().all(axis=1)]
    if used.empty:
        return panels.nothing("no cell is done", len(table))
    lines = settings.lines(used)
    models = list(dict.fromkeys(line.settings["model"] for line in lines))
    figure, axes, names = _rows(lines, len(METRICS))
    series, legend = [], Legend()
    for panel, (column, (text, same)) in zip(axes, METRICS.items(), strict=True):
        for line, condition in zip(lines, names, strict=True):
            model = line.settings["model"]
            found = points(line.rows, column, line.rows[column])
            place = condition + 0.5 * ((models.index(model) + 0.5) / len(models) - 0.5)
            how = legend.look(model) | {"linestyle": ""}
            legend.add(model, panels.error_bars(panel, [place], found, across=True, **how))
            series.append(Series(column, line.settings, found))
        legend.add(DESCENT, panel.axvline(same, color=style.GREY, linestyle="--", linewidth=1))
        low, high = panel.get_xlim()
        panel.set_xlim(min(low, same - MARGIN), max(high, same + MARGIN))
        panel.set_xlabel(text)
    panels.finish(figure, legend, panels.described(lines, series, used, len(table)))
    return Drawn(figure, records(series))


def _rows(lines: Sequence[Line], columns: int, sharex: bool = False) -> tuple[Figure, Sequence[Axes], list[int]]:
    """Panels side by side whose rows are the conditions, and the row of each line: all its settings but the model."""
    differing = [name for name in settings.split([line.settings for line in lines])[0] if name != "model"]
    of_lines = [settings.label(line.settings, differing or ["ordering"]) for line in lines]
    conditions = list(dict.fromkeys(of_lines))
    shown = [textwrap.fill(style.plain(condition), LETTERS[columns > 1]) for condition in conditions]
    height = 0.7 + sum(ROW + 0.12 * name.count("\n") for name in shown)
    figure, axes = panels.new_figure(1, columns, max(height, 1.4), sharex=sharex, sharey=True)
    axes[0, 0].set_yticks(range(len(shown)), shown)
    axes[0, 0].set_ylim(len(shown) - 0.5, -0.5)
    return figure, axes[0], [conditions.index(name) for name in of_lines]
