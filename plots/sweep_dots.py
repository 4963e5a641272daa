"""Dots of a sweep: losses by the ordering at evaluation, and the alignment with gradient descent by condition.

Over the ordering there is a small dot for each seed, each another trained model, and their mean. Seeds that have not
trained have hollow dots and are excluded from the means. Where they would stretch the axis, it is broken, and the range
of their values is given above the break.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab.configs.registry import named, outputs_of
from icl_lab.plots import style, sweep_lines, sweep_panels
from icl_lab.plots.choice import PAGE_HEIGHT, PANELS
from icl_lab.plots.sweep_lines import ordered
from icl_lab.plots.sweep_panels import DESCENT, INK, MODEL, Drawn, Looks, Panel
from icl_lab.plots.sweep_table import TASKS, Point, Series, points, records

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 0.95  # inches of a panel
MEASURE = "loss / GD's loss"
UNTRAINED = "not trained"  # the series of these seeds
LEAST_RATIO = 0.02  # least span of an axis on either side of 1, so that small differences look small
SHIFT, ROOM = 0.2, 0.8  # between conditions that share an ordering, and of all of them
ASIDE = 0.07  # of the seeds' dots, from their mean
BESIDE = 0.05  # between untrained seeds of one condition
MARGIN = 0.08  # of what an axis shows, beyond it
BREAK, ABOVE, HEAD = 0.1, 0.2, 0.28  # the same of a broken axis: the break, the dots above it, the end
NONE = float("nan")  # the mean of untrained seeds
ROUNDING = 1e-9
DOT: dict[str, Any] = {"marker": "o", "markersize": 2.6, "linestyle": ""}
HOLLOW: dict[str, Any] = DOT | {"markerfacecolor": "white", "markeredgewidth": 0.8}


class Condition(NamedTuple):
    """A line's label and its points, of the seeds that have trained and of the others."""

    label: str
    line: sweep_lines.Line
    trained: list[Point]
    untrained: list[Point]


class Scale(NamedTuple):
    """A y axis: what is above `top` is shown at `above`, wherever it lies."""

    top: float
    above: float


@style.compact
def draw_order(table: pd.DataFrame, apart: Sequence[str] = ()) -> Drawn:
    """Test loss over GD's on the same tasks, by evaluation ordering; clean and each kind of noise in panels apart."""
    ratio = (table["test_loss"] / table["test_gd_loss"]).where(table["test_gd_loss"] > 0)
    used = table[table["done"] & ratio.notna()]
    if used.empty:
        return sweep_panels.nothing("no run is done", table)
    lines = sweep_lines.lines(used, along="ordering")
    present = set(used["ordering"])
    orderings = [name for name in ordered() if name in present] + sorted(present - set(ordered()))
    figure, drawn = sweep_panels.stack(lines, [*apart, "noise_mode"], HEIGHT)
    looks, series, untrained = Looks(lines), [], []
    for panel in drawn:
        conditions = [_condition(label, line, ratio, orderings) for label, line in panel.lines]
        _draw_panel(panel, looks, orderings, conditions)
        series += [Series(MODEL, MEASURE, one.line.settings, one.trained) for one in conditions]
        untrained += [Series(UNTRAINED, MEASURE, one.line.settings, one.untrained) for one in conditions]
    looks.explain_conditions(linestyle="")
    looks.explain(f"{DESCENT} (clean step)", color=style.DESCENT, linestyle="--")
    more = [f"small dots are seeds; {MEASURE} is paired by seed", _of_untrained(series, untrained)]
    if any(line.points for line in untrained):
        looks.explain(f"a seed {UNTRAINED}", **HOLLOW, color=INK)
    text = sweep_panels.described(lines, series, used, table, TASKS["test_loss"], *more)
    figure.align_ylabels()
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records([*series, *untrained]))


def _condition(label: str, line: sweep_lines.Line, ratio: pd.Series, orderings: Sequence[str]) -> Condition:
    def of(rows: pd.DataFrame) -> list[Point]:
        means = points(rows, rows["ordering"], ratio.loc[rows.index], "nonnegative")
        return sorted(means, key=lambda point: orderings.index(point.x))

    trained, untrained = of(line.rows[line.rows["trained"]]), of(line.rows[~line.rows["trained"]])
    return Condition(label, line, trained, [point._replace(mean=NONE, low=NONE, high=NONE) for point in untrained])


