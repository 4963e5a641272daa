"""Curves from a table of panel, series, x, mean, low, high, seeds: a panel below another.

Rows are means with intervals. Rows with a `seed` are that seed's own values; rows with `censored` "above" or "below"
are bounds on a seed's value; `diverged` counts seeds whose values are too large to draw. `average` "geometric": of
logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import curve_marks, style
from icl_lab.store.readers import StoreError, expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

HEIGHT, LONE_HEIGHT = 1.05, 1.7  # inches of a panel, of one alone
SHORT = 30.0  # last over first of a logarithmic axis, below which matplotlib's minor labels overlap
TEXT = ("panel", "series")
GEOMETRIC = "geometric"  # average
NUMBERS = ("x", "mean", "low", "high", "seeds")
# series -> how it looks, where a series has a look of its own
LOOKS: Mapping[str, dict[str, Any]] = {
    "Gradient descent": {"color": style.DESCENT, "linestyle": "-"},
    "Trained Transformer": {"color": style.TRANSFORMER, "marker": "+", "linestyle": "none", "markersize": 4},
    "GD++": {"color": style.OTHER, "linestyle": "--"},
    "GD, per-step sizes": {"color": "#000000", "linestyle": (0, (3, 2))},
    "GD++, best": {"color": style.OTHER},
    "GD++, the paper's": {"color": "#882255", "linestyle": (0, (3, 2))},
    "Interpolated": {"color": style.GREY, "linestyle": ":"},
    "Control": {"color": style.DESCENT, "linestyle": "--"},
    "Sine": {"color": style.GREY, "linestyle": ":"},
    "Conjugate gradients": {"color": style.OTHER, "linestyle": "--"},
    "Newton-Schulz": {"color": style.GREY, "linestyle": ":"},
    "Ridge (Bayes)": {"color": "#000000", "linestyle": "-."},
    "Ridge": {"color": "#000000", "linestyle": "-."},
    "dMMSE": {"color": style.OTHER, "linestyle": "--"},
    "Best by position": {"color": style.GREY, "linestyle": "-"},
    "From predictions": {"color": style.TRANSFORMER, "marker": "o", "linestyle": "none", "markersize": 3},
    "From derivatives": {"color": style.OTHER, "marker": "x", "linestyle": "none", "markersize": 3},
    "Smoothed dMMSE": {"color": style.GREY, "linestyle": ":"},
    "own token": {"color": style.SERIES[0]},
    "next token": {"color": style.SERIES[1]},
    "other token": {"color": "#000000", "linestyle": ":"},
}
ALONE: dict[str, Any] = {"marker": "o", "markersize": 3}  # a series of one point
ORDERED = "M = "  # how the names of series begin that are coloured in order
COUNTED = ("GD Steps / Transformer Layers", "rank", "position", "component", "labels replaced")  # axes of whole numbers
MOST_TICKS = 11
AS_LINES = ("training step", "x", "share of the other model")  # axes along which a transformer is a line, not points


@style.compact
def draw_curves(source: Path, labels: Mapping[str, Any], to: Path | None = None) -> list[Path]:
    """Draws a table's curves next to it, as .png and .pdf; labels: title, x_label, y_label, log_x, log_y.

    log_y: whether y is logarithmic, or the panels in which it is. interval: there where they are exact;
    level: theirs, of earlier tables .95.
    """
    table = read_csv(source, NUMBERS, TEXT, infinite=("x",)).fillna({"panel": ""})
    _check_marks(source, table)
    with expecting(source, "a table of curves"):
        return style.save_both(_figure(table, labels), to or source)


def _check_marks(source: Path, table: pd.DataFrame) -> None:
    for name in {"seed", "diverged"} & {*table.columns}:
        if table[name].dtype.kind not in "iuf":
            raise StoreError(f"{source} is not a table of curves: its column {name} does not hold numbers")
    if "censored" in table and not table["censored"].dropna().isin(curve_marks.WAYS).all():
        raise StoreError(f"{source} has values of censored that are none of {', '.join(curve_marks.WAYS)}")


def _figure(table: pd.DataFrame, labels: Mapping[str, Any]) -> Figure:
    table, ticks = _with_infinity(_with_marks(table))
    panels, looks = list(dict.fromkeys(table["panel"])), _looks(table, labels)
    figure, axes = style.column_figure([LONE_HEIGHT if len(panels) == 1 else HEIGHT] * len(panels))
    handles: dict[str, Line2D] = {}
    for panel, name in zip(axes[:, 0], panels, strict=True):
        rows = table[table["panel"] == name]
        for series, handle in _draw_panel(panel, rows, looks).items():
            handles.setdefault(series, handle)
        _set_axes(panel, rows, labels, is_log(labels["log_y"], name))
        panel.set_title(style.plain(name))
        panel.set_ylabel(labels["y_label"])
    for panel in axes[:, 0] if ticks else ():
        panel.set_xticks([*ticks], [*ticks.values()])
        panel.set_xlim(*_around(table["x"], panel.get_xscale() == "log"))
        panel.minorticks_off()
    for panel, name in zip(axes[:, 0], panels, strict=True):  # where the axes lie is known now
        _draw_marks(panel, table[table["panel"] == name], looks)
    axes[-1, 0].set_xlabel(labels["x_label"])
    style.finish(figure, handles | curve_marks.handles(table), f"{labels['title']}; {_seeds(table, labels)}")
    return figure


def _with_marks(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the columns that mark rows, empty where it has none."""
    empty = {"seed": float("nan"), "censored": "", "diverged": 0, "average": ""}
    table = table.assign(**{name: value for name, value in empty.items() if name not in table})
    return table.fillna({"censored": "", "average": ""})


