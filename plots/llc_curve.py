"""The curve of the local learning coefficient over nbeta and gamma, and what says whether it has a plateau."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.llc_rows import NONE
from icl_lab.store.readers import expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NUMBERS = ("step", "nbeta", "gamma", "llc", "distance", "norm")
TEXT = ("verdict", "on_plateau")
FLAT = 0.1  # of the logarithmic derivatives, below which there may be a plateau
NEAR = 1 / 3  # of |w*|
MOST = 6  # ticks


def draw_curve(run: Path) -> Path:
    """figs/llc_curve.png of the last checkpoint in llc_curve.csv."""
    table = read_csv(run / layout.LLC_CURVE, NUMBERS, TEXT)
    with expecting(run / layout.LLC_CURVE, "a curve of LLCs"):
        return _figure(run, table[table["step"] == table["step"].max()])


@style.styled
def _figure(run: Path, table: pd.DataFrame) -> Path:
    figure, axes = style.new_figure(1, 4, width=2.9, height=2.6)
    along = "gamma" if table["gamma"].nunique() >= table["nbeta"].nunique() else "nbeta"
    other = "nbeta" if along == "gamma" else "gamma"
    groups = [*table.sort_values(along).groupby(other)]
    colours = style.in_order([f"{other} {value:g}" for value, _ in groups])
    for (value, rows), colour in zip(groups, colours.values(), strict=True):
        label = f"{other} {value:g}"
        _values(axes[0, 0], rows, along, colour, label)
        axes[0, 1].plot(rows[along], rows["d_gamma"], "o-", color=colour, markersize=3, linewidth=0.8)
        axes[0, 1].plot(rows[along], rows["d_nbeta"], "s--", color=colour, markersize=3, linewidth=0.8)
        axes[0, 2].plot(rows[along], rows["degree"], "o-", color=colour, markersize=3, linewidth=0.8)
        with np.errstate(divide="ignore", invalid="ignore"):
            axes[0, 3].plot(
                rows[along], rows["distance"] / rows["norm"], "o-", color=colour, markersize=3, linewidth=0.8
            )
    axes[0, 1].axhspan(-FLAT, FLAT, color=style.PALE, zorder=0)
    axes[0, 3].axhline(NEAR, color=style.GREY, linestyle=":", linewidth=0.8)
    titles = (
        "LLC; dashed: quadratic prediction",
        "d ln LLC / d ln gamma (dots), nbeta (squares)",
        "degree",
        "|w - w*| / |w*|",
    )
    for panel, title in zip(axes[0], titles, strict=True):
        panel.set_title(title, fontsize=7.5)
        panel.set_xscale("log")
        panel.set_xlabel(along)
        _ticks(panel, sorted(table[along].unique()))
    axes[0, 0].legend(fontsize=6.5)
    counted = int((table["on_plateau"].astype(str) == "True").sum())
    step = int(table["step"].iloc[0])
    style.caption(
        figure,
        f"step {step}; 95 % intervals over chains; hollow: not usable; large rings: the {counted} of {len(table)} "
        "points "
        "on a plateau; pale: derivatives of a plateau; dotted: a third of |w*|",
    )
    return style.save(figure, run / layout.LLC_CURVE_FIGURE, run)


def _ticks(panel: Axes, values: list[float]) -> None:
    """Ticks at the values themselves, of many at some of them."""
    shown = values[:: -(-len(values) // MOST)]
    panel.set_xticks(shown, [f"{value:.3g}" for value in shown])
    panel.minorticks_off()


def _values(panel: Axes, rows: pd.DataFrame, along: str, colour: str, label: str) -> None:
    there = rows[np.isfinite(rows["llc"])]
    half = [there["llc"] - there["llc_low"], there["llc_high"] - there["llc"]]
    panel.errorbar(there[along], there["llc"], half, fmt="-", color=colour, linewidth=0.8, capsize=2, label=label)
    usable = there["verdict"] != NONE
    for chosen, fill in ((usable, colour), (~usable, "white")):
        panel.plot(there[along][chosen], there["llc"][chosen], "o", color=colour, markerfacecolor=fill, markersize=4)
    counted = there["on_plateau"].astype(str) == "True"
    panel.plot(there[along][counted], there["llc"][counted], "o", color=colour, markerfacecolor="none", markersize=9)
    panel.plot(rows[along], rows["predicted"], "--", color=colour, linewidth=0.8)