def _of_untrained(trained: Sequence[Series], untrained: Sequence[Series]) -> str:
    """What the caption says of seeds that are in no mean, and of how many the means beside them are."""
    seeds = sum(len(point.seeds) for line in untrained for point in line.points)
    if not seeds:
        return ""
    left = [_number(one, point.x) for one, line in zip(trained, untrained, strict=True) for point in line.points]
    counts = " to ".join(str(n) for n in dict.fromkeys((min(left), max(left))))
    aligned, gain = (criterion.threshold for criterion in outputs_of(named("regression")).criteria)
    criterion = f"cosine with GD below {aligned:g}, gain below {gain:g} of one step's, or no verdict"
    return f"hollow: seeds {UNTRAINED} ({criterion}), in no mean; there n = {counts}"


def _number(line: Series, x: Any) -> int:
    return next((len(point.seeds) for point in line.points if point.x == x), 0)


def _draw_panel(panel: Panel, looks: Looks, orderings: Sequence[str], conditions: Sequence[Condition]) -> None:
    """Draws the conditions side by side, and the axis around them."""
    scale = _scale(panel, conditions)
    for place, ordering in enumerate(orderings):
        here = [one for one in conditions if any(point.x == ordering for point in (*one.trained, *one.untrained))]
        for number, one in enumerate(here):
            shift = min(SHIFT, ROOM / len(here)) * (number - (len(here) - 1) / 2)
            x, look = place + shift, looks.of(one.line.settings["model"], one.label)
            for point in (point for point in one.trained if point.x == ordering):
                sweep_panels.error_bars(panel.axes, [x + ASIDE / 2], [point], **look | {"linestyle": ""})
                if len(point.values) > 1:
                    seeds = DOT | {"color": look["color"], "alpha": 0.45, "markeredgewidth": 0}
                    panel.axes.plot([x - ASIDE] * len(point.values), point.values, **seeds)
            for point in (point for point in one.untrained if point.x == ordering):
                _draw_untrained(panel, x - ASIDE, point.values, scale, look["color"])
    panel.axes.axhline(1, color=style.DESCENT, linestyle="--", zorder=1)
    panel.axes.set_ylabel(MEASURE)
    panel.axes.set_xlim(-0.5, len(orderings) - 0.5)
    panel.axes.set_xticks(range(len(orderings)), [_broken(name) for name in orderings])
    panel.axes.grid(False, axis="x")
    panel.axes.set_xlabel("ordering at evaluation" if panel.labelled else "")


def _draw_untrained(panel: Panel, x: float, values: Sequence[float], scale: Scale, colour: Any) -> None:
    """Hollow dots at their values, or side by side above the break."""
    beyond = [value for value in values if value > scale.top]
    inside = [value for value in values if value <= scale.top]
    places = [x + BESIDE * (number - (len(beyond) - 1) / 2) for number in range(len(beyond))]
    panel.axes.plot([x] * len(inside) + places, inside + [scale.above] * len(beyond), **HOLLOW, color=colour)


def _scale(panel: Panel, conditions: Sequence[Condition]) -> Scale:
    """An axis of all means, intervals and seeds that have trained; of the others, where none has."""
    shown = [1 - LEAST_RATIO, 1 + LEAST_RATIO]
    for point in (point for one in conditions for point in one.trained):
        shown += [point.mean, *point.values, *(end for end in (point.low, point.high) if end == end)]
    untrained = [value for one in conditions for point in one.untrained for value in point.values]
    shown += [value for value in untrained if value < min(shown) or not any(one.trained for one in conditions)]
    room = max(shown) - min(shown)
    scale = Scale(max(shown) + MARGIN * room, max(shown) + ABOVE * room)
    beyond = [value for value in untrained if value > scale.top]
    panel.axes.set_ylim(min(shown) - MARGIN * room, max(shown) + HEAD * room if beyond else scale.top)
    panel.axes.locator_params(axis="y", nbins=5)
    if beyond:
        _break(panel, max(shown) + BREAK * room, scale, beyond)
    return scale


def _break(panel: Panel, place: float, scale: Scale, beyond: Sequence[float]) -> None:
    """Breaks the axis: its ticks end there, and above stands the range of what is beyond."""
    ticks = [tick for tick in panel.axes.get_yticks() if panel.axes.get_ylim()[0] <= tick < scale.top]
    digits = max(0, math.ceil(-math.log10(ticks[1] - ticks[0]) - ROUNDING)) if len(ticks) > 1 else 2
    ends = dict.fromkeys(f"{end:.3g}" for end in (min(beyond), max(beyond)))
    labels = [*(f"{tick:.{digits}f}" for tick in ticks), "\N{EN DASH}".join(ends)]
    panel.axes.set_yticks([*ticks, scale.above], labels)
    panel.axes.axhspan(place, panel.axes.get_ylim()[1], color=style.PALE, zorder=0)
    slash: dict[str, Any] = {"marker": [(-1, -0.6), (1, 0.6)], "markersize": 5, "linestyle": "", "color": "black"}
    across = panel.axes.get_yaxis_transform()
    gap = BREAK / 3 * (scale.above - place) / (ABOVE - BREAK)
    panel.axes.plot([0, 0], [place - gap, place], transform=across, clip_on=False, zorder=5, **slash)