def is_log(log_y: bool | Collection[str], panel: str) -> bool:
    """Whether y is logarithmic in a panel."""
    return log_y if isinstance(log_y, bool) else panel in log_y


def _looks(table: pd.DataFrame, labels: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """How each series looks, in all panels: a table's look, a place in an order, or a colour of the spare ones."""
    names = list(dict.fromkeys(table["series"]))
    ordered = style.in_order([name for name in names if name.startswith(ORDERED)])
    spare = [name for name in names if name not in LOOKS and name not in ordered]
    looks = {name: dict(LOOKS.get(name) or {"color": ordered.get(name)}) for name in names}
    for number, name in enumerate(spare):
        again, colour = divmod(number, len(style.SERIES))
        looks[name] = {"color": style.SERIES[colour], "linestyle": "--" if again else "-"}
    for look in looks.values() if labels["x_label"] in AS_LINES else ():
        if "marker" in look:
            del look["marker"], look["linestyle"], look["markersize"]
    return looks


def _with_infinity(table: pd.DataFrame) -> tuple[pd.DataFrame, dict[float, str]]:
    """The table with an infinite x two octaves to the right of the others, and all ticks then; else no ticks."""
    finite = sorted(set(table["x"][np.isfinite(table["x"])]))
    if len(finite) == table["x"].nunique():
        return table, {}
    end = 4 * finite[-1] if finite else 1.0
    shown = finite[:: math.ceil(len(finite) / MOST_TICKS)]
    return table.assign(x=table["x"].clip(upper=end)), {x: f"{x:g}" for x in shown} | {end: "∞"}


def _around(values: pd.Series, log: bool) -> tuple[float, float]:
    """Limits of an axis around these values."""
    low, high = (math.log(v) if log else v for v in (values.min(), values.max()))
    room = 0.05 * (high - low) or 1.0
    ends = (low - room, high + room)
    return (math.exp(ends[0]), math.exp(ends[1])) if log else ends


def _seeds(table: pd.DataFrame, labels: Mapping[str, Any]) -> str:
    """Of how many seeds the means are, with which intervals, and how many are drawn one by one, in words."""
    said, means = [], table.loc[table["seed"].isna() & table["mean"].notna(), "seeds"]
    if len(means):
        fewest, most = int(means.min()), int(means.max())
        counts = f"{most if fewest == most else f'{fewest} to {most}'} seeds"
        level, exact = 100 * labels.get("level", style.EARLIER_LEVEL), "exact " * ("interval" in labels)
        intervals = f", {level:g} % {exact}intervals" if (table["low"] < table["high"]).any() else ""
        geometric = table["average"] == GEOMETRIC
        kind = "geometric means" if geometric[table["mean"].notna() & table["seed"].isna()].all() else "means"
        said.append("one seed" if most == 1 else f"{kind} of {counts}{intervals}")
        said += ["dots: seeds"] * bool(table["seed"].notna().any())
        said += ["geometric on log axes"] * bool(geometric.any() and kind == "means")
    elif table["seed"].notna().any():
        said.append(f"{table['seed'].nunique()} seeds")
    return "; ".join(said)


def _draw_panel(panel: Axes, table: pd.DataFrame, looks: Mapping[str, dict[str, Any]]) -> dict[str, Line2D]:
    """Draws a panel's means and seeds, and gives a handle for each of its series."""
    from matplotlib.lines import Line2D

    handles = {}
    for name, rows in table.groupby("series", sort=False):
        look = looks[str(name)]
        means = rows[rows["seed"].isna() & rows["mean"].notna()].sort_values("x")
        seeds = rows[rows["seed"].notna() & (rows["censored"] == "")]
        curve_marks.draw_seeds(panel, seeds, look, alone=means.empty)
        if len(means):
            look = look | (ALONE if len(means) == 1 else {})
            _draw_means(panel, means, look, str(name), alone=seeds.empty)
        handles[str(name)] = Line2D([], [], **look)
    return handles


def _draw_means(panel: Axes, rows: pd.DataFrame, look: Mapping[str, Any], name: str, alone: bool) -> None:
    """A series' means with their intervals: a band, or, where there are markers or seeds beside them, bars."""
    panel.plot(rows["x"], rows["mean"], label=style.plain(name), **look)
    if "marker" in look or not alone:
        panel.vlines(rows["x"], rows["low"], rows["high"], color=look["color"], linewidth=0.8)
    else:
        panel.fill_between(rows["x"], rows["low"], rows["high"], color=look["color"], alpha=0.2, linewidth=0)


def _draw_marks(panel: Axes, table: pd.DataFrame, looks: Mapping[str, dict[str, Any]]) -> None:
    """Draws what is cut off and what has diverged."""
    colours = {name: look["color"] for name, look in looks.items()}
    panel.set_xlim(panel.get_xlim())
    curve_marks.draw_censored(panel, table[table["censored"] != ""], colours)
    curve_marks.draw_diverged(panel, table[table["diverged"] > 0], colours)


def _set_axes(panel: Axes, table: pd.DataFrame, labels: Mapping[str, Any], log_y: bool) -> None:
    """Sets scales, limits around the means, which may cut long intervals, and ticks that fit."""
    from matplotlib.ticker import MaxNLocator

    low, high = float(table["mean"].min()), float(table["mean"].max())
    if labels["log_x"]:
        panel.set_xscale("log")
        if table["x"].min() > 0 and table["x"].max() / table["x"].min() < SHORT:
            style.few_ticks(panel.xaxis, (1, 2, 5))
    else:
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=(1, 2, 5, 10), integer=labels["x_label"] in COUNTED))
    if table["mean"].isna().any() or (table["censored"] != "").any():  # of what is not drawn as curves
        panel.set_xlim(*_around(table["x"], labels["log_x"]))
    if not log_y:
        panel.set_ylim(bottom=0 if low >= 0 else None)
        return
    panel.set_yscale("log")
    decades = math.log10(high / low) if low > 0 else 1.0
    panel.set_ylim(*style.log_limits(table))
    style.few_ticks(panel.yaxis, (1, 2, 5) if decades < 2 else (1,))
