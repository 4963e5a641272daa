"""Dots from a table of setting, panel, series, mean, low, high, seeds: settings in rows, panels side by side.

A row is a mean with its interval, or a seed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_lab.plots import style
from icl_lab.store.readers import expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TEXT, NUMBERS = ("setting", "panel", "series"), ("mean", "low", "high", "seeds")
COLOURS = (*style.SERIES, style.OTHER)
MARKERS = ("o", "s", "^", "D", "v", "P")
ROW, AROUND = 0.24, 0.75  # inches of a setting, and around all


@style.compact
def draw_dots(source: Path, title: str, intervals: str = "95 % t intervals", to: Path | None = None) -> list[Path]:
    """Draws a table's dots next to it, as .png and .pdf; `intervals`: what they are, "" of rows that are seeds."""
    table = read_csv(source, NUMBERS, TEXT)
    with expecting(source, "a table of dots"):
        return style.save_both(_figure(table, title, intervals), to or source)


def _figure(table: pd.DataFrame, title: str, intervals: str) -> Figure:
    from matplotlib.lines import Line2D

    settings, panels = list(dict.fromkeys(table["setting"])), list(dict.fromkeys(table["panel"]))
    series = list(dict.fromkeys(table["series"]))
    looks: dict[str, dict[str, Any]] = {
        name: {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        for number, name in enumerate(series)
    }
    height = ROW * len(settings) + AROUND
    figure, axes = style.new_figure(1, len(panels), 2 * style.COLUMN / len(panels), height, sharey=True)
    for panel, name in zip(axes[0], panels, strict=True):
        rows = table[table["panel"] == name]
        for number, setting in enumerate(settings):
            setting_rows = rows[rows["setting"] == setting]
            places = {name: place for place, name in enumerate(dict.fromkeys(setting_rows["series"]), 1)}
            for _, row in setting_rows.iterrows():
                y = number + 0.5 * (places[row["series"]] / (len(places) + 1) - 0.5)
                look = looks[row["series"]]
                panel.plot([row["low"], row["high"]], [y, y], color=look["color"], linewidth=0.8)
                panel.plot(row["mean"], y, linestyle="none", **look)
        panel.set_title(style.plain(name))
        panel.set_yticks(range(len(settings)), [style.plain(setting) for setting in settings])
        panel.set_ylim(len(settings) - 0.5, -0.5)
    handles = {name: Line2D([], [], linestyle="none", **look) for name, look in looks.items()}
    seeds = sorted(set(table["seeds"].astype(int)))
    counts = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    style.legend_above(figure, handles)
    what = f"means over {counts} seeds, {intervals}" if intervals else "a dot is a seed"
    style.caption(figure, f"{title}; {what}")
    return figure
