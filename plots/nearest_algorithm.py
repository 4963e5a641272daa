"""The algorithm that a decoder is nearest to, over training and position: a colour for each that is named."""

from __future__ import annotations

from collections.abc import Mapping
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

AT_FIRST = "prior"  # is grey: what a model predicts that has learnt nothing yet
BLANK = "blank: the nearest algorithms differ by no more than two seeds of the model do"
CELL = (0.2, 0.22)  # inches, across and up
WIDTHS, HEIGHTS = (4.8, 7.6), (1.2, 5.0)  # inches of the figure, and of the map, at least and at most
BESIDE = 0.8  # inches beside the map, or beside the words of a legend


@style.styled
def draw_nearest_algorithm(run: Path) -> Path:
    """figs/nearest_algorithm.png, from nearest_algorithm.csv."""
    from matplotlib.patches import Patch

    path, config = run / layout.NEAREST_ALGORITHM, read_config(run)
    table = read_csv(path, ("step", "position", "prompts"), ("named",))
    label = outputs_of(family_of(config)).label
    with expecting(path, "the nearest algorithms of a run"):
        names = dict.fromkeys(name for name in table["named"] if name)
        colours = style.in_order(name for name in names if name != AT_FIRST) | {AT_FIRST: style.GREY}
        handles = {label(config, name): Patch(color=colours[name]) for name in names}
        figure = _map(table, {name: colours[name] for name in names}, max(map(len, handles), default=0))
        prompts = int(table["prompts"].iloc[0])
        what = f"{title_of(config)}, {' '.join(config.run_words())}, seed {config.data_seed}"
        text = f"{what}, {prompts} test prompts; {BLANK}"
        style.finish(figure, handles, text)
    return style.save(figure, run / layout.NEAREST_ALGORITHM_FIGURE, run)


def _map(table: pd.DataFrame, colours: Mapping[str, str], letters: int) -> Figure:
    """Steps from the left, positions from below; wide enough for words of so many letters."""
    from matplotlib import rcParams
    from matplotlib.colors import ListedColormap

    cells = table.pivot(index="position", columns="step", values="named").fillna("")
    numbers = {name: number for number, name in enumerate(colours)}
    values = np.array([[numbers.get(name, np.nan) for name in row] for row in cells.to_numpy()], float)
    words = letters * style.INCHES_A_LETTER * rcParams["legend.fontsize"] / 7
    width = max(float(np.clip(CELL[0] * values.shape[1] + BESIDE, *WIDTHS)), words + BESIDE)
    figure, axes = style.new_figure(width=width, height=float(np.clip(CELL[1] * values.shape[0], *HEIGHTS)))
    panel, shades = axes[0, 0], [*colours.values()] or ["white"]
    limits = {"vmin": -0.5, "vmax": len(shades) - 0.5}
    drawn = np.ma.masked_invalid(values)
    panel.imshow(drawn, cmap=ListedColormap(shades), origin="lower", aspect="auto", **limits)
    panel.grid(False)
    heat_maps.name_places(panel, [f"{step:g}" for step in cells.columns], [f"{k:g}" for k in cells.index])
    panel.set(xlabel="training step", ylabel="pairs seen, k")
    return figure
