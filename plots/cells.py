"""Numbers in coloured cells, from a table of row, column, mean, low, high, seeds: what is not there is a dash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.plots import heat_maps, style
from icl_lab.store.readers import expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

WIDE, HIGH = 0.62, 0.3  # inches of a cell
NAMES, AROUND = 1.5, 1.5  # inches for the names of rows, and above and below the cells
LIMIT = 1.0  # from which on a colour is the darkest


@style.styled
def draw_cells(source: Path, title: str, to: Path | None = None, level: float = style.EARLIER_LEVEL) -> list[Path]:
    """Draws a table's means next to it, as .png and .pdf; those whose interval lies above 0 are marked with a star."""
    table = read_csv(source, ("mean", "low", "high", "seeds"), ("row", "column"))
    with expecting(source, "a table of cells"):
        return style.save_both(_figure(table, title, level), to or source)


def _figure(table: pd.DataFrame, title: str, level: float) -> Figure:
    rows, columns = (list(dict.fromkeys(table[name])) for name in ("row", "column"))
    means, lows = (
        table.pivot(index="row", columns="column", values=name).reindex(index=rows, columns=columns).to_numpy(float)
        for name in ("mean", "low")
    )
    texts = [[_text(mean, low) for mean, low in zip(*pair, strict=True)] for pair in zip(means, lows, strict=True)]
    width, height = WIDE * len(columns) + NAMES, HIGH * len(rows) + AROUND
    figure, axes = style.new_figure(width=width, height=height)
    panel = axes[0, 0]
    shown = np.clip(means, -LIMIT, LIMIT)
    heat_maps.numbered(panel, shown, texts, 7, cmap="RdBu_r", vmin=-LIMIT, vmax=LIMIT, aspect="auto")
    panel.set_yticks(range(len(rows)), [style.plain(name) for name in rows])
    labels = [style.plain(name) for name in columns]
    panel.set_xticks(range(len(columns)), labels, rotation=35, ha="right", rotation_mode="anchor")
    counts = sorted({int(count) for count in table["seeds"]})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    style.caption(figure, f"{title}; means over {seeds} seeds; *: the {100 * level:g} % interval lies above 0")
    return figure


def _text(mean: float, low: float) -> str:
    if not np.isfinite(mean):
        return "-"
    return f"{mean:.2f}" + "*" * bool(low > 0)
