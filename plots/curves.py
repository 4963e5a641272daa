"""Curves with intervals from a table of panel, series, x, mean, low, high, seeds: a panel below another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plots import style
from store.atomic import write_bytes
from store.readers import read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 3.3  # a journal's column, in inches
TEXT = ("panel", "series")
NUMBERS = ("x", "mean", "low", "high", "seeds")
# series -> how it looks, where a series has a look of its own
LOOKS: Mapping[str, dict[str, Any]] = {
    "Gradient descent": {"color": style.DESCENT, "linestyle": "-"},
    "Trained Transformer": {"color": style.TRANSFORMER, "marker": "+", "linestyle": "none", "markersize": 4},
    "GD++": {"color": style.OTHER, "linestyle": "--"},
    "Interpolated": {"color": style.GREY, "linestyle": ":"},
    "Control": {"color": style.DESCENT, "linestyle": "--"},
    "Sine": {"color": style.GREY, "linestyle": ":"},
    "Conjugate gradients": {"color": style.OTHER, "linestyle": "--"},
    "Newton-Schulz": {"color": style.GREY, "linestyle": ":"},
    "Ridge (Bayes)": {"color": "#000000", "linestyle": "-."},
}
AS_LINES = ("training step", "x")  # axes along which a transformer is a line, not points


@style.styled
def draw_curves(source: Path, labels: Mapping[str, Any]) -> list[Path]:
    """Draws a table's curves beside it, as .png and .pdf; labels: title, x_label, y_label, log_x, log_y."""
    table = read_csv(source, NUMBERS, TEXT)
    figure = _figure(table.fillna({"panel": ""}), labels)
    found = []
    for suffix in ("png", "pdf"):
        path = source.with_suffix(f".{suffix}")
        write_bytes(path, style.rendered(figure, suffix))
        found.append(path)
    return found


def _figure(table: pd.DataFrame, labels: Mapping[str, Any]) -> Figure:
    panels = list(dict.fromkeys(table["panel"]))
    figure, axes = style.new_figure(len(panels), 1, width=WIDTH, height=2.2 if len(panels) == 1 else 1.7)
    for panel, name in zip(axes[:, 0], panels, strict=True):
        _draw_panel(panel, table[table["panel"] == name], labels)
        panel.set_title(style.plain(name), fontsize=8)
        panel.tick_params(labelsize=7)
        panel.set_ylabel(labels["y_label"], fontsize=8)
    _legends(axes[:, 0])
    axes[-1, 0].set_xlabel(labels["x_label"], fontsize=8)
    seeds = sorted({int(value) for value in table["seeds"]})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    style.caption(figure, f"{labels['title']}; means over {count} seeds, 95 % t intervals")
    return figure


def _legends(panels: Sequence[Axes]) -> None:
    """A legend where a panel has a series that none above it has."""
    known: set[str] = set()
    for panel in panels:
        names = set(panel.get_legend_handles_labels()[1])
        if names - known:
            panel.legend(fontsize=7)
        known |= names


def _draw_panel(panel: Axes, table: pd.DataFrame, labels: Mapping[str, Any]) -> None:
    for name, rows in table.groupby("series", sort=False):
        rows = rows.sort_values("x")
        look = dict(LOOKS.get(str(name), {}))
        if labels["x_label"] in AS_LINES and "marker" in look:
            look = {"color": look["color"]}
        (line,) = panel.plot(rows["x"], rows["mean"], label=style.plain(name), **look)
        if "marker" in look:
            panel.vlines(rows["x"], rows["low"], rows["high"], color=line.get_color(), linewidth=0.8)
        else:
            panel.fill_between(rows["x"], rows["low"], rows["high"], color=line.get_color(), alpha=0.2, linewidth=0)
    panel.set_xscale("log" if labels["log_x"] else "linear")
    panel.set_yscale("log" if labels["log_y"] else "linear")
    if not labels["log_y"]:
        panel.set_ylim(bottom=min(0.0, 1.05 * float(table["low"].min())))
