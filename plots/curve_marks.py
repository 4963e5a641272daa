"""Marks on curves for what the means exclude: single seeds, censored seeds and diverged seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

WAYS = ABOVE, BELOW = "above", "below"  # where a censored value lies
INK = "#404040"  # of what has no colour of its own, in a legend
SEED: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.75}
DOT: dict[str, Any] = {"marker": "o", "markersize": 2.4, "markeredgewidth": 0, "linestyle": "none"}
OPEN: dict[str, Any] = {"marker": "o", "markersize": 3.2, "markerfacecolor": "white", "markeredgewidth": 0.8}
OPEN |= {"linestyle": "none"}
CROSS: dict[str, Any] = {"marker": "x", "markersize": 3.5, "linestyle": "none", "zorder": 4}
ARROW: dict[str, Any] = {"arrowstyle": "<-,head_length=.18,head_width=.1", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 2}
LENGTH, ROOM = 8, 0.2  # points of an arrow; of a panel's height, for arrows and numbers beyond it
SIDE = 0.035  # of an axis, between series that would lie on each other
ROW = 0.13  # of a panel's height: a series' crosses
APART, GAP, LEFT = 0.18, 0.025, 0.25  # of its width: between numbers, beside crosses, from where on numbers stand left
DIVERGED = "diverged, n of m seeds"
CENSORED = "number of seeds that do not reach it in training; no mean there"


def draw_seeds(panel: Axes, rows: pd.DataFrame, look: Mapping[str, Any], alone: bool) -> None:
    """Each seed's curve as a thin line, or in its series' markers; dots beside means, or of one point."""
    for _, curve in rows.groupby("seed", sort=False):
        curve = curve.sort_values("x")
        dotted = not alone or ("marker" not in look and len(curve) == 1)
        order = 3 if dotted or "marker" in look else 2
        panel.plot(curve["x"], curve["mean"], **{**look, **SEED, **(DOT if dotted else {})}, zorder=order)


def draw_censored(panel: Axes, rows: pd.DataFrame, colours: Mapping[str, Any]) -> None:
    """Open dots at the bounds of censored seeds, with arrows and the number of seeds; series are side by side."""
    if rows.empty:
        return
    widen(panel, *(ROOM * (rows["censored"] == way).any() for way in (BELOW, ABOVE)))
    names = list(dict.fromkeys(rows["series"]))
    for (name, x, y, way), group in rows.groupby(["series", "x", "mean", "censored"], sort=False):
        at = (_beside(panel, x, SIDE * (names.index(name) - (len(names) - 1) / 2)), y)
        panel.plot(*at, color=colours[name], zorder=4, **OPEN)
        tip, where = ((0, LENGTH), "bottom") if way == ABOVE else ((0, -LENGTH), "top")
        look: dict[str, Any] = {"ha": "center", "va": where, "fontsize": 6.5, "color": colours[name]}
        arrow = ARROW | {"color": colours[name]}
        panel.annotate(
            f"{len(group)}", at, tip, textcoords="offset points", arrowprops=arrow, annotation_clip=False, **look
        )


def draw_diverged(panel: Axes, rows: pd.DataFrame, colours: Mapping[str, Any]) -> None:
    """Crosses in a strip at the panel's upper edge, a row of them for each series, with "n of m" seeds."""
    if rows.empty:
        return
    names = list(dict.fromkeys(rows["series"]))
    strip = ROW * len(names)
    ticks, (low, high) = panel.get_yticks(), sorted(panel.get_ylim())
    widen(panel, 0.0, strip)
    panel.set_yticks([tick for tick in ticks if low <= tick <= high])
    panel.axhspan(high, max(panel.get_ylim()), color=style.PALE, zorder=3.5, linewidth=0)
    for number, name in enumerate(names):
        series_rows = rows[rows["series"] == name].sort_values("x")
        height = 1 - ROW * (number + 0.5)
        panel.plot(
            series_rows["x"],
            [height] * len(series_rows),
            transform=panel.get_xaxis_transform(),
            **CROSS,
            color=colours[name],
        )
        _write_counts(panel, series_rows, height, colours[name])


def _write_counts(panel: Axes, rows: pd.DataFrame, height: float, colour: Any) -> None:
    """Writes "n of m" beside each cross, or, where they are too near each other, one range beside the first."""
    places = [_share(panel, x) for x in rows["x"]]
    counts, seeds = rows["diverged"].astype(int).tolist(), rows["seeds"].astype(int).tolist()
    words = [f"{n} of {m}" for n, m in zip(counts, seeds, strict=True)]
    if len(places) > 1 and min(np.diff(places)) < APART:
        places, words = places[:1], [f"{_range(counts)} of {_range(seeds)}"]
    for place, text in zip(places, words, strict=True):
        side, where = (GAP, "left") if place < LEFT else (-GAP, "right")
        look: dict[str, Any] = {"ha": where, "va": "center_baseline", "fontsize": 6.5, "color": colour, "zorder": 4}
        panel.text(place + side, height, text, transform=panel.transAxes, **look)


def _range(counts: Sequence[int]) -> str:
    return " to ".join(str(n) for n in dict.fromkeys((min(counts), max(counts))))


def handles(table: pd.DataFrame) -> dict[str, Line2D]:
    """What the legend says of marks that are there."""
    from matplotlib.lines import Line2D

    entries = {}
    if (table["censored"] != "").any():
        entries[CENSORED] = Line2D([], [], color=INK, **OPEN)
    if (table["diverged"] > 0).any():
        entries[DIVERGED] = Line2D([], [], color=INK, **CROSS)
    return entries


def widen(panel: Axes, below: float, above: float) -> None:
    """Gives a panel more room, in shares of its new height; what it showed keeps its scale."""
    scale = panel.yaxis.get_transform()
    low, high = scale.transform(panel.get_ylim())
    height = (high - low) / (1 - below - above)
    panel.set_ylim(*scale.inverted().transform([low - below * height, high + above * height]))


def _share(panel: Axes, x: float) -> float:
    """Where x lies on its axis, from 0 to 1."""
    low, high, at = panel.xaxis.get_transform().transform([*panel.get_xlim(), x])
    return float((at - low) / (high - low))


def _beside(panel: Axes, x: float, share: float) -> float:
    """A place this share of the axis to the right of x."""
    scale = panel.xaxis.get_transform()
    low, high, at = scale.transform([*panel.get_xlim(), x])
    return float(scale.inverted().transform([at + share * (high - low)])[0])
