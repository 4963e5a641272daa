"""Small multiples: panels for models and for what else must not share axes; one legend above, a caption below."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.plots import style, sweep_lines
from icl_lab.plots.choice import PANELS
from icl_lab.plots.sweep_lines import Line
from icl_lab.plots.sweep_table import Point, Series, counted, rows_done

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NOISE = ("noise_mode", "p")
MODEL, DESCENT = "transformer", "gradient descent"  # names of series
MOST = 6  # lines that one panel can hold readably
MARKS = (("o", True), ("s", False), ("^", True), ("D", False), ("v", True), ("X", False))  # and whether it is filled
DASHES = ("-", "--", ":")
INK = "#404040"  # of what has no colour of its own
TITLE, BESIDE = 0.05, 0.44  # inches a letter of a title, and beside axes
TALL, LOW = 5.0, 0.8  # inches of axes that a column has room for; heights of a page's panels, in those of a column's
MANY, MARKED = 40, 8  # points of a line that bars and markers would hide; how many of these have markers
TICK = 0.2  # inches between numbers below an axis


class Drawn(NamedTuple):
    """A figure and the rows of its CSV."""

    figure: Figure
    rows: list[dict[str, Any]]


class Panel(NamedTuple):
    """Axes, whose they are (None: all models'), whether their x axis is labelled, lines by their labels."""

    axes: Axes
    model: str | None
    labelled: bool
    lines: list[tuple[str, Line]]


class Looks:
    """Colours say whose a line is, markers under which conditions; both the same in all panels, and in the legend."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.handles: dict[str, Any] = {}
        self._models = style.model_looks(line.settings["model"] for line in lines)
        self._conditions: list[str] = []

    def of(self, model: str, condition: str) -> dict[str, Any]:
        """Of a line of this model under these conditions."""
        if condition not in self._conditions:
            self._conditions.append(condition)
        number = self._conditions.index(condition)
        marker, filled = MARKS[number % len(MARKS)]
        colour = self._models[model][0]
        look = {"color": colour, "marker": marker, "linestyle": DASHES[number // len(MARKS) % len(DASHES)]}
        return look | {"markerfacecolor": colour if filled else "white"}

    def of_model(self, model: str) -> dict[str, Any]:
        """Of a model where conditions are not distinguished."""
        colour, marker = self._models[model]
        return {"color": colour, "marker": marker, "linestyle": ""}

    def explain_models(self) -> None:
        """Puts the models' colours into the legend."""
        for model, (colour, _) in self._models.items():
            self.explain(model, color=colour, linewidth=3)

    def explain_conditions(self, **how: Any) -> None:
        """Puts the conditions' markers into the legend, if there are several; `how` they differ from the drawn ones."""
        model = next(iter(self._models))
        for condition in self._conditions * (len(self._conditions) > 1):
            look = self.of(model, condition)
            filled = look["markerfacecolor"] != "white"
            self.explain(condition, **look | {"color": INK, "markerfacecolor": INK if filled else "white"} | how)

    def explain(self, name: str, **how: Any) -> None:
        """Puts a line that looks like this into the legend, once."""
        from matplotlib.lines import Line2D

        self.handles.setdefault(name, Line2D([], [], **how))


Part = list[tuple[str, Line]]  # lines that may share axes, by what a legend says of them


def stack(lines: Sequence[Line], apart: Sequence[str], height: float) -> tuple[Figure, list[Panel]]:
    """Panels of a column's width, one for each model and each part of the lines (`parts`)."""
    names, line_groups = parts(lines, apart)
    return _laid_out([(model, part) for part in line_groups for model in _models(part)], 1, height, names)


def pairs(lines: Sequence[Line], apart: Sequence[str], height: float) -> tuple[Figure, list[Panel]]:
    """Panels two in a row: for each part of the lines (`parts`), one of all models and one of each."""
    names, line_groups = parts(lines, apart)
    plan: list[tuple[str | None, Part] | None] = []
    for part in line_groups:
        plan += [(None, part), *((model, part) for model in _models(part))]
        plan += [None] * (len(plan) % 2)
    return _laid_out(plan, 2, height, names)


def parts(lines: Sequence[Line], apart: Sequence[str]) -> tuple[list[str], list[Part]]:
    """The settings that differ between parts, and the parts, in which a model has at most `MOST` lines."""
    line_settings = [line.settings for line in lines]
    names = differing(lines, apart)
    rest = [name for name in differing(lines) if name not in names]
    while rest and max(map(len, by_setting(lines, ["model", *names]).values())) > MOST:
        names.append(rest.pop(0))
    said, noise = sweep_lines.labels(line_settings, rest), sweep_lines.labels(line_settings, NOISE)
    label = {id(line): text or (other if rest else MODEL) for line, text, other in zip(lines, said, noise, strict=True)}
    return names, [[(label[id(line)], line) for line in part] for part in by_setting(lines, names).values()]


def differing(lines: Sequence[Line], among: Sequence[str] | None = None) -> list[str]:
    """The settings in which lines differ, besides the model, or those `among` these, in this order."""
    found = [name for name in sweep_lines.split([line.settings for line in lines])[0] if name != "model"]
    return found if among is None else [name for name in dict.fromkeys(among) if name in found]


def by_setting(lines: Sequence[Line], names: Sequence[str]) -> dict[tuple[Any, ...], list[Line]]:
    """The lines of each combination of these settings."""
    parts_of: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        parts_of.setdefault(tuple(line.settings[name] for name in names), []).append(line)
    return parts_of


def _models(part: Part) -> list[str]:
    return list(dict.fromkeys(line.settings["model"] for _, line in part))


def _laid_out(
    plan: Sequence[tuple[str | None, Part] | None], columns: int, height: float, names: Sequence[str]
) -> tuple[Figure, list[Panel]]:
    """Axes row by row; None in the plan leaves a place empty.

    What is too tall for a column is as wide as two, and each of its panels has labels. `TooLarge` for more panels than
    a page has.
    """
    if sum(place is not None for place in plan) > PANELS:
        raise sweep_lines.too_large(sweep_lines.pooled([line for place in plan if place for _, line in place[1]]).rows)
    width, is_page = style.COLUMN, math.ceil(len(plan) / columns) * height > TALL
    if is_page:
        columns, width, height = 2 * columns, 2 * style.COLUMN, LOW * height
    figure, axes = style.column_figure([height] * math.ceil(len(plan) / columns), columns, width)
    panels = []
    for panel in axes.flat[len(plan) :]:
        panel.set_axis_off()
    for number, (panel, place) in enumerate(zip(axes.flat, plan, strict=False)):
        if place is None:
            panel.set_axis_off()
            continue
        model, part = place
        lines = [(name, line) for name, line in part if model in (None, line.settings["model"])]
        labelled = is_page or all(below is None for below in plan[number + columns :: columns])
        panel.tick_params(labelbottom=labelled)
        panels.append(Panel(panel, model, labelled, lines))
        whose = ", ".join(_models(lines)) if len(_models(lines)) == 1 else "all models"
        title = ", ".join(filter(None, [whose, *sweep_lines.labels([lines[0][1].settings], names)]))
        panel.set_title(textwrap.fill(style.plain(title), int((width / columns - BESIDE) / TITLE)))
    return figure, panels


def error_bars(axes: Axes, x: Sequence[float], line: Sequence[Point], across: bool = False, **how: Any) -> None:
    """Means joined as `how` says, with their intervals where there are any; `across` exchanges the axes.

    Of a line through many points the intervals are a band, and few means have markers, which would hide the others.
    """
    means = np.array([point.mean for point in line])
    intervals = np.array([[point.low, point.high] for point in line]).T
    ends = np.abs(intervals - means)
    if across:
        axes.errorbar(means, x, xerr=ends, **{"elinewidth": 0.8} | how)
    elif len(line) > MANY and how.get("linestyle") != "":
        axes.fill_between(x, *intervals, color=how["color"], alpha=0.25, linewidth=0)
        axes.plot(x, means, **how, markevery=len(line) // MARKED)
    else:
        axes.errorbar(x, means, yerr=ends, **{"elinewidth": 0.8} | how)


def widen(limits: tuple[float, float], middle: float, least: float) -> tuple[float, float]:
    """Axis limits with at least this much on either side of a value, so that small differences look small."""
    return min(limits[0], middle - least), max(limits[1], middle + least)


def ticks(values: Iterable[float], inches: float) -> list[float]:
    """Those of the values that leave each other room on an axis of this length, from the highest down."""
    ordered = sorted(set(values), reverse=True)
    span = (ordered[0] - ordered[-1]) or 1.0
    kept = ordered[:1]
    for value in ordered[1:]:
        if (kept[-1] - value) / span * inches > TICK:
            kept.append(value)
    return kept[::-1]


def described(
    lines: Sequence[Line], series: Sequence[Series], used: pd.DataFrame, table: pd.DataFrame, tasks: str, *more: str
) -> str:
    """A caption: how many seeds, tasks (of the kind that this column counts) and rows, more, and what all share."""
    shared = sweep_lines.split([line.settings for line in lines])[1]
    return "; ".join(filter(None, (counted(used, series, tasks), *more, shared, rows_done(table, len(used)))))


@style.compact
def nothing(why: str, table: pd.DataFrame) -> Drawn:
    """A figure of nothing that says why."""
    figure, axes = style.column_figure([1.2])
    panel = axes[0, 0]
    panel.text(0.5, 0.5, f"nothing to show: {why}", ha="center", va="center", transform=panel.transAxes)
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)
    style.finish(figure, {}, rows_done(table, 0))
    return Drawn(figure, [])


def nothing_noisy(table: pd.DataFrame) -> Drawn:
    """The same for what shows noisy runs alone."""
    return nothing("no noisy run is done" if table["noisy"].any() else "no noisy runs", table)