def _broken(name: str) -> str:
    """The name of an ordering in two lines."""
    return style.plain(name).replace("2", "2\n", 1)


# column -> its axis, where GD itself is
METRICS = {
    "align_cos": ("cosine of sensitivities\nto GD's", 1.0),
    "align_l2": ("RMS difference of\npredictions to GD's", 0.0),
}
SCALES = {"align_cos": "fisher", "align_l2": "nonnegative"}  # of their intervals
LETTERS = {1: 30, 2: 21}  # of a condition's name in one line, with this many panels
ROW, LINE = 0.18, 0.1  # inches that a condition needs, and a line of its name
BEYOND = 0.05  # of an axis, beyond where gradient descent is
TICKS = 3  # numbers below an axis, side by side


@style.compact
def draw_alignment(table: pd.DataFrame, apart: Sequence[str] = ()) -> Drawn:
    """How near the model is to gradient descent, in its sensitivities and in its predictions."""
    used = table[table["done"] & table[list(METRICS)].notna().all(axis=1)]
    if used.empty:
        return sweep_panels.nothing("no run is done", table)
    lines = sweep_lines.lines(used)
    names = sweep_panels.differing(lines, apart)
    groups = sweep_panels.by_setting(lines, names)
    shown = _conditions(lines, len(METRICS), {"model", *names})
    heights = [_height(list(dict.fromkeys(shown[id(line)] for line in group))) for group in groups.values()]
    if sum(heights) > PAGE_HEIGHT or len(METRICS) * len(heights) > PANELS:
        raise sweep_lines.too_large(used)
    figure, axes = style.column_figure(heights, len(METRICS), sharey="row")
    looks, series = Looks(lines), list[Series]()
    models = list(dict.fromkeys(line.settings["model"] for line in lines))
    for row, group in zip(axes, groups.values(), strict=True):
        series += _draw_group(row, group, shown, looks, models)
        row[0].set_title(style.plain(sweep_lines.labels([group[0].settings], names)[0]))
    looks.explain(DESCENT, color=style.DESCENT, linestyle="--")
    text = sweep_panels.described(lines, series, used, table, TASKS["alignment"])
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records(series))


def _draw_group(
    row: np.ndarray, group: Sequence[sweep_lines.Line], shown: dict[int, str], looks: Looks, models: Sequence[str]
) -> list[Series]:
    """A panel for each metric, in which the conditions of these lines have a row each."""
    names, series = list(dict.fromkeys(shown[id(line)] for line in group)), []
    for panel, (column, (text, same)) in zip(row, METRICS.items(), strict=True):
        for line in group:
            model = line.settings["model"]
            means = points(line.rows, column, line.rows[column], SCALES[column])
            at = names.index(shown[id(line)]) + 0.55 * ((models.index(model) + 0.5) / len(models) - 0.5)
            sweep_panels.error_bars(panel, [at], means, across=True, **looks.of_model(model))
            looks.explain(model, **looks.of_model(model))
            series.append(Series(MODEL, column, line.settings, means))
        panel.axvline(same, color=style.DESCENT, linestyle="--", zorder=1)
        low, high = panel.get_xlim()
        panel.set_xlim(sweep_panels.widen((low, high), same, BEYOND * (max(high, same) - min(low, same))))
        panel.set_xlabel(text)
        panel.locator_params(axis="x", nbins=TICKS)
    _label(row, names)
    return series


def _conditions(lines: Sequence[sweep_lines.Line], columns: int, apart: set[str]) -> dict[int, str]:
    """The name of each line's row: all settings that differ, but those that have panels of their own."""
    line_settings = [line.settings for line in lines]
    differing = [name for name in sweep_lines.split(line_settings)[0] if name not in apart]
    of_lines = sweep_lines.labels(line_settings, differing or ["ordering"])
    folded = {name: textwrap.fill(style.plain(name), LETTERS[columns]) for name in of_lines}
    return {id(line): folded[name] for line, name in zip(lines, of_lines, strict=True)}


def _height(names: Sequence[str]) -> float:
    lines = 1 + max(name.count("\n") for name in names)
    return (len(names) + 0.2) * max(ROW, LINE * lines + 0.03)


def _label(axes: np.ndarray, names: Sequence[str]) -> None:
    """Rows from the top down; axes share them."""
    for panel in axes:
        panel.set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.4, -0.6)
