"""The tables of interventions as heat maps: shares by layer and head and by layer and position, and ablations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab.configs.presets import title_of
from icl_lab.plots import style
from icl_lab.plots.heat_maps import numbered
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_csv
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

CELL, ROW, LEAST = 0.3, 0.3, 3.2  # inches: the width and height of a cell, and the least width of a panel
MOST_NUMBERED = 12  # columns of a panel whose cells have room for their numbers
TICKS = 5  # columns from one tick to the next, where not each has one
HATCH = "////"  # of what has no number
SHARES: Mapping[str, Any] = {"cmap": "RdBu_r", "vmin": -1.0, "vmax": 1.0}
AXES = {"head": "head", "position": "position (row of tokens)"}
SITES, TEXTS = ("layer", "head", "position"), ("table", "corruption", "direction", "metric", "reason")


@style.styled
def draw_interventions(run: Path) -> Path:
    """figs/interventions.png, from interventions.csv and ablations.csv."""
    shares = read_csv(run / layout.INTERVENTIONS, (*SITES, "share", "n"), TEXTS)
    changes = read_csv(run / layout.ABLATIONS, ("layer", "head", "change"), ("table", "ablation", "metric"))
    with expecting(run / layout.INTERVENTIONS, "tables of interventions"):
        return _draw(run, shares, changes)


def _draw(run: Path, shares: pd.DataFrame, changes: pd.DataFrame) -> Path:
    metric, what = str(shares["metric"].iloc[0]), str(shares["corruption"].iloc[0])
    directions, hows = list(shares["direction"].unique()), list(changes["ablation"].unique())
    layers = int(shares["layer"].max()) + 1
    rows = len(AXES) + len(changes["table"].unique())
    width = max(LEAST, CELL * min(MOST_NUMBERED, int(shares["position"].max()) + 1) + 1.4)
    height = ROW * layers + 1.1
    figure, axes = style.new_figure(rows, max(len(directions), len(hows)), width=width, height=height)
    for panel in axes.ravel():
        panel.set_visible(False)
    for row, (table, label) in zip(axes, AXES.items(), strict=False):
        for panel, direction in zip(row, directions, strict=False):
            part = shares[(shares["table"] == table) & (shares["direction"] == direction)]
            _map(panel, _matrix(part, table, "share", layers), SHARES, "restored share")
            panel.set(title=f"{direction}: {table}s", xlabel=label, ylabel="layer")
    for row, (table, of) in zip(axes[len(AXES) :], changes.groupby("table", sort=False), strict=True):
        limit = float(of["change"].abs().max()) or 1.0
        falls = bool((of["change"] < 0).any())
        colours = {"cmap": "PuOr_r" if falls else "Oranges", "vmin": -limit if falls else 0.0, "vmax": limit}
        for panel, how in zip(row, hows, strict=False):
            matrix = _matrix(of[of["ablation"] == how], "head" if table == "head" else None, "change", layers)
            _map(panel, matrix, colours, unit_of(metric))
            panel.set(title=f"{how} ablation: {table}", ylabel="layer")
            panel.set_xlabel("head") if table == "head" else panel.set_xticks([])
    pairs = int(shares["n"].max())
    text = (
        f"{title_of(read_config(run))}; restored share of the metric {metric} over {pairs} pairs that differ in: "
        f"{what}; "
        "1: the site carries all of the difference, 0: none; hatched: no number, for the gap lies within its error"
    )
    style.caption(figure, text)
    return style.save(figure, run / layout.INTERVENTIONS_FIGURE, run)


def unit_of(metric: str) -> str:
    """What a change under ablation is of, on its colour bar."""
    if metric == "prediction":
        return "squared change\nof the prediction"
    return f"change of {metric}" if metric == "squared_error" else f"change of the\ndistance to {metric}"


def _matrix(part: pd.DataFrame, column: str | None, value: str, layers: int) -> np.ndarray:
    """Values by layer and column, nan where there is none."""
    places = np.zeros(len(part), int) if column is None else part[column].to_numpy(int)
    matrix = np.full((layers, places.max() + 1), np.nan)
    matrix[part["layer"].to_numpy(int), places] = part[value].to_numpy(float)
    return matrix


def _map(panel: Axes, matrix: np.ndarray, colours: Mapping[str, Any], unit: str) -> None:
    """A panel of a matrix with layer 0 at the bottom, numbers where they fit, and a colour bar with its unit."""
    panel.set_visible(True)
    panel.set_facecolor(style.PALE)
    fits = matrix.shape[1] <= MOST_NUMBERED
    texts = [["" if not fits or np.isnan(value) else short(value) for value in row] for row in matrix]
    numbered(panel, matrix, texts, 6, aspect="auto", origin="lower", **colours)
    for layer, column in np.argwhere(np.isnan(matrix)):
        _hatch(panel, column, layer)
    panel.set_yticks(range(len(matrix)))
    panel.set_xticks(range(0, matrix.shape[1], 1 if fits else TICKS))
    panel.figure.colorbar(panel.images[0], ax=panel, label=unit, fraction=0.046, pad=0.03)


def short(value: float) -> str:
    """A number in a cell: two digits after the point, or an exponent where these would be none."""
    return f"{value:.2f}" if abs(value) >= 0.005 or value == 0 else f"{value:.0e}".replace("e-0", "e-")


def _hatch(panel: Axes, column: int, layer: int) -> None:
    from matplotlib.patches import Rectangle

    panel.add_patch(
        Rectangle((column - 0.5, layer - 0.5), 1, 1, fill=False, hatch=HATCH, edgecolor=style.GREY, linewidth=0)
    )
