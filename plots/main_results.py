"""The main results of a study: the value of each seed, its mean, the accepted range and the nearest rival."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.store import outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LETTERS = 72  # in a line above a strip
LINE, STRIP, BELOW, LEGEND, SIDE = 0.13, 0.3, 0.3, 0.22, 0.12  # inches: of a line, a strip, its axis, at the edges
BAND = "#dcecf7"
FAR = 4.0  # spans of all else beyond which a rival is named at the edge instead

Row = Mapping[str, Any]


@style.compact
def draw_main_results(rows: Sequence[Row], path: Path) -> Path:
    """A strip for each claim, on an axis of its own, as .png and .pdf.

    rows: says, values (one a seed; infinite ones at the edge), mean, mean_low, mean_high, low, high (the accepted
    range, None where it is open) and control (the rival's mean, None without one) of each.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    lines = [textwrap.wrap(str(row["says"]), LETTERS) for row in rows]
    heights = [LINE * len(words) + STRIP + BELOW for words in lines]
    width, height = 1.4 * style.COLUMN, LEGEND + sum(heights)
    figure = Figure(figsize=(width, height), facecolor="white")
    top = height - LEGEND
    for row, words, own in zip(rows, lines, heights, strict=True):
        bottom = top - own + BELOW
        axis = figure.add_axes((SIDE / width, bottom / height, 1 - 2 * SIDE / width, STRIP / height))
        axis.set_title("\n".join(words), loc="left")
        _strip(axis, row)
        top -= own
    looks: dict[str, dict[str, Any]] = {
        "a seed": {"marker": "o", "color": style.TRANSFORMER, "alpha": 0.5, "linestyle": ""},
        "mean, 90 % interval": {"marker": "|", "color": "black", "linestyle": "-"},
        "accepted": {"marker": "s", "color": BAND, "linestyle": "", "markersize": 7},
        "nearest rival": {"marker": "D", "markerfacecolor": "white", "color": style.OTHER, "linestyle": ""},
    }
    handles = [Line2D([], [], label=name, **look) for name, look in looks.items()]
    figure.legend(handles=handles, loc="upper center", ncols=len(looks), handletextpad=0.5, columnspacing=1.2)
    files = {path.with_suffix(f".{kind}"): style.rendered(figure, kind) for kind in ("png", "pdf")}
    return outputs.write(files, style.WRITER)[0]


def _strip(axis: Axes, row: Row) -> None:
    values = np.array(row["values"], float)
    shown = [*values[np.isfinite(values)], row["mean"], row["mean_low"], row["mean_high"]]
    shown += [end for end in (row["low"], row["high"]) if end is not None]
    least, most = min(shown), max(shown)
    span = (most - least) or abs(most) or 1.0
    rival = row["control"]
    if rival is not None and least - FAR * span <= rival <= most + FAR * span:
        least, most = min(least, rival), max(most, rival)
        axis.plot([rival], [0], "D", color=style.OTHER, markerfacecolor="white", zorder=4, clip_on=False)
    elif rival is not None:
        edge, arrow = (1.0, "→") if rival > most else (0.0, "←")
        text = f"{rival:.3g} {arrow}" if edge else f"{arrow} {rival:.3g}"
        align = "right" if edge else "left"
        axis.text(edge, 0.86, text, transform=axis.transAxes, ha=align, va="top", color=style.OTHER)
    room = 0.06 * ((most - least) or span)
    axis.set_xlim(least - room, most + room)
    axis.set_ylim(-1, 1)
    left, right = axis.get_xlim()
    low, high = (end if end is not None else edge for end, edge in ((row["low"], left), (row["high"], right)))
    axis.axvspan(low, high, color=BAND, zorder=0, linewidth=0)
    heights = np.resize([0.45, -0.1, 0.2, -0.35, 0.05], len(values))  # apart, so that equal values are seen
    axis.plot([right] * np.isinf(values).sum(), heights[np.isinf(values)], ">", color=style.TRANSFORMER, clip_on=False)
    axis.plot(values, heights, "o", color=style.TRANSFORMER, alpha=0.5, markersize=3, markeredgewidth=0, clip_on=False)
    axis.plot([row["mean_low"], row["mean_high"]], [-0.65] * 2, color="black", zorder=5)
    axis.plot([row["mean"]], [-0.65], "|", color="black", markersize=5, zorder=5)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.locator_params(axis="x", nbins=5)
