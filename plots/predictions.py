"""Predicted against measured changes of the loss, from a study's table of their agreement.

python -m plots.predictions --from agreement.csv --out DIR
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.lab import cli
from icl_lab.plots import style
from icl_lab.plots.style import draw_from_table
from icl_lab.store.readers import expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NUMBERS = ("n", "predicted", "change", "change_low", "change_high", "margin")
TEXT = ("question", "contrast", "verdict")
FIGURE = "agreement.png"
NEAR = 0.015  # changes below it have a panel of their own


def draw_predictions(source: Path, out: Path) -> list[Path]:
    """The figure, as .png."""
    table = read_csv(source, NUMBERS, TEXT, drawn=("predicted", "change"))
    with expecting(source, "a table of predicted and measured changes"):
        return [_draw(table, out / FIGURE)]


@style.compact
def _draw(table: pd.DataFrame, path: Path) -> Path:
    table = table.assign(model=table["contrast"].str.partition(": ")[0])
    looks = style.model_looks(table["model"])
    figure, axes = style.new_figure(1, 2, style.COLUMN, style.COLUMN * 0.85)
    near = table["predicted"].abs() < NEAR
    for panel, rows, title in ((axes[0, 0], table, "all"), (axes[0, 1], table[near], "near 0")):
        _draw_panel(panel, rows, looks)
        panel.set_title(title)
    axes[0, 0].set_ylabel("measured change of the loss, %")
    handles = {
        model: axes[0, 0].plot([], [], marker, color=colour, markersize=3, linestyle="")[0]
        for model, (colour, marker) in looks.items()
    }
    says = table["reading_says" if "reading_says" in table else "verdict"].value_counts()
    words = ", ".join(f"{says[name]} {name}" for name in says.index)
    words += " (provisional)" * bool((table["verdict"] == "provisional").any())
    text = f"{len(table)} contrasts of losses, mean and 90 % interval over seeds; on the line: as predicted; {words}"
    style.finish(figure, handles, text)
    return style.save(figure, path)


def _draw_panel(panel: Axes, rows: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> None:
    ends = 100 * rows[["predicted", "change"]].to_numpy()
    low, high = np.nanmin(ends), np.nanmax(ends)  # what is not computed is not drawn
    room = 0.05 * (high - low)
    panel.axline((0, 0), slope=1, color=style.GREY, linewidth=0.8, zorder=0)
    for model, model_rows in rows.groupby("model", sort=False):
        colour, marker = looks[str(model)]
        x, y = 100 * model_rows["predicted"], 100 * model_rows["change"]
        panel.vlines(
            x, 100 * model_rows["change_low"], 100 * model_rows["change_high"], color=colour, linewidth=0.6, alpha=0.6
        )
        panel.plot(x, y, marker, color=colour, markersize=2.6, linestyle="")
    panel.set_xlim(low - room, high + room)
    panel.set_ylim(low - 2 * room, high + 2 * room)
    panel.set_xlabel("predicted change of the loss, %")


def main(argv: list[str]) -> None:
    """The command line."""
    text = "Draws predicted against measured changes of the loss."
    draw_from_table(argv, "plots.predictions", text, "CSV of predicted and measured changes", draw_predictions)


if __name__ == "__main__":
    cli.launch(main)
