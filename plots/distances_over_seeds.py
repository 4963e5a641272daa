"""Distances to the algorithms as means over seeds: matrices of all pairs, and the transformer's over training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from icl_lab.plots import style
from icl_lab.plots.algorithm_distance import CELL, LABELS, OF_CELLS, heat_map, measures_in, training_figure
from icl_lab.store.readers import StoreError, expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NUMBERS = ("mean", "low", "high", "seeds")
NARROWEST = 4.0  # inches: a caption of one line has room
LABELLED = 1.9  # inches for the names of the rows


@style.styled
def draw_matrices(source: Path, title: str, to: Path | None = None) -> list[Path]:
    """Draws a table of row, column, measure, mean, low, high, seeds next to it, as .png and .pdf: a panel a measure."""
    table = _read(source, ("row", "column"))
    if table.duplicated(["row", "column", "measure"]).any():
        raise StoreError(f"{source} has a row and column twice")
    with expecting(source, "a table of distances"):
        return style.save_both(_matrices(table, title), to or source)


def _read(source: Path, names: tuple[str, ...], numbers: tuple[str, ...] = ()) -> pd.DataFrame:
    """The table; one that an earlier version wrote, without a measure, is of cosines."""
    table = read_csv(source, (*numbers, *NUMBERS), names)
    return table if "measure" in table else table.assign(measure="cosine")


def _matrices(table: pd.DataFrame, title: str) -> Figure:
    measures, names = measures_in(table), list(dict.fromkeys(table["row"]))
    size = CELL * len(names)
    figure, axes = style.new_figure(
        len(measures), width=max(size + LABELLED, NARROWEST), height=size + 0.5, sharex=True
    )
    labels = [style.plain(LABELS.get(name, name)) for name in names]
    for panel, measure in zip(axes[:, 0], measures, strict=True):
        rows = table[table["measure"] == measure]
        values = rows.pivot(index="row", columns="column", values="mean").reindex(index=names, columns=names)
        heat_map(panel, values.to_numpy(float), measure)
        panel.set_yticks(range(len(names)), labels)
    panel.set_xticks(range(len(names)), labels, rotation=40, ha="right", rotation_mode="anchor")
    style.caption(figure, f"{title}; {_seeds(table)}; {OF_CELLS}")
    return figure


@style.styled
def draw_over_training(source: Path, title: str, to: Path | None = None) -> list[Path]:
    """Draws a table of algorithm, step, measure, mean, low, high, seeds next to it: the transformer over training."""
    table = _read(source, ("algorithm",), ("step",))
    with expecting(source, "a table of distances over training"):
        figure = training_figure(table)
        style.caption(figure, f"{title}; {_seeds(table)}, 95 % intervals")
        return style.save_both(figure, to or source)


def _seeds(table: pd.DataFrame) -> str:
    """Of how many seeds the means are, in words."""
    fewest, most = int(table["seeds"].min()), int(table["seeds"].max())
    if most == 1:
        return "one seed"
    return f"means over {most if fewest == most else f'{fewest} to {most}'} seeds"
