"""Curves in a plane from a table of panel, series, step, x, y, kind, in order of training: a panel below another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.store.readers import StoreError, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 2.0  # inches of a panel
TEXT = ("panel", "series", "kind")
NUMBERS = ("step", "x", "y")
KINDS = ("path", "point")
RIDGE = "ridge"  # how the name of the series begins, in small letters, that is a black star
POINTS = "dMMSE of the same M"  # what the other points are, in the legend
DASH = 0.02  # of a path's length: an arrow's
ARROWS = (0.3, 0.7)  # of a path's length: where its arrows are
PATH: dict[str, Any] = {"linewidth": 0.9}
# A path's end; a point of the same series has the same marker, hollow and larger. Who sees no colours reads markers.
MARKERS = ("o", "s", "^", "D", "v", "P", "p", "X", "<", "h")
END: dict[str, Any] = {"markersize": 3.6, "markeredgewidth": 0, "linestyle": "none"}
POINT: dict[str, Any] = {"markersize": 5, "markeredgewidth": 0.9, "markerfacecolor": "none", "linestyle": "none"}
STAR: dict[str, Any] = {"marker": "*", "markersize": 9.5, "linestyle": "none", "color": "black"}
STAR |= {"markeredgecolor": "white", "markeredgewidth": 0.5}


@style.compact
def draw_trajectories(source: Path, labels: Mapping[str, Any], to: Path | None = None) -> list[Path]:
    """Draws a table's paths next to it, as .png and .pdf; labels: title, x_label, y_label, and points, what points are.

    A row of the kind "path" is a checkpoint of its series; of the kind "point" another point, such as an exact
    predictor's projection: hollow in its series' colour and marker, or a black star for ridge. Colours and markers go
    with the order in which series first appear.
    """
    table = read_csv(source, NUMBERS, TEXT)
    if not table["kind"].isin(KINDS).all():
        raise StoreError(f"{source} has a kind that is neither of {', '.join(KINDS)}")
    if table[["x", "y"]].isna().any(axis=None) or table.loc[table["kind"] == "path", "step"].isna().any():
        raise StoreError(f"{source} has a row without x or y, or a checkpoint without a step")
    figure = _figure(table, labels)
    return style.save_both(figure, to or source)


def _figure(table: pd.DataFrame, labels: Mapping[str, Any]) -> Figure:
    panels, looks = list(dict.fromkeys(table["panel"])), _looks(table["series"])
    figure, axes = style.column_figure([HEIGHT] * len(panels))
    for panel, name in zip(axes[:, 0], panels, strict=True):
        _draw_panel(panel, table[table["panel"] == name], looks)
        panel.set_title(style.plain(name))
        panel.set_ylabel(labels["y_label"])
    axes[-1, 0].set_xlabel(labels["x_label"])
    text = f"{labels['title']}; arrows: order of training, filled: its end"
    style.finish(figure, _handles(table, looks, labels.get("points", POINTS)), text)
    return figure


def _looks(series: pd.Series) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each series but ridge, in the order in which they first appear."""
    colours = style.in_order(name for name in series if not _is_ridge(name))
    return {
        name: {"color": colour, "marker": MARKERS[number % len(MARKERS)]}
        for number, (name, colour) in enumerate(colours.items())
    }


def _is_ridge(name: str) -> bool:
    return name.lower().startswith(RIDGE)


def _draw_panel(panel: Axes, table: pd.DataFrame, looks: Mapping[str, dict[str, Any]]) -> None:
    """A panel's paths in the order of their steps, and above them its points."""
    for name, rows in table[table["kind"] == "path"].groupby("series", sort=False):
        ordered = rows.sort_values("step", kind="stable")
        _draw_path(panel, ordered[["x", "y"]].to_numpy(float), looks.get(str(name), {"color": "black", "marker": "o"}))
    for name, rows in table[table["kind"] == "point"].groupby("series", sort=False):
        look, order = (STAR, 5) if _is_ridge(str(name)) else (POINT | looks[str(name)], 4)
        panel.plot(rows["x"], rows["y"], zorder=order, **look)
    panel.locator_params(nbins=5)


def _draw_path(panel: Axes, path: np.ndarray, look: Mapping[str, Any]) -> None:
    """A path [T, 2]: its line, a marker at its end, and arrows along it."""
    colour = look["color"]
    panel.plot(*path.T, color=colour, **PATH)
    panel.plot(*path[-1:].T, zorder=3, **END, **look)
    arrow = {"arrowstyle": "-|>,head_length=.35,head_width=.17", "color": colour, "linewidth": 0, "mutation_scale": 9}
    for tail, head in _arrows(path):
        panel.annotate("", head, tail, arrowprops=arrow | {"shrinkA": 0, "shrinkB": 0})


def _arrows(path: np.ndarray) -> np.ndarray:
    """[A, 2, 2]: tail and head of the arrows on a path [T, 2], at shares of its length; none if it does not move.

    Its length is measured with both axes scaled to its extent, as the eye sees a panel that it fills.
    """
    extent = np.ptp(path, axis=0)
    steps = np.linalg.norm(np.diff(path, axis=0) / np.where(extent > 0, extent, 1), axis=1)
    if not steps.any():
        return np.empty((0, 2, 2))
    moved = np.concatenate([[True], steps > 0])  # repeated points have no direction
    length = np.concatenate([[0.0], np.cumsum(steps) / steps.sum()])[moved]
    ends = np.array([(share - DASH, share) for share in ARROWS])
    return np.stack([np.interp(ends, length, path[moved, axis]) for axis in (0, 1)], axis=-1)


def _handles(table: pd.DataFrame, looks: Mapping[str, dict[str, Any]], points_label: str) -> dict[str, Any]:
    """What stands in the legend: a line with its marker for each path, a grey one for points, and ridge's star."""
    from matplotlib.lines import Line2D

    paths = dict.fromkeys(table.loc[table["kind"] == "path", "series"])
    black = {"color": "black", "marker": "o"}
    ends = END | {"linestyle": "-", "linewidth": 1.2}
    entries = {name: Line2D([], [], **ends | looks.get(name, black)) for name in paths}
    points = list(dict.fromkeys(table.loc[table["kind"] == "point", "series"]))
    if not all(map(_is_ridge, points)):
        entries[points_label] = Line2D([], [], color=style.GREY, marker=MARKERS[0], **POINT)
    return entries | {name: Line2D([], [], **STAR) for name in points if _is_ridge(name)}
