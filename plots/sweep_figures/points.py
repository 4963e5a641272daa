"""Means over seeds with 95 % t intervals, and what a caption says of the cells behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from icl_lab.lab.configs.run import RunConfig
from icl_lab.plots.sweep_figures.grouping import Settings
from icl_lab.src.statistics import mean_and_interval

if TYPE_CHECKING:
    import pandas as pd

# Columns of a figure's CSV, behind the settings: whose numbers, which, where, and of each seed the value.
DRAWN = ("series", "measure", "x", "mean", "low", "high", "n", "seeds", "values")
DIGITS = 7  # of the values of seeds
PLANNED = "planned and done"  # of a table: how many rows the sweep's has


class Point(NamedTuple):
    """A mean over seeds; `low` and `high` are nan for a single one."""

    x: Any
    mean: float
    low: float
    high: float
    seeds: tuple[int, ...]
    values: tuple[float, ...]


class Series(NamedTuple):
    """What one line of a figure shows: whose numbers, which, under which settings."""

    name: str
    measure: str
    settings: Settings
    points: list[Point]


def points(rows: pd.DataFrame, x: Sequence[Any] | pd.Series, y: pd.Series) -> list[Point]:
    """One point for each x in order of appearance; rows without a y don't count, several of one seed count once."""
    known = rows.assign(x=x, y=y).dropna(subset=["y"])
    return [_point(x, of_x.groupby("seed")["y"].mean()) for x, of_x in known.groupby("x", sort=False)]


def _point(x: Any, by_seed: pd.Series) -> Point:
    mean, half = map(float, mean_and_interval(by_seed.to_numpy()))
    return Point(x, mean, mean - half, mean + half, tuple(map(int, by_seed.index)), tuple(map(float, by_seed)))


def records(series: Iterable[Series]) -> list[dict[str, Any]]:
    """The rows of a figure's CSV: exactly what it shows."""
    return [
        {
            **line.settings,
            **{
                "series": line.name,
                "measure": line.measure,
                "x": point.x,
                "mean": point.mean,
                "low": point.low,
                "high": point.high,
            },
            **{"n": len(point.seeds), "seeds": " ".join(map(str, point.seeds))},
            "values": " ".join(f"{value:.{DIGITS}g}" for value in point.values),
        }
        for line in series
        for point in line.points
    ]


def counted(used: pd.DataFrame, table: pd.DataFrame, series: Iterable[Series], tasks: str) -> str:
    """The seeds used, the tasks behind each value, how far the sweep is, and what the bars are.

    `tasks` is the column of the table that counts them; without it they are as many as a run has by default.
    """
    seeds = sorted({int(seed) for seed in used["seed"]})
    lonely = any(len(point.seeds) == 1 for line in series for point in line.points)
    bars = "means with 95 % t intervals over seeds" + ", but for points of a single seed" * lonely
    bars = bars if len(seeds) > 1 else "one seed, so no intervals"
    fewest = min((len(point.seeds) for line in series for point in line.points), default=len(seeds))
    fewer = f", at some points {fewest}" * (1 < fewest < len(seeds))
    return f"{_seeds(seeds)}{fewer}, {_tasks(used, tasks)}; {rows_done(table, len(used))}; {bars}"


def rows_done(table: pd.DataFrame, shown: int) -> str:
    """How many of the planned rows are done, as the sweep counts them, and how many a figure shows if not all those.

    A table of which a figure was given a part still knows the sweep's numbers.
    """
    planned, done = table.attrs.get(PLANNED, (len(table), int(table["done"].sum())))
    return f"{done} of {planned} planned rows are done" + (f", {shown} of them shown" if shown != done else "")


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    whole = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    named = f"{seeds[0]}-{seeds[-1]}" if whole else ", ".join(map(str, seeds))
    return f"n = {len(seeds)} seeds ({named})"


def _tasks(used: pd.DataFrame, column: str) -> str:
    counts = sorted({int(count) for count in used[column].dropna()}) if column in used else []
    if not counts:
        return f"{getattr(RunConfig, column)} tasks each (the default)"
    return f"{counts[0]} tasks each" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} tasks each"
