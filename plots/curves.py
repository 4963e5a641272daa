"""Curves with intervals from a table of panel, series, x, mean, low, high, seeds: a panel below another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plots import style
from store.readers import read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

HEIGHT, LONE_HEIGHT = 1.05, 1.7  # inches of a panel, of one alone
TEXT = ("panel", "series")
NUMBERS = ("x", "mean", "low", "high", "seeds")
# series -> how it looks, where a series has a look of its own
LOOKS: Mapping[str, dict[str, Any]] = {
    "Gradient descent": {"color": style.DESCENT, "linestyle": "-"},
    "Trained Transformer": {"color": style.TRANSFORMER, "marker": "+", "linestyle": "none", "markersize": 4},
    "GD++": {"color": style.OTHER, "linestyle": "--"},
    "GD, own step sizes": {"color": "#000000", "linestyle": (0, (3, 2))},
    "GD++, best": {"color": style.OTHER},
    "GD++, the paper's": {"color": "#882255", "linestyle": (0, (3, 2))},
    "Interpolated": {"color": style.GREY, "linestyle": ":"},
    "Control": {"color": style.DESCENT, "linestyle": "--"},
    "Sine": {"color": style.GREY, "linestyle": ":"},
    "Conjugate gradients": {"color": style.OTHER, "linestyle": "--"},
    "Newton-Schulz": {"color": style.GREY, "linestyle": ":"},
    "Ridge (Bayes)": {"color": "#000000", "linestyle": "-."},
    "Ridge": {"color": "#000000", "linestyle": "-."},
    "dMMSE": {"color": style.OTHER, "linestyle": "--"},
    "Predicted": {"color": style.GREY, "linestyle": "-"},
    "From predictions": {"color": style.TRANSFORMER, "marker": "o", "linestyle": "none", "markersize": 3},
    "From derivatives": {"color": style.OTHER, "marker": "x", "linestyle": "none", "markersize": 3},
    "Smoothed dMMSE": {"color": style.GREY, "linestyle": ":"},
}
ALONE: dict[str, Any] = {"marker": "o", "markersize": 3}  # a series of one point
ORDERED = "M = "  # how the names of series begin that are coloured in order
COUNTED = ("GD Steps / Transformer Layers", "rank", "position", "labels replaced")  # axes of whole numbers
MOST_TICKS = 11
AS_LINES = ("training step", "x")  # axes along which a transformer is a line, not points


@style.compact
def draw_curves(source: Path, labels: Mapping[str, Any]) -> list[Path]:
    """Draws a table's curves next to it, as .png and .pdf; labels: title, x_label, y_label, log_x, log_y."""
    table = read_csv(source, NUMBERS, TEXT, infinite=("x",)).fillna({"panel": ""})
    figure = _figure(table, labels)
    return style.save_both(figure, source)


def _figure(table: pd.DataFrame, labels: Mapping[str, Any]) -> Figure:
    panels = list(dict.fromkeys(table["panel"]))
    table, ticks = _with_infinity(table)
    figure, axes = style.column_figure([LONE_HEIGHT if len(panels) == 1 else HEIGHT] * len(panels))
    handles: dict[str, Line2D] = {}
    for panel, name in zip(axes[:, 0], panels, strict=True):
        for series, handle in _draw_panel(panel, table[table["panel"] == name], labels).items():
            handles.setdefault(series, handle)
        panel.set_title(style.plain(name))
        panel.set_ylabel(labels["y_label"])
    for panel in axes[:, 0] if ticks else ():
        panel.set_xticks([*ticks], [*ticks.values()])
        panel.minorticks_off()
    axes[-1, 0].set_xlabel(labels["x_label"])
    style.finish(figure, handles, f"{labels['title']}; {_seeds(table)}")
    return figure


def _with_infinity(table: pd.DataFrame) -> tuple[pd.DataFrame, dict[float, str]]:
    """The table with an infinite x two octaves to the right of the others, and all ticks then; else no ticks."""
    finite = sorted(set(table["x"][np.isfinite(table["x"])]))
    if len(finite) == table["x"].nunique():
        return table, {}
    end = 4 * finite[-1] if finite else 1.0
    shown = finite[:: math.ceil(len(finite) / MOST_TICKS)]
    return table.assign(x=table["x"].clip(upper=end)), {x: f"{x:g}" for x in shown} | {end: "∞"}


def _seeds(table: pd.DataFrame) -> str:
    """Of how many seeds the means are, in words."""
    fewest, most = int(table["seeds"].min()), int(table["seeds"].max())
    if most == 1:
        return "one seed"
    return f"means over {most if fewest == most else f'{fewest} to {most}'} seeds, 95 % t intervals"


def _draw_panel(panel: Axes, table: pd.DataFrame, labels: Mapping[str, Any]) -> dict[str, Line2D]:
    """Draws a panel's curves and gives a handle for each of its series."""
    handles = {}
    ordered = style.in_order([name for name in table["series"] if name.startswith(ORDERED)])
    for name, rows in table.groupby("series", sort=False):
        rows = rows.sort_values("x")
        look = dict(LOOKS.get(str(name), {"color": ordered[name]} if name in ordered else {}))
        if labels["x_label"] in AS_LINES and "marker" in look:
            look = {"color": look["color"]}
        if len(rows) == 1:
            look |= ALONE
        (line,) = panel.plot(rows["x"], rows["mean"], label=style.plain(name), **look)
        if "marker" in look:
            panel.vlines(rows["x"], rows["low"], rows["high"], color=line.get_color(), linewidth=0.8)
        else:
            panel.fill_between(rows["x"], rows["low"], rows["high"], color=line.get_color(), alpha=0.2, linewidth=0)
        handles[str(name)] = line
    _set_axes(panel, table, labels)
    return handles


def _set_axes(panel: Axes, table: pd.DataFrame, labels: Mapping[str, Any]) -> None:
    """Scales, limits around the means, which an interval may leave, and ticks that have room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low, high = float(table["mean"].min()), float(table["mean"].max())
    if labels["log_x"]:
        panel.set_xscale("log")
    else:
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 5, 10), integer=labels["x_label"] in COUNTED))
    if not labels["log_y"]:
        panel.set_ylim(bottom=0 if low >= 0 else None)
        return
    panel.set_yscale("log")
    decades = math.log10(high / low) if low > 0 else 1.0
    panel.set_ylim(low / 1.3, high * 1.3)
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 1.5 else (1,)))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_locator(NullLocator())
