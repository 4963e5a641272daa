"""Small multiples: a column a model, rows for what else must not share axes; one legend above, a caption below."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from plots import style
from plots.sweep_figures import points, settings
from plots.sweep_figures.points import Point, Series
from plots.sweep_figures.settings import Line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

NOISE = ("noise_mode", "p")
MODEL, DESCENT = "transformer", "gradient descent"  # names of series
COLUMN, PAGE = 3.3, 6.9  # widths of a journal's column and page, in inches
INCHES_A_LINE = 0.14  # of a legend or a caption
MOST = 6  # lines that one panel can hold readably
COMPACT = {
    "font.size": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "errorbar.capsize": 2,
}
# Okabe and Ito's colours and one of Tol's, told apart by all kinds of sight, each with a marker of its own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255")
LOOKS = tuple(zip(COLOURS, "os^DvPX>", strict=True))
DASHES = ("-", "--", ":")


class Drawn(NamedTuple):
    """A figure and the rows of its CSV."""

    figure: Figure
    rows: list[dict[str, Any]]


class Panel(NamedTuple):
    """Axes, whether they are the lowest of their column, and their lines by what a legend says of them."""

    axes: Axes
    lowest: bool
    lines: list[tuple[str, Line]]


class Legend:
    """What is drawn, by name; a name looks the same in all panels."""

    def __init__(self) -> None:
        self.handles: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}

    def look(self, name: str) -> dict[str, Any]:
        """Colour, marker and dashes of the lines of this name."""
        number = self._numbers.setdefault(name, len(self._numbers))
        colour, marker = LOOKS[number % len(LOOKS)]
        return {"color": colour, "marker": marker, "linestyle": DASHES[number // len(LOOKS) % len(DASHES)]}

    def add(self, name: str, handle: Any) -> None:
        """Shows a name once, however often it is drawn."""
        self.handles.setdefault(name, handle)


def compact(draw: Callable[P, R]) -> Callable[P, R]:
    """Draws in the house's style with the sizes of a printed column."""

    @wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        from matplotlib import rc_context

        with rc_context(style.RC | COMPACT):
            return draw(*args, **kwargs)

    return wrapped


def new_figure(rows: int, columns: int, height: float, **sharing: Any) -> tuple[Figure, np.ndarray]:
    """Panels of this height: one as wide as a column, several as a page, more than four as wide as they need."""
    width = COLUMN if columns == 1 else max(PAGE, PAGE / 4 * columns)
    return style.new_figure(rows, columns, width / columns, height, **sharing)


def grid(lines: Sequence[Line], apart: Sequence[str], height: float, **sharing: Any) -> tuple[Figure, list[Panel]]:
    """Panels, a column a model: what differs of `apart` has rows of its own, and more has where one held too much."""
    columns = list(dict.fromkeys(line.settings["model"] for line in lines))
    differing = [name for name in settings.split([line.settings for line in lines])[0] if name != "model"]
    names = [name for name in apart if name in differing]
    rest = [name for name in differing if name not in names]
    while rest and max(map(len, _cells(lines, ["model", *names]).values())) > MOST:
        names.append(rest.pop(0))
    cells = _cells(lines, ["model", *names])
    rows = list(dict.fromkeys(key[1:] for key in cells))
    figure, axes = new_figure(len(rows), len(columns), height, **sharing)
    panels = []
    for (row, column), panel in np.ndenumerate(axes):
        inside = cells.get((columns[column], *rows[row]), [])
        if not inside:
            panel.set_axis_off()
            continue
        title = style.plain(settings.label(inside[0].settings, ["model", *names]))
        letters = figure.get_figwidth() / len(columns) / style.INCHES_A_LETTER / 1.3
        panel.set_title("\n".join(textwrap.wrap(title, int(letters))))
        lowest = not any((columns[column], *below) in cells for below in rows[row + 1 :])
        panels.append(Panel(panel, lowest, [(_name(line, rest), line) for line in inside]))
        panel.tick_params(labelbottom=lowest)
    return figure, panels


def _name(line: Line, differing: Sequence[str]) -> str:
    """What a legend says of a line: where it differs, and of one without those settings (a clean one) its noise."""
    return settings.label(line.settings, differing) or (settings.label(line.settings, NOISE) if differing else MODEL)


def _cells(lines: Sequence[Line], names: Sequence[str]) -> dict[tuple[Any, ...], list[Line]]:
    cells: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        cells.setdefault(tuple(line.settings[name] for name in names), []).append(line)
    return cells


def error_bars(axes: Axes, x: Sequence[float], line: Sequence[Point], across: bool = False, **how: Any) -> Artist:
    """Means joined as `how` says, with their intervals where there are any; `across` exchanges the axes."""
    means = np.array([point.mean for point in line])
    ends = np.abs(np.array([[point.low, point.high] for point in line]).T - means)
    how = {"elinewidth": 0.8} | how
    if across:
        return axes.errorbar(means, x, xerr=ends, **how)
    return axes.errorbar(x, means, yerr=ends, **how)


def finish(figure: Figure, legend: Legend, text: str) -> None:
    """The legend above the panels, in as many columns as fit, and the caption below, for which the figure grows."""
    names = [style.plain(name) for name in legend.handles]
    columns = int(figure.get_figwidth() / (0.5 + max(map(len, names)) * style.INCHES_A_LETTER))
    columns = max(1, min(columns, len(names)))
    figure.legend(list(legend.handles.values()), names, loc="outside upper center", ncols=columns)
    lines = style.caption(figure, text)
    figure.set_figheight(figure.get_figheight() + INCHES_A_LINE * (math.ceil(len(names) / columns) + lines + 1))


def described(lines: Sequence[Line], series: Sequence[Series], used: pd.DataFrame, planned: int) -> str:
    """A caption: what all lines share, and how many seeds and cells they are of."""
    shared = settings.split([line.settings for line in lines])[1]
    return "; ".join(filter(None, (points.counted(used, planned, series), shared)))


def nothing(why: str, planned: int) -> Drawn:
    """A figure of nothing that says why."""
    figure, axes = new_figure(1, 1, 1.6)
    panel = axes[0, 0]
    panel.text(0.5, 0.5, f"nothing to show: {why}", ha="center", va="center", transform=panel.transAxes)
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    style.caption(figure, f"0 of {planned} planned cells")
    return Drawn(figure, [])


def nothing_noisy(table: pd.DataFrame) -> Drawn:
    """The same for what shows noisy cells alone."""
    noisy = int(table["noisy"].sum())
    return nothing("no noisy cell is done" if noisy else "no noisy cells", noisy or len(table))
