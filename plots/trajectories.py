"""Curves in a plane from a table of panel, series, step, x, y, kind, in order of training: a panel below another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plots import style
from store.readers import StoreError, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 2.0  # inches of a panel
TEXT = ("panel", "series", "kind")
NUMBERS = ("step", "x", "y")
KINDS = ("path", "point")
RIDGE = "ridge"  # how the name of the series begins, in small letters, that is a black star
POINTS = "dMMSE of the same M"  # what the other stars are, in the legend
DASH = 0.02  # of a path's length: an arrow's
ARROWS = (0.3, 0.7)  # of a path's length: where its arrows are
PATH: dict[str, Any] = {"linewidth": 0.9}
END: dict[str, Any] = {"marker": "o", "markersize": 2.8, "markeredgewidth": 0}
STAR: dict[str, Any] = {"marker": "*", "markersize": 7, "linestyle": "none"}
STAR |= {"markeredgecolor": "white", "markeredgewidth": 0.5}

RIDGE_STAR = STAR | {"markersize": 9.5}  # larger, for the first colours are dark too


@style.compact
def draw_trajectories(source: Path, labels: Mapping[str, Any]) -> list[Path]:
    """Draws a table's paths next to it, as .png and .pdf; labels: title, x_label, y_label, and points, what stars are.

    A row of the kind "path" is a checkpoint of its series; of the kind "point" an exact predictor's projection, a star
    in its series' colour, or black for ridge. Colours go with the order in which series first appear.
    """
    table = read_csv(source, NUMBERS, TEXT)
    if not table["kind"].isin(KINDS).all():
        raise StoreError(f"{source} has a kind that is neither of {', '.join(KINDS)}")
    if table[["x", "y"]].isna().any(axis=None) or table.loc[table["kind"] == "path", "step"].isna().any():
        raise StoreError(f"{source} has a row without x or y, or a checkpoint without a step")
    figure = _figure(table, labels)
    return style.save_both(figure, source)


def _figure(table: pd.DataFrame, labels: Mapping[str, Any]) -> Figure:
    panels, colours = list(dict.fromkeys(table["panel"])), _colours(table["series"])
    figure, axes = style.column_figure([HEIGHT] * len(panels))
    for panel, name in zip(axes[:, 0], panels, strict=True):
        _draw_panel(panel, table[table["panel"] == name], colours)
        panel.set_title(style.plain(name))
        panel.set_ylabel(labels["y_label"])
    axes[-1, 0].set_xlabel(labels["x_label"])
    text = f"{labels['title']}; arrows: order of training, dots: its end"
    style.finish(figure, _handles(table, colours, labels.get("points", POINTS)), text)
    return figure


def _colours(series: pd.Series) -> dict[str, Any]:
    """A colour for each series, in the order in which they first appear; ridge is black."""
    along = style.in_order(name for name in series if not _is_ridge(name))
    return {name: "black" for name in series if _is_ridge(name)} | along


def _is_ridge(name: str) -> bool:
    return name.lower().startswith(RIDGE)


def _draw_panel(panel: Axes, table: pd.DataFrame, colours: Mapping[str, Any]) -> None:
    """A panel's paths in the order of their steps, and above them its points."""
    for name, rows in table[table["kind"] == "path"].groupby("series", sort=False):
        ordered = rows.sort_values("step", kind="stable")
        _draw_path(panel, ordered[["x", "y"]].to_numpy(float), colours[str(name)])
    for name, rows in table[table["kind"] == "point"].groupby("series", sort=False):
        look, order = (RIDGE_STAR, 5) if _is_ridge(str(name)) else (STAR, 4)
        panel.plot(rows["x"], rows["y"], color=colours[str(name)], zorder=order, **look)
    panel.locator_params(nbins=5)


def _draw_path(panel: Axes, path: np.ndarray, colour: Any) -> None:
    """A path [T, 2]: its line, a dot at its end, and arrows along it."""
    panel.plot(*path.T, color=colour, **PATH)
    panel.plot(*path[-1:].T, color=colour, zorder=3, **END)
    look = {"arrowstyle": "-|>,head_length=.35,head_width=.17", "color": colour, "linewidth": 0, "mutation_scale": 9}
    for tail, head in _arrows(path):
        panel.annotate("", head, tail, arrowprops=look | {"shrinkA": 0, "shrinkB": 0})


def _arrows(path: np.ndarray) -> np.ndarray:
    """[A, 2, 2]: tail and head of the arrows on a path [T, 2], at shares of its length; none if it does not move.

    Its length is measured with both axes scaled to its extent, as the eye sees a panel that it fills.
    """
    extent = np.ptp(path, axis=0)
    steps = np.linalg.norm(np.diff(path, axis=0) / np.where(extent > 0, extent, 1), axis=1)
    if not steps.any():
        return np.empty((0, 2, 2))
    moved = np.concatenate([[True], steps > 0])  # what stands still has no direction
    length = np.concatenate([[0.0], np.cumsum(steps) / steps.sum()])[moved]
    ends = np.array([(share - DASH, share) for share in ARROWS])
    return np.stack([np.interp(ends, length, path[moved, axis]) for axis in (0, 1)], axis=-1)


def _handles(table: pd.DataFrame, colours: Mapping[str, Any], points_label: str) -> dict[str, Any]:
    """What stands in the legend: a line for each path, one grey star for all points but ridge's, which is black."""
    from matplotlib.lines import Line2D

    paths = dict.fromkeys(table.loc[table["kind"] == "path", "series"])
    found = {name: Line2D([], [], color=colours[name], linewidth=1.6) for name in paths}
    points = list(dict.fromkeys(table.loc[table["kind"] == "point", "series"]))
    if not all(map(_is_ridge, points)):
        found[points_label] = Line2D([], [], color=style.GREY, **STAR)
    return found | {name: Line2D([], [], color="black", **RIDGE_STAR) for name in points if _is_ridge(name)}
