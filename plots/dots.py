"""Dots from a table of setting, panel, series, mean, low, high, seeds: settings in rows, panels side by side.

A row is a mean with its interval, or a seed. The AUROCs of a run's attention are drawn alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab.configs.presets import title_of
from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_csv, read_json
from icl_lab.store.rundir import read_config

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
    handles = {name: Line2D([], [], linestyle="none", **look) for name, look in looks.items() if name}
    seeds = sorted(set(table["seeds"].astype(int)))
    counts = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    style.legend_above(figure, handles)
    what = f"means over {counts} seeds, {intervals}" if intervals else "a dot is a seed"
    style.caption(figure, f"{title}; {what}")
    return figure


Row = tuple[str, list[float] | None, str]  # its name, (low, AUROC, high) if there is one, its colour


@style.styled
def draw_attention_stats(run: Path) -> Path:
    """attention_stats.png: position-matched AUROC of each score with its interval; gradient descent in green.

    Detectors are left out of runs that an earlier version measured.
    """
    config, path = read_config(run), run / layout.ATTENTION_STATS
    stats = read_json(path)
    with expecting(path, "the attention statistics of a run"):
        rows = _rows(stats)
        noise = f"{stats['noise_mode']}, p = {stats['noise_p']:g}, {stats['placement']}"
        text = f"{title_of(config)}, seed {config.data_seed}; {noise}; {stats['tasks']} contexts, 95 % intervals"
    figure, axes = style.new_figure(width=5.2, height=0.8 + 0.24 * len(rows))
    panel = axes[0, 0]
    for place, (_, numbers, colour) in enumerate(rows):
        if numbers is not None:
            low, auroc, high = numbers
            panel.plot([low, high], [place, place], color=colour)
            panel.plot(auroc, place, "o", color=colour, markersize=4, clip_on=False)
    panel.set_xlim(np.clip(panel.get_xlim(), 0, 1))
    panel.axvline(0.5, color=style.GREY, linewidth=0.8)
    panel.set_yticks(range(len(rows)), [style.plain(name) for name, _, _ in rows])
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlabel("AUROC (clean > noisy)")
    style.caption(figure, text)
    return style.save(figure, run / layout.ATTENTION_STATS_FIGURE, run)


def _rows(stats: Mapping[str, Any]) -> list[Row]:
    rows = [(f"{n}, model", _interval(stats[n]), style.TRANSFORMER) for n in ("influence", "abs_influence")]
    for layer in stats["layers"]:
        for head in layer["heads"]:
            where = f"{layer['kind']} layer {layer['layer']}, head {head['head']}"
            rows += [(f"{n}, {where}", _interval(values), style.TRANSFORMER) for n, values in head["scores"].items()]
    rows += [(f"{n}, gradient descent", _interval(values), style.DESCENT) for n, values in stats["gd"].items()]
    for name, values in stats.get("detectors", {}).items():
        fewer = f" ({values['tasks']} contexts)" * (values["tasks"] != stats["tasks"])
        rows.append((f"{name}, detector{fewer}", _interval(values), style.OTHER))
    return rows


def _interval(values: Mapping[str, Any]) -> list[float] | None:
    """(low, AUROC, high), or None where there was none to measure; an end that is null is not drawn."""
    if values["auroc"] is None:
        return None
    low, high = values["auroc_interval"]
    return [float("nan") if value is None else float(value) for value in (low, values["auroc"], high)]
