"""Dots over the ordering at evaluation: a small one for each seed, and their mean. Each is another trained model.

Seeds that have not trained have hollow dots and are excluded from the means. Where they would stretch the axis, it is
broken, and the range of their values is given above the break.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from icl_lab.lab.configs.registry import named, outputs_of
from icl_lab.plots import style
from icl_lab.plots.sweep_figures import grouping, panels
from icl_lab.plots.sweep_figures.grouping import ordered
from icl_lab.plots.sweep_figures.panels import DESCENT, INK, MODEL, Drawn, Looks, Panel
from icl_lab.plots.sweep_figures.points import Point, Series, points, records
from icl_lab.plots.sweep_figures.table import TASKS

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 0.95  # inches of a panel
MEASURE = "loss / GD's loss"
UNTRAINED = "not trained"  # the series of these seeds
LEAST_RATIO = 0.02  # least span of an axis on either side of 1, so that small differences look small
SHIFT = 0.2  # between conditions that share an ordering
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
    line: grouping.Line
    trained: list[Point]
    untrained: list[Point]


class Scale(NamedTuple):
    """A y axis: what is above `top` is shown at `above`, wherever it lies."""

    top: float
    above: float


@style.compact
def draw_order(table: pd.DataFrame) -> Drawn:
    """Test loss over GD's on the same tasks, by evaluation ordering; clean and each kind of noise in panels apart."""
    ratio = (table["test_loss"] / table["test_gd_loss"]).where(table["test_gd_loss"] > 0)
    used = table[table["done"] & ratio.notna()]
    if used.empty:
        return panels.nothing("no cell is done", table)
    lines = grouping.lines(used, along="ordering")
    present = set(used["ordering"])
    orderings = [name for name in ordered() if name in present] + sorted(present - set(ordered()))
    figure, drawn = panels.stack(lines, ["noise_mode"], HEIGHT)
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
    text = panels.described(lines, series, used, table, TASKS["test_loss"], *more)
    figure.align_ylabels()
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records([*series, *untrained]))


def _condition(label: str, line: grouping.Line, ratio: pd.Series, orderings: Sequence[str]) -> Condition:
    def of(rows: pd.DataFrame) -> list[Point]:
        return sorted(points(rows, rows["ordering"], ratio), key=lambda point: orderings.index(point.x))

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
            x, look = place + SHIFT * (number - (len(here) - 1) / 2), looks.of(one.line.settings["model"], one.label)
            for point in (point for point in one.trained if point.x == ordering):
                panels.error_bars(panel.axes, [x + ASIDE / 2], [point], **look | {"linestyle": ""})
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
    panel.axes.set_xlabel("ordering at evaluation" if panel.lowest else "")


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
