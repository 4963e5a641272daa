"""A calibration of the local learning coefficient: heat maps over the grid, a row for each measure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import heat_maps, style
from icl_lab.plots.llc import HEALTHY
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_csv, read_json

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# measure -> its title and colours; a range of None is the data's
MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llc": ("LLC", {"cmap": "viridis"}),
    "saturation": ("saturation", {"cmap": "viridis", "vmin": 0.0, "vmax": 1.0}),
    "trend": ("trend (SE)", {"cmap": "PuOr", "vmin": -6.0, "vmax": 6.0}),
    "acceptance": ("acceptance", {"cmap": "viridis", "vmin": 0.0, "vmax": 1.0}),
}
NUMBERS = ("step", "eps", "nbeta", "gamma", *MEASURES)
CELL, ROW = 0.52, 0.3  # inches of a cell


def draw_calibration(run: Path) -> Path:
    """figs/llc_calibration.png, from llc_calibration.csv and .json."""
    table = read_csv(run / layout.LLC_CALIBRATION, NUMBERS, ("health",))
    with expecting(run / layout.LLC_ADVICE, "the advice of a calibration"):
        return _draw(run, table, read_json(run / layout.LLC_ADVICE).get("cell"))


@style.styled
def _draw(run: Path, table: pd.DataFrame, advised: Mapping[str, float] | None) -> Path:
    steps = sorted(table["step"].unique())
    pairs = list(dict.fromkeys(zip(table["nbeta"], table["gamma"], strict=True)))
    sizes = int(table.groupby(["step", "nbeta", "gamma"])["eps"].nunique().max())
    height = ROW * len(pairs) + 0.55
    figure, axes = style.new_figure(
        len(MEASURES), len(steps), width=CELL * sizes + 1.6 / len(steps) + 0.3, height=height
    )
    for row, (name, (title, colours)) in zip(axes, MEASURES.items(), strict=True):
        finite = table[name][np.isfinite(table[name])]
        limits = {"vmin": finite.min(), "vmax": finite.max()} if len(finite) else {}
        for panel, step in zip(row, steps, strict=True):
            cells = table[table["step"] == step]
            _heat_map(panel, cells, name, pairs, limits | colours)
            _outline(panel, cells, pairs, advised)
            panel.set_title(f"{title}, step {int(step)}", fontsize=8)
            if panel is row[0]:
                panel.set_yticks(range(len(pairs)), [_label(cells, nbeta, gamma) for nbeta, gamma in pairs])
    style.caption(
        figure,
        f"{run.name}; columns: step sizes eps from the smallest; a stroke: not healthy; blank: no number; "
        f"{'the frame: recommended' if advised else 'no cell is recommended'}",
    )
    return style.save(figure, run / layout.LLC_CALIBRATION_FIGURE, run)


def _label(table: pd.DataFrame, nbeta: float, gamma: float) -> str:
    """A row of cells: nbeta and gamma, and the step sizes of its columns."""
    sizes = table[(table["nbeta"] == nbeta) & (table["gamma"] == gamma)]["eps"].sort_values()
    return f"nbeta {nbeta:.4g}, gamma {gamma:.4g}\neps {', '.join(f'{size:.1e}' for size in sizes)}"


def _outline(panel: Axes, table: pd.DataFrame, pairs: list[Any], advised: Mapping[str, float] | None) -> None:
    """A frame around the recommended cell."""
    if advised is None:
        return
    pair = advised["nbeta"], advised["gamma"]
    sizes = sorted(table[(table["nbeta"] == pair[0]) & (table["gamma"] == pair[1])]["eps"])
    left, bottom = sizes.index(advised["eps"]) - 0.5, pairs.index(pair) - 0.5
    panel.plot(
        [left, left + 1, left + 1, left, left],
        [bottom, bottom, bottom + 1, bottom + 1, bottom],
        color="red",
        linewidth=2,
        clip_on=False,
    )


def _heat_map(panel: Axes, table: pd.DataFrame, name: str, pairs: list[Any], colours: dict[str, Any]) -> None:
    """A row for each (nbeta, gamma), in it the step sizes from the smallest, with their numbers."""
    groups = [table[(table["nbeta"] == nbeta) & (table["gamma"] == gamma)].sort_values("eps") for nbeta, gamma in pairs]
    values = np.array([group[name] for group in groups], float)
    texts = [[f"{value:.3g}" if np.isfinite(value) else "" for value in row] for row in values]
    inks = heat_maps.numbered(panel, values, texts, 6, aspect="auto", **colours)
    for row, group in enumerate(groups):
        for column in np.flatnonzero(group["health"] != HEALTHY):
            panel.plot([column - 0.47, column - 0.33], [row + 0.4, row - 0.4], color=inks[row, column], linewidth=1.2)
    sizes = groups[0]["eps"]
    panel.set_xticks(range(len(sizes)), [""] * len(sizes))
    panel.set_yticks([])
    panel.tick_params(labelsize=6)
