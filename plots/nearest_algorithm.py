"""The algorithm that a decoder is nearest to, over training and position: a colour for each that is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.lab.configs.presets import title_of
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.plots import heat_maps, style
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_csv
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

AT_FIRST = "prior"  # is grey: a model that has learnt nothing yet
BLANK = "blank: the nearest algorithms differ by no more than two seeds of the model do"
CELL, ROW = 0.2, 0.22  # inches
WIDTHS, HEIGHTS = (4.2, 7.0), (1.2, 5.0)  # inches of the map, at least and at most


@style.styled
def draw_nearest_algorithm(run: Path) -> Path:
    """figs/nearest_algorithm.png, from nearest_algorithm.csv."""
    path, config = run / layout.NEAREST_ALGORITHM, read_config(run)
    table = read_csv(path, ("step", "position", "prompts"), ("named",))
    label = outputs_of(family_of(config)).label
    with expecting(path, "the nearest algorithms of a run"):
        names = sorted({*table["named"]} - {""}, key=[*table["named"]].index)
        colours = style.in_order(name for name in names if name != AT_FIRST) | {AT_FIRST: style.GREY}
        figure = _map(table, {name: colours[name] for name in names})
        style.legend_above(figure, {label(config, name): _patch(colours[name]) for name in names})
        prompts = int(table["prompts"].iloc[0])
        text = f"{title_of(config)} on {config.function.kind}, seed {config.data_seed}, {prompts} test prompts; {BLANK}"
        style.caption(figure, text)
    return style.save(figure, run / layout.NEAREST_ALGORITHM_FIGURE, run)


def _map(table: pd.DataFrame, colours: dict[str, str]) -> Figure:
    """Steps from the left, positions from below; a cell has the colour of what is named there."""
    from matplotlib.colors import ListedColormap

    cells = table.pivot(index="position", columns="step", values="named").fillna("")
    numbers = {name: number for number, name in enumerate(colours)}
    values = np.array([[numbers.get(name, np.nan) for name in row] for row in cells.to_numpy()], float)
    sizes = (np.clip(CELL * values.shape[1], *WIDTHS), np.clip(ROW * values.shape[0], *HEIGHTS))
    figure, axes = style.new_figure(width=float(sizes[0]) + 0.8, height=float(sizes[1]) + 1.3)
    panel = axes[0, 0]
    shades = ListedColormap([*colours.values()] or ["white"])
    panel.imshow(
        np.ma.masked_invalid(values), cmap=shades, vmin=-0.5, vmax=len(colours) - 0.5, origin="lower", aspect="auto"
    )
    panel.grid(False)
    heat_maps.name_places(panel, [f"{step:g}" for step in cells.columns], [f"{k:g}" for k in cells.index])
    panel.set(xlabel="training step", ylabel="pairs seen, k")
    return figure


def _patch(colour: str) -> object:
    from matplotlib.patches import Patch

    return Patch(color=colour)
