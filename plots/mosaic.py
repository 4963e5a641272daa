"""Many pairs of matrices in one figure, at the cost of a few images: each matrix is scaled by its own largest entry."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

A_LINE, SIDE = 9, 0.92  # matrices of a line, and inches of one with the gap behind it
GAP = 0.14  # of that
LEFT, RIGHT, BELOW = 0.62, 0.62, 0.75  # inches around all lines
ABOVE = (0.48, 0.24)  # and above each: of the first matrices, with names of two lines, and of the second
LINEWIDTH = 0.5


def mosaic(rows: Sequence[tuple[str, np.ndarray, np.ndarray]], titles: Sequence[str], text: str) -> Figure:
    """Lines of up to nine names, in each the first matrices of these [W, W] above the second, and a caption.

    The number above a matrix is its largest entry, which has the darkest colour.
    """
    from matplotlib.figure import Figure

    a_line = ceil(len(rows) / ceil(len(rows) / A_LINE))
    parts = [rows[start : start + a_line] for start in range(0, len(rows), a_line)]
    side = SIDE * (1 - GAP)
    width = LEFT + SIDE * a_line + RIGHT
    height = (2 * side + sum(ABOVE)) * len(parts) + BELOW
    figure = Figure(figsize=(width, height), facecolor="white")
    top = height
    for part in parts:
        for place, (title, above) in enumerate(zip(titles, ABOVE, strict=True)):
            top -= above + side
            size = LEFT / width, top / height, SIDE * (len(part) - GAP) / width, side / height
            named = [(name if place == 0 else "", matrices[place]) for name, *matrices in part]
            image = _draw_line(figure.add_axes(size), named, title)
    bar = figure.add_axes((1 - 0.45 / width, 1 - (ABOVE[0] + side) / height, 0.08 / width, side / height))
    figure.colorbar(image, cax=bar, ticks=[-1, 0, 1]).ax.tick_params(labelsize=7)
    bar.grid(False)
    style.caption(figure, f"{text}; colours: of the entry of largest size, which stands above each matrix")
    return figure


def _draw_line(axes: Axes, named: Sequence[tuple[str, np.ndarray]], title: str) -> Any:
    from matplotlib.collections import LineCollection

    size = len(named[0][1])
    step = size / (1 - GAP)
    frame = np.array([(0, 0), (0, 1), (1, 1), (1, 0), (0, 0)]) * size - 0.5
    frames = []
    for number, (name, matrix) in enumerate(named):
        limit = float(np.nanmax(np.abs(matrix)))
        left = number * step
        extent = left - 0.5, left + size - 0.5, size - 0.5, -0.5
        image = axes.imshow(matrix / (limit or 1.0), cmap="RdBu_r", vmin=-1, vmax=1, extent=extent)
        said = f"{name}\n{limit:.3g}" if name else f"{limit:.3g}"
        axes.text(left + size / 2 - 0.5, -0.8, said, ha="center", va="bottom", fontsize=7)
        frames.append(frame + (left, 0))
    axes.add_collection(LineCollection(frames, colors=style.GREY, linewidths=LINEWIDTH, clip_on=False))
    axes.set(xlim=(-0.5, step * (len(named) - 1) + size - 0.5), ylim=(size - 0.5, -0.5), aspect="auto", xticks=[])
    axes.set_ylabel(f"{title}\nchannel", fontsize=8)
    axes.set_yticks([0, size - 1])
    axes.tick_params(length=0, labelsize=7)
    axes.spines[:].set_visible(False)
    axes.grid(False)
    return image
