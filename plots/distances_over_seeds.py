"""Distances to the algorithms as means over seeds: the matrix of cosines, and cosines over training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from plots import style
from plots.algorithm_distance import CELL, LABELS, LOOKS, NEAREST, heat_map, scale_of_cosines
from store.readers import StoreError, expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NUMBERS = ("mean", "low", "high", "seeds")
NARROWEST = 4.0  # inches: a caption of one line has room


@style.styled
def draw_matrix(source: Path, title: str) -> list[Path]:
    """Draws a table of row, column, mean, low, high, seeds next to it, as .png and .pdf: cosines of sensitivities."""
    table = read_csv(source, NUMBERS, ("row", "column"))
    if table.duplicated(["row", "column"]).any():
        raise StoreError(f"{source} has a row and column twice")
    with expecting(source, "a table of distances"):
        return style.save_both(_matrix(table, title), source)


def _matrix(table: pd.DataFrame, title: str) -> Figure:
    names = list(dict.fromkeys(table["row"]))
    size = CELL * len(names)
    figure, axes = style.new_figure(width=max(size + 1.3, NARROWEST), height=size + 1.4)
    panel = axes[0, 0]
    values = table.pivot(index="row", columns="column", values="mean").reindex(index=names, columns=names)
    heat_map(panel, values.to_numpy(float), "cosine")
    labels = [style.plain(LABELS.get(name, name)) for name in names]
    panel.set_xticks(range(len(names)), labels, rotation=40, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(len(names)), labels)
    style.caption(figure, f"{title}; {_seeds(table)}")
    return figure


@style.styled
def draw_nearest(source: Path, title: str) -> list[Path]:
    """Draws a table of algorithm, step, mean, low, high, seeds next to it: the transformer's cosines over training."""
    table = read_csv(source, ("step", *NUMBERS), ("algorithm",))
    with expecting(source, "a table of distances over training"):
        return style.save_both(_nearest(table, title), source)


def _nearest(table: pd.DataFrame, title: str) -> Figure:
    figure, axes = style.new_figure(width=6.4, height=3.8)
    panel = axes[0, 0]
    for name in dict.fromkeys(table["algorithm"]):
        rows = table[table["algorithm"] == name].sort_values("step")
        look = LOOKS.get(name, {"linewidth": 1})
        mean, low, high = (np.maximum(1 - rows[column], NEAREST) for column in ("mean", "low", "high"))
        (line,) = panel.plot(rows["step"], mean, label=LABELS.get(name, style.plain(name)), **look)
        panel.fill_between(rows["step"], low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    scale_of_cosines(panel)
    style.legend_above(figure)
    style.caption(figure, f"{title}; {_seeds(table)}, 95 % intervals")
    return figure


def _seeds(table: pd.DataFrame) -> str:
    """Of how many seeds the means are, in words."""
    fewest, most = int(table["seeds"].min()), int(table["seeds"].max())
    if most == 1:
        return "one seed"
    return f"means over {most if fewest == most else f'{fewest} to {most}'} seeds"
