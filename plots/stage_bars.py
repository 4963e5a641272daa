"""Stages of several runs as bars over log steps: a row for each run, rises and falls, those that are claimed filled.

On the bars stand the milestones between which they lie, and under them the change points of the same curve.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.store.readers import expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NO_STAGE = "none"
LOOKS = {
    "A": ("LLC rises", style.SERIES[0]),
    "B": ("LLC falls", style.SERIES[1]),
    "undecided": ("undecided", style.GREY),
    NO_STAGE: ("no milestone", "#cccccc"),
}
MILESTONE, OF_LOSS_TOO, CHANGE_POINT = "milestone", "milestone of the loss too", "change point"
OF_A_MARK: dict[str, Any] = {
    "color": "black",
    "linestyle": "none",
    "markersize": 3.2,
    "markeredgewidth": 0.7,
    "clip_on": False,
}
MARKS: dict[str, dict[str, Any]] = {
    MILESTONE: OF_A_MARK | {"marker": "o", "label": "milestone"},
    OF_LOSS_TOO: OF_A_MARK | {"marker": "o", "markerfacecolor": "white", "label": "milestone of the loss alone too"},
    CHANGE_POINT: OF_A_MARK | {"marker": "^", "label": "change point"},
}
ON, UNDER = -0.3, 0.36  # of the middle of a row
FAINT = 0.3  # how much colour a stage has that is not claimed
ROW, AROUND = 0.24, 1.0  # inches of a run, and around all
WIDE = 1.6  # end over start of a bar that has room for its number
FIRST = 1.0  # of a logarithmic axis of steps, counted from 1


@style.compact
def draw_stage_bars(source: Path, title: str, to: Path | None = None) -> list[Path]:
    """Draws a table of runs, seed, stage, start, end, type, claimed and delta_llc next to it, as .png and .pdf."""
    table = read_csv(source, ("seed", "stage", "start", "end"), ("runs", "type"))
    with expecting(source, "a table of stages"):
        return style.save_both(_figure(table, title), to or source)


def _figure(table: pd.DataFrame, title: str) -> Figure:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(zip(table["runs"], table["seed"], strict=True)))
    marks = table[table["type"].isin(MARKS)]
    table = table[~table["type"].isin(MARKS)].drop_duplicates(["runs", "seed", "stage"])  # the first setting's
    figure, axes = style.new_figure(width=1.6 * style.COLUMN, height=ROW * len(names) + AROUND)
    panel = axes[0, 0]
    for _, row in table.iterrows():
        y, (start, end) = names.index((row["runs"], row["seed"])), np.array([row["start"], row["end"]], float) + FIRST
        look: dict[str, Any] = {
            "color": LOOKS[row["type"]][1],
            "alpha": 1.0 if str(row["claimed"]) == "True" else FAINT,
        }
        panel.barh(y, end - start, left=start, height=0.7, linewidth=0.5, edgecolor="white", **look)
        if row["type"] != NO_STAGE and end > WIDE * start:
            middle = float(np.sqrt(start * end))
            panel.text(middle, y, f"{float(row['delta_llc']):+.2f}", ha="center", va="center", fontsize=6.5)
    for _, row in marks.iterrows():
        height = names.index((row["runs"], row["seed"])) + (UNDER if row["type"] == CHANGE_POINT else ON)
        panel.plot(float(row["start"]) + FIRST, height, zorder=3, **MARKS[row["type"]])
    panel.set_xscale("log")
    panel.set_xlim(left=FIRST)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_yticks(range(len(names)), [f"{style.plain(runs)}, seed {seed:.0f}" for runs, seed in names])
    panel.set_xlabel("training step, from 1")
    shown = [look for name, look in LOOKS.items() if name in set(table["type"])]
    handles: dict[str, Any] = {label: Patch(color=colour) for label, colour in shown}
    handles |= {MARKS[name]["label"]: Line2D([], [], **MARKS[name]) for name in MARKS if name in set(marks["type"])}
    style.legend_above(figure, handles)
    style.caption(figure, f"{title}; the number is the change of the LLC, a full colour a claimed stage")
    return figure
