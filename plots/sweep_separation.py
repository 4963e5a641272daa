"""Whether noisy pairs are separated: a row for each model and score, and what a detector could reach on the same pairs.

A row holds all conditions: the marker says how it was tested, its filling how it was trained. What does not depend on
the training has one dot for all of them.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.plots import style, sweep_lines, sweep_panels
from icl_lab.plots.choice import PAGE_HEIGHT, PANELS
from icl_lab.plots.sweep_lines import Line
from icl_lab.plots.sweep_panels import DESCENT, INK, MODEL, Drawn, Looks, Part
from icl_lab.plots.sweep_table import DETECTORS, TASKS, Point, Series, points, records
from icl_lab.src.registries import BY_DIFFICULTY

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

AUROC = "AUROC"  # the measure, which is also the axis' label
POSITION = "position alone"
LEAST_AUROC = 0.03  # that the axis shows on either side of .5
OF_TRAINING = ("steps", "results_version")  # and all that begins with train_
MARKERS = ("o", "s", "^", "D", "v", "P")
FILLS: tuple[dict[str, Any], ...] = (
    {},
    {"markerfacecolor": "white"},
    *({"fillstyle": half, "markerfacecoloralt": "white"} for half in ("left", "right", "top", "bottom")),
)
DOT, GAP, LINE = 0.055, 0.07, 0.1  # inches that a dot of a row needs, between rows, and a line of a row's name
LETTERS, TITLE = 17, 42  # of a row's name in one line, and of a title over all panels
COLUMNS = 2
FAR, TICKS, TICKS_NEAR = 0.25, 5, 3  # a span of AUROC with short numbers, and how many fit below an axis
BY_CONSTRUCTION = {  # noise mode -> what is at .5 by construction
    "label_noise": "under label_noise GD's |influence|, which is of inputs alone",
    "random_pairs": "any score of one random pair, which alone has the distribution of a clean one",
}


class Condition(NamedTuple):
    """A line, how it was tested and how it was trained; pooled over trainings, it is trained None."""

    line: Line
    tested: str
    trained: str | None


class Row(NamedTuple):
    """Its name and colour, whose the numbers are, their column, and the conditions of a panel that it is of."""

    name: str
    colour: Any
    owner: str
    column: str
    conditions: Callable[[Sequence[Condition]], list[Condition]]
    found: dict[int, list[tuple[Condition, Point]]]  # its dots, by the panel's identity

    def dots(self, panel: Sequence[Condition]) -> list[tuple[Condition, Point]]:
        """Its conditions in a panel with their points, if they have any."""
        if id(panel) not in self.found:
            self.found[id(panel)] = self._dots(panel)
        return self.found[id(panel)]

    def _dots(self, panel: Sequence[Condition]) -> list[tuple[Condition, Point]]:
        return [
            (condition, point)
            for condition in self.conditions(panel)
            for point in points(condition.line.rows, self.owner, condition.line.rows[self.column], "fraction")
        ]


@style.compact
def draw_separation(table: pd.DataFrame, apart: Sequence[str] = ()) -> Drawn:
    """Position-matched AUROC, clean against noisy pairs: detectors, gradient descent, models, and position alone."""
    noisy = table[table["noisy"]]
    used = noisy[noisy["done"] & noisy["auroc"].notna()]
    if used.empty:
        return sweep_panels.nothing_noisy(table)
    lines = sweep_lines.lines(used)
    names, parts = sweep_panels.parts(lines, [*apart, "noise_mode"])
    if len(parts) > PANELS:
        raise sweep_lines.too_large(used)
    split = _split(lines, names, parts)
    looks, marks = Looks(lines), Marks([condition for part in split for condition in part])
    groups = _groups(lines, looks, split)
    columns = min(COLUMNS, len(parts))
    places = _places(groups, split)
    if places.height * math.ceil(len(parts) / columns) > PAGE_HEIGHT:
        raise sweep_lines.too_large(used)
    figure, axes = style.column_figure(
        [places.height] * math.ceil(len(parts) / columns), columns, sharex=True, sharey=True
    )
    for panel in axes.flat[len(parts) :]:
        panel.set_axis_off()
    series = []
    for panel, part, conditions in zip(axes.flat, parts, split, strict=False):
        title = sweep_lines.labels([part[0][1].settings], names or ["noise_mode"])[0]
        panel.set_title(textwrap.fill(style.plain(title), TITLE // columns))
        series += list(_draw_panel(panel, conditions, groups, places, marks))
    _label(axes, places)
    marks.explain(looks)
    more = [f"AUROC within positions, of {_scores(groups)}: above .5 if clean pairs score higher", _null(lines)]
    text = sweep_panels.described(lines, series, used, table, TASKS["auroc"], *more)
    style.finish(figure, looks.handles, text)
    return Drawn(figure, records(series))


def _split(lines: Sequence[Line], apart: Sequence[str], parts: Sequence[Part]) -> list[list[Condition]]:
    """The conditions of each panel."""
    line_settings = [line.settings for line in lines]
    inside = [name for name in sweep_lines.split(line_settings)[0] if name not in ("model", *apart)]
    training = [name for name in inside if name.startswith("train_") or name in OF_TRAINING]
    labels = (
        sweep_lines.labels(line_settings, names) for names in ([n for n in inside if n not in training], training)
    )
    conditions = {id(line): Condition(line, *words) for line, *words in zip(lines, *labels, strict=True)}
    return [[conditions[id(line)] for _, line in part] for part in parts]


def _pooled(panel: Sequence[Condition]) -> list[Condition]:
    """The conditions of all models and trainings as one, for each way of testing."""
    ways = dict.fromkeys(condition.tested for condition in panel)
    return [
        Condition(sweep_lines.pooled([condition.line for condition in panel if condition.tested == way]), way, None)
        for way in ways
    ]


def _groups(lines: Sequence[Line], looks: Looks, split: Sequence[Sequence[Condition]]) -> list[list[Row]]:
    """The rows that have numbers: of detectors, of gradient descent and the models, of position alone."""
    models = list(dict.fromkeys(line.settings["model"] for line in lines))

    def own(model: str) -> Callable[[Sequence[Condition]], list[Condition]]:
        return lambda panel: [condition for condition in panel if condition.line.settings["model"] == model]

    def of_models(name: str, owner: str, column: str, colour: Any = None) -> list[Row]:
        colours = {model: colour or looks.of_model(model)["color"] for model in models}
        return [Row(name.format(model), colours[model], owner, column, own(model), {}) for model in models]

    detectors = [Row(name, INK, name, column, _pooled, {}) for column, name in DETECTORS.items()]
    descent = Row(DESCENT, style.DESCENT, DESCENT, "gd_auroc", _pooled, {})
    where = f"{POSITION}, {{}}" if len(models) > 1 else POSITION
    groups = [
        detectors,
        [descent, *of_models("{}", MODEL, "auroc")],
        of_models(where, POSITION, "auroc_position", style.GREY),
    ]
    row_groups = [[row for row in group if any(row.dots(panel) for panel in split)] for group in groups]
    return [group for group in row_groups if group]


class Places(NamedTuple):
    """Where rows are, in inches from the top: each one's middle by its name, what parts groups, and the end."""

    middles: dict[str, float]
    between: list[float]
    height: float


