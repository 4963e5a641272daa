"""The local learning coefficient against the loss over checkpoints, at two settings: whether it is a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.plots.llc import BOUNDS, HEALTHY
from icl_lab.store import layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]
COLOURS = {"published": style.OTHER, "default": style.TRANSFORMER}


def draw_saturation(run: Path, rows: Mapping[str, Rows]) -> Path:
    """figs/llc_saturation.png, of the rows of each setting."""
    return _draw(run, rows)


@style.styled
def _draw(run: Path, rows: Mapping[str, Rows]) -> Path:
    figure, axes = style.new_figure(1, 3, width=3.2, height=2.6)
    for name, setting_rows in rows.items():
        label = f"{name}: " + ", ".join(f"{key} {setting_rows[0][key]:.4g}" for key in ("eps", "nbeta", "gamma"))
        _points(axes[0, 0], setting_rows, "llc", name, label)
        _points(axes[0, 1], setting_rows, "saturation", name)
        _ceiling(axes[0, 0], setting_rows, COLOURS[name])
        _points(axes[0, 2], setting_rows, "llc", name, over="step")
    axes[0, 1].axhline(BOUNDS["saturation"], color=style.GREY, linestyle="--", linewidth=1)
    axes[0, 2].set_xscale("symlog", linthresh=1)
    for panel, x, y in zip(
        axes[0], ("loss L(w*)", "loss L(w*)", "training step"), ("LLC", "saturation", "LLC"), strict=True
    ):
        panel.set_xlabel(x)
        panel.set_ylabel(y)
    style.legend_above(figure)
    first = next(iter(rows.values()))[0]
    style.caption(
        figure,
        f"{run.name}: {first['chains']:g} chains of {first['draws']:g} draws after {first['burn_in']:g}; hollow: not "
        "healthy; dashed, left: nbeta (L_null - L(w*)), where draws are no better than the null predictor; "
        f"dashed, middle: saturation {BOUNDS['saturation']:g}",
    )
    return style.save(figure, run / layout.LLC_SATURATION_FIGURE, run)


def _points(panel: Axes, rows: Rows, column: str, name: str, label: str | None = None, over: str = "loss") -> None:
    """A point a checkpoint, filled where it is healthy; over training the healthy ones are joined."""
    healthy = np.array([row["health"] == HEALTHY for row in rows])
    x, y = (np.array([row[key] for row in rows], float) for key in (over, column))
    colour = COLOURS[name]
    panel.plot(x[healthy], y[healthy], "o-" if over == "step" else "o", color=colour, markersize=4)
    panel.plot(x[~healthy], y[~healthy], "o", color=colour, markersize=4, markerfacecolor="white")
    if label:
        panel.plot([], [], "o", color=colour, markersize=4, label=label)


def _ceiling(panel: Axes, rows: Rows, colour: str) -> None:
    losses = np.sort([row["loss"] for row in rows])
    panel.plot(losses, rows[0]["nbeta"] * (rows[0]["null_loss"] - losses), color=colour, linestyle="--", linewidth=1)
