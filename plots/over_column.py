"""Axes of any column: linear, logarithmic, or a place for each word; lines of means with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.plots import style, sweep_panels
from icl_lab.plots.choice import holds_numbers, levels
from icl_lab.plots.sweep_table import Point

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FACTOR = 8.0  # between the largest value and the smallest one of an x axis that may be logarithmic
DECADES = 30.0  # the same of a y axis
NUDGE, ROOM = 0.05, 0.6  # between lines: inches, and of all lines together, of the least distance of two values
LETTER = 0.055  # inches of a letter of a tick's label
BESIDE = 0.6  # inches of a panel that are not of its axis
TICKS = 8  # on an axis of numbers, at most: more are chosen by matplotlib
BINS = 5  # between the ticks of a linear y axis, however high it is


class Axis(NamedTuple):
    """The values along x in order, and how they lie: "linear", "log" or "words"."""

    values: list[Any]
    spacing: str

    def places(self, values: Sequence[Any]) -> np.ndarray:
        """Where these values are, in the units of the axis before its logarithm."""
        if self.spacing == "words":
            return np.array([self.values.index(value) for value in values], float)
        return np.asarray(values, float)

    def span(self) -> float:
        """From the first to the last of the values, on an axis that is not logarithmic."""
        first, last = self.places([self.values[0], self.values[-1]])
        return float(last - first) or 1.0

    def nearest(self) -> float:
        """The least distance of two values, over the span."""
        places = self.places(self.values)
        places = np.log(places) if self.spacing == "log" else places
        return float(np.diff(places).min() / (places[-1] - places[0])) if len(places) > 1 else 1.0


class Place(NamedTuple):
    """A line's number among those of a panel, so that lines with the same x stand side by side."""

    number: int
    of: int

    def shift(self) -> float:
        """How many lines it stands beside the middle one."""
        return self.number - (self.of - 1) / 2


def axis_of(values: pd.Series) -> Axis:
    """Numbers from the smallest to the largest; words, truth values and what includes infinity have a place each."""
    different = levels(values)
    if not holds_numbers(values) or not np.isfinite(np.array(different, float)).all():
        return Axis(different, "words")
    return Axis(different, "log" if is_spread(np.array(different, float), FACTOR) else "linear")


def is_spread(values: np.ndarray, factor: float) -> bool:
    """Whether a logarithmic axis shows sorted values better: over a large factor, the nearest two further apart."""
    if len(values) < 2 or values[0] <= 0 or values[-1] / values[0] < factor:
        return False
    return Axis([*values], "log").nearest() > Axis([*values], "linear").nearest()


def draw_line(panel: Axes, axis: Axis, line: Sequence[Point], place: Place, look: dict[str, Any]) -> None:
    """Means with their intervals, joined along numbers, a little beside those of other lines."""
    ordered = sorted(line, key=lambda point: axis.values.index(point.x))
    x = axis.places([point.x for point in ordered])
    room = min(NUDGE / _inches(panel), ROOM * axis.nearest() / place.of)
    if axis.spacing == "words":
        look = look | {"linestyle": ""}
    if axis.spacing == "log":
        x = x * (axis.values[-1] / axis.values[0]) ** (room * place.shift())
    else:
        x = x + room * place.shift() * axis.span()
    sweep_panels.error_bars(panel, list(x), ordered, **look)


def finish_axes(panels: Sequence[Axes], axis: Axis, points: Sequence[Point]) -> None:
    """Scales and ticks of the axes that all panels share."""
    import pandas as pd

    shown = pd.DataFrame([(point.mean, point.low, point.high) for point in points], columns=["mean", "low", "high"])
    means = np.sort(shown["mean"].to_numpy())
    for panel in panels:
        if axis.spacing == "words":
            _word_ticks(panel, [_word(value) for value in axis.values])
        else:
            _number_ticks(panel, axis)
        if len(means) > 1 and means[0] > 0 and means[-1] / means[0] >= DECADES:
            panel.set_yscale("log")
            panel.set_ylim(style.log_limits(shown))
        else:
            panel.locator_params(axis="y", nbins=BINS)
        panel.tick_params(labelbottom=True, labelleft=True)


def _word(value: Any) -> str:
    return style.plain(value if isinstance(value, str) else style.INFINITE[0] if value == np.inf else f"{value:g}")


def _word_ticks(panel: Axes, words: list[str]) -> None:
    upright = max(map(len, words)) * len(words) > _inches(panel) / LETTER
    panel.set_xticks(range(len(words)), words, rotation=90 if upright else 0)
    panel.set_xlim(-0.5, len(words) - 0.5)
    panel.grid(False, axis="x")


def _number_ticks(panel: Axes, axis: Axis) -> None:
    """Ticks at the values, where they are few; those of a logarithmic axis are plain numbers."""
    if axis.spacing == "log":
        panel.set_xscale("log")
        decades = np.log10(axis.values[-1] / axis.values[0])
        style.few_ticks(panel.xaxis, (1.0,) if decades > 2 else (1.0, 2.0, 5.0))
    elif all(float(value).is_integer() for value in axis.values):
        panel.locator_params(axis="x", integer=True)
    if len(axis.values) <= TICKS:
        kept = _with_room(axis, _inches(panel))
        panel.set_xticks(kept, [f"{value:g}" for value in kept])


def _with_room(axis: Axis, inches: float) -> list[float]:
    """Values whose numbers leave each other room, from the largest down."""
    places = np.log(axis.values) if axis.spacing == "log" else np.array(axis.values, float)
    unit = inches / ((places[-1] - places[0]) or 1.0)
    kept: list[int] = []
    for number in reversed(range(len(places))):
        room = LETTER * (len(f"{axis.values[number]:g}") + len(f"{axis.values[kept[-1]]:g}") + 2) / 2 if kept else 0
        if not kept or (places[kept[-1]] - places[number]) * unit >= room:
            kept.append(number)
    return [axis.values[number] for number in reversed(kept)]


def _inches(panel: Axes) -> float:
    """About the width of its axis."""
    place, figure = panel.get_subplotspec(), panel.get_figure(root=True)
    columns = place.get_gridspec().ncols if place else 1
    return (figure.get_figwidth() if figure else style.COLUMN) / columns - BESIDE


def label_axes(panels: Sequence[Axes], x: str, y: str) -> None:
    """The columns' names, on every panel."""
    for panel in panels:
        panel.set_xlabel(style.plain(x))
        panel.set_ylabel(style.plain(y))