def _places(groups: Sequence[Sequence[Row]], split: Sequence[Sequence[Condition]]) -> Places:
    middles, between, end = {}, [], 0.0
    for group in groups:
        between.append(end)
        for row in group:
            dots = max(len(row.dots(panel)) for panel in split)
            height = GAP + max(DOT * dots, LINE * (_folded(row.name).count("\n") + 1))
            middles[row.name] = end + height / 2
            end += height
    return Places(middles, between[1:], end)


def _folded(name: str) -> str:
    return textwrap.fill(style.plain(name), LETTERS)


def _draw_panel(
    panel: Axes, conditions: Sequence[Condition], groups: Sequence[Sequence[Row]], places: Places, marks: Marks
) -> Iterator[Series]:
    panel.axvline(0.5, color=style.GREY, linewidth=0.7, zorder=1)
    for place in places.between:
        panel.axhline(place, color=style.GREY, linewidth=0.5, zorder=1)
    for row in (row for group in groups for row in group):
        dots = row.dots(conditions)
        for number, (condition, point) in enumerate(dots):
            at = places.middles[row.name] + DOT * (number - (len(dots) - 1) / 2)
            look = {"color": row.colour} | marks.look(condition)
            sweep_panels.error_bars(panel, [at], [point], across=True, **look)
            yield Series(row.owner, AUROC, condition.line.settings, [point])


def _label(axes: np.ndarray, places: Places) -> None:
    """Names the rows, which panels share, and scales the axes."""
    first = axes.flat[0]
    first.set_yticks(list(places.middles.values()), [_folded(name) for name in places.middles])
    first.set_ylim(places.height, 0)
    first.set_xlim(np.clip(sweep_panels.widen(first.get_xlim(), 0.5, LEAST_AUROC), 0, 1))
    for panel in axes.flat:
        panel.grid(False, axis="y")
    for panel in axes[-1]:
        panel.set_xlabel(AUROC)
        low, high = panel.get_xlim()
        ticks = TICKS if high - low > FAR else TICKS_NEAR
        panel.locator_params(axis="x", nbins=ticks, steps=[1, 2.5, 5, 10])  # so that .5 is one of them


def _scores(groups: Sequence[Sequence[Row]]) -> str:
    """What the caption says the AUROCs are of."""
    detecting = any(row.owner in DETECTORS.values() for group in groups for row in group)
    return "|influence|" + ", and of two detectors that compare the pairs" * detecting


def _null(lines: Sequence[Line]) -> str:
    """What the caption says of scores that are at .5 by construction, where the order of pairs leaves them there."""
    if any(line.settings["ordering"] in BY_DIFFICULTY for line in lines):
        return ""
    modes = dict.fromkeys(line.settings["noise_mode"] for line in lines)
    reasons = ", and ".join(BY_CONSTRUCTION[mode] for mode in modes if mode in BY_CONSTRUCTION)
    return f"at .5 by construction: {reasons}" if reasons else ""


class Marks:
    """A marker for each way of testing, a filling for each way of training; what is of all trainings is full."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        tested = dict.fromkeys(condition.tested for condition in conditions)
        trained = dict.fromkeys(condition.trained for condition in conditions)
        self._markers = {way: MARKERS[number % len(MARKERS)] for number, way in enumerate(tested)}
        self._fills = {way: FILLS[number % len(FILLS)] for number, way in enumerate(trained)}

    def look(self, condition: Condition) -> dict[str, Any]:
        """How its dot looks, but for the colour."""
        fill = {} if condition.trained is None else self._fills[condition.trained]
        return {"marker": self._markers[condition.tested], "linestyle": "", "markersize": 3} | fill

    def explain(self, looks: Looks) -> None:
        """Puts markers and fillings into the legend, where there are several."""
        for way, marker in self._markers.items():
            if len(self._markers) > 1:
                looks.explain(way, color=INK, marker=marker, linestyle="")
        for trained, fill in self._fills.items():
            if len(self._fills) > 1 and trained is not None:
                looks.explain(trained, color=INK, marker="o", linestyle="", **fill)
