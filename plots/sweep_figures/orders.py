"""Dots over the ordering at evaluation: a small one for each seed, and their mean. Each is another trained model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plots import style
from plots.sweep_figures import grouping, panels
from plots.sweep_figures.grouping import ordered
from plots.sweep_figures.panels import DESCENT, MODEL, Drawn, Looks, Panel
from plots.sweep_figures.points import Point, Series, points, records
from plots.sweep_figures.table import TASKS

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 0.85  # inches of a panel
MEASURE = "loss / GD's loss"
LEAST_RATIO = 0.02  # that an axis shows on either side of 1: what hardly differs must look so
SHIFT = 0.2  # between conditions that share an ordering
ASIDE = 0.07  # of the seeds' dots, from their mean
PLATEAU = 1.5  # loss over GD's above which a seed has hardly learned
MARGIN, HEAD = 0.06, 0.22  # of an axis: beyond what it shows, and for the values of seeds on the plateau


@style.compact
def draw_order(table: pd.DataFrame) -> Drawn:
    """Test loss over GD's on the same tasks, by evaluation ordering; clean and each kind of noise in panels apart."""
    ratio = (table["test_loss"] / table["gd_loss"]).where(table["gd_loss"] > 0)
    used = table[table["done"] & ratio.notna()]
    if used.empty:
        return panels.nothing("no cell is done", table)
    lines = grouping.lines(used, along="ordering")
    present = set(used["ordering"])
    orderings = [name for name in ordered() if name in present] + sorted(present - set(ordered()))
    figure, drawn = panels.stack(lines, ["noise_mode"], HEIGHT)
    looks, series, outside = Looks(lines), [], 0
    for panel in drawn:
        found = [
            sorted(points(line.rows, line.rows["ordering"], ratio), key=lambda point: orderings.index(point.x))
            for _, line in panel.lines
        ]
        series += [
            Series(MODEL, MEASURE, line.settings, those) for (_, line), those in zip(panel.lines, found, strict=True)
        ]
        outside += _draw_panel(panel, looks, orderings, found)
    looks.explain_conditions(linestyle="")
    looks.explain(f"{DESCENT} (clean step)", color=style.DESCENT, linestyle="--")
    more = [f"small dots are seeds; {MEASURE} is paired by seed", _outside(outside)]
    text = panels.described(lines, series, used, table, TASKS["test_loss"], *more)
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records(series))


def _outside(seeds: int) -> str:
    """What the caption says of seeds that are no dots."""
    if not seeds:
        return ""
    what = "the value of a seed" if seeds == 1 else f"{seeds} values of seeds"
    return f"arrows: {what} on the plateau, above {PLATEAU:g}, in the means and intervals but off the axes"


def _draw_panel(panel: Panel, looks: Looks, orderings: Sequence[str], found: Sequence[Sequence[Point]]) -> int:
    """Draws the conditions side by side; returns how many seeds are shown as arrows."""
    values = [value for those in found for point in those for value in point.values]
    most = PLATEAU if min(values) <= PLATEAU else float("inf")  # where none has learned, all are shown
    outside = 0
    for place, ordering in enumerate(orderings):
        here = [
            (looks.of(line.settings["model"], name), point)
            for (name, line), those in zip(panel.lines, found, strict=True)
            for point in those
            if point.x == ordering
        ]
        arrows = 0
        for number, (look, point) in enumerate(here):
            x = place + SHIFT * (number - (len(here) - 1) / 2)
            panels.error_bars(panel.axes, [x + ASIDE / 2], [point], **look | {"linestyle": ""})
            inside = [value for value in point.values if value <= most]
            if len(point.values) > 1:
                panel.axes.plot([x - ASIDE] * len(inside), inside, ".", color=look["color"], alpha=0.5, markersize=2.5)
            for value in point.values:
                if value > most:
                    _arrow(panel, x, value, look["color"], arrows)
                    arrows += 1
        outside += arrows
    _limits(panel, found, most, bool(outside))
    panel.axes.axhline(1, color=style.DESCENT, linestyle="--", zorder=1)
    panel.axes.set_ylabel(MEASURE)
    panel.axes.set_xlim(-0.5, len(orderings) - 0.5)
    panel.axes.set_xticks(range(len(orderings)), [_broken(name) for name in orderings])
    panel.axes.grid(False, axis="x")
    panel.axes.locator_params(axis="y", nbins=5)
    panel.axes.set_xlabel("ordering at evaluation" if panel.lowest else "")
    return outside


def _arrow(panel: Panel, x: float, value: float, colour: Any, number: int) -> None:
    """A seed beyond the panel's upper edge, several of one ordering below each other."""
    where: dict[str, Any] = {"transform": panel.axes.get_xaxis_transform(), "va": "top", "ha": "center"}
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # over the interval, which leaves the axes
    words = f"\N{UPWARDS ARROW}{value:.2f}"
    panel.axes.text(x, 1.0 - 0.1 * number, words, color=colour, fontsize=6.5, bbox=paper, zorder=5, **where)


def _limits(panel: Panel, found: Sequence[Sequence[Point]], most: float, head: bool) -> None:
    """Every mean and every seed that has learned, and the intervals of those conditions whose seeds all have."""
    shown = [1 - LEAST_RATIO, 1 + LEAST_RATIO]
    for point in (point for those in found for point in those):
        shown += [point.mean, *(value for value in point.values if value <= most)]
        shown += [end for end in (point.low, point.high) if end == end and max(point.values) <= most]
    room = max(shown) - min(shown)
    panel.axes.set_ylim(min(shown) - MARGIN * room, max(shown) + (HEAD if head else MARGIN) * room)


def _broken(name: str) -> str:
    """The name of an ordering in two lines."""
    return style.plain(name).replace("2", "2\n", 1)
