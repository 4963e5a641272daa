"""Rows of a figure's table from the curves of its seeds: means, seeds one by one, what is cut off, what has diverged.

Columns: panel, series, x, mean, low, high, seeds; further ones only where a row needs them:

- seed: the row is this seed's value, without an interval; empty in rows of means.
- censored: the seed's value lies `above` the one given, or `below` it; where any does, there is no mean.
- diverged: how many of the row's seeds are beyond the limit or not finite; where any is, there is no mean.
- average: geometric where the mean and its interval are those of logarithms; else empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from icl_lab.plots.curves import GEOMETRIC
from icl_lab.src import intervals

ABOVE, BELOW = "above", "below"
FEWEST = 3  # seeds of an interval

Row = dict[str, Any]
Values = Sequence[float] | np.ndarray


class Curve(NamedTuple):
    """A curve of which some values are bounds; `censored` says of each what it is: "", `above` or `below`."""

    x: Values
    y: Values
    censored: Sequence[str]


Series = Mapping[tuple[str, str], tuple[Values, Values] | Curve]  # (panel, series) -> x, y


class Value(NamedTuple):
    """What one seed has at a point."""

    seed: int
    y: float
    censored: str


Scales = str | Mapping[str, str]  # `intervals.SCALES`, of all panels or of each


def scale_in(panel: str, scales: Scales, otherwise: str = "nonnegative") -> str:
    """The scale of the intervals in a panel, or another one where none is declared."""
    return (scales if isinstance(scales, str) else scales.get(panel, "")) or otherwise


def mean_row(values: np.ndarray, scale: str) -> Row:
    """Mean, ends of the 90 % interval on a scale, and the number of seeds; fewer than three have no interval.

    Values of which one is 0 have no logarithms: they are taken on the scale `nonnegative`.
    """
    chosen = "nonnegative" if scale == "log" and (values <= 0).any() else scale
    mean, *ends, seeds = intervals.of(values, chosen)
    low, high = ends if seeds >= FEWEST else (mean, mean)
    row = {"mean": mean, "low": low, "high": high, "seeds": seeds}
    return row | ({"average": GEOMETRIC} if chosen == "log" else {})


def curve_rows(
    curves: Iterable[tuple[int, Series]],
    limit: float = np.inf,
    means: bool = True,
    by_seed: bool = False,
    scale_of: Callable[[str], str] = lambda panel: "nonnegative",
) -> list[Row]:
    """Means over seeds with 90 % t intervals, and `by_seed` the values of seeds, at each point of their curves.

    scale_of: a panel's scale, on which means are taken. What is censored always has rows of its own.
    """
    rows = []
    for (panel, series, x), values in _points(curves).items():
        place = {"panel": panel, "series": series, "x": x}
        kept = [value for value in values if np.isfinite(value.y) and abs(value.y) <= limit]
        if len(kept) < len(values):
            rows.append(place | _no_mean(values, len(values) - len(kept)))
        elif means and not any(value.censored for value in kept):
            rows.append(place | mean_row(np.array([value.y for value in kept]), scale_of(panel)))
        rows += [place | _alone(value) for value in kept if by_seed or value.censored]
    return _filled(rows)


def _points(curves: Iterable[tuple[int, Series]]) -> dict[tuple[str, str, float], list[Value]]:
    points: dict[tuple[str, str, float], list[Value]] = {}
    for seed, seed_curves in curves:
        for (panel, series), (xs, ys, *censored) in seed_curves.items():
            for x, y, how in zip(xs, ys, *(censored or [[""] * len(xs)]), strict=True):
                points.setdefault((panel, series, float(x)), []).append(Value(seed, float(y), how))
    return points


def _no_mean(values: Sequence[Value], diverged: int) -> Row:
    return {"mean": None, "low": None, "high": None, "seeds": len(values), "diverged": diverged}


def _alone(value: Value) -> Row:
    row = {"mean": value.y, "low": value.y, "high": value.y, "seeds": 1, "seed": str(value.seed)}
    return row | ({"censored": value.censored} if value.censored else {})


def _filled(rows: Sequence[Row]) -> list[Row]:
    """The rows with the same columns, of the further ones those that any row has."""
    further = {"seed": "", "censored": "", "diverged": 0, "average": ""}
    shown = {name: empty for name, empty in further.items() if any(name in row for row in rows)}
    base = ("panel", "series", "x", "mean", "low", "high", "seeds")
    return [{name: row[name] for name in base} | {name: row.get(name, e) for name, e in shown.items()} for row in rows]
