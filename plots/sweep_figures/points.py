"""Means over seeds with 95 % t intervals, and what a caption says of the cells behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plots.sweep_figures.settings import Settings
from src.statistics import mean_and_interval

if TYPE_CHECKING:
    import pandas as pd

DRAWN = ("series", "x", "mean", "low", "high", "n", "seeds")  # columns of a figure's CSV, behind the settings


class Point(NamedTuple):
    """A mean over seeds; `low` and `high` are nan for a single one."""

    x: Any
    mean: float
    low: float
    high: float
    seeds: tuple[int, ...]


class Series(NamedTuple):
    """What one line of a figure shows: whose numbers, under which settings."""

    name: str
    settings: Settings
    points: list[Point]


def points(rows: pd.DataFrame, x: Sequence[Any] | pd.Series, y: pd.Series) -> list[Point]:
    """One point for each x in order of appearance; rows without a y don't count, several of one seed count once."""
    known = rows.assign(x=x, y=y).dropna(subset=["y"])
    return [_point(x, of_x.groupby("seed")["y"].mean()) for x, of_x in known.groupby("x", sort=False)]


def _point(x: Any, by_seed: pd.Series) -> Point:
    mean, half = map(float, mean_and_interval(by_seed.to_numpy()))
    return Point(x, mean, mean - half, mean + half, tuple(int(seed) for seed in by_seed.index))


def records(series: Iterable[Series]) -> list[dict[str, Any]]:
    """The rows of the CSV beside a figure: exactly what it shows."""
    return [
        {
            **line.settings,
            **{"series": line.name, "x": point.x, "mean": point.mean, "low": point.low, "high": point.high},
            **{"n": len(point.seeds), "seeds": " ".join(map(str, point.seeds))},
        }
        for line in series
        for point in line.points
    ]


def counted(used: pd.DataFrame, planned: int, series: Iterable[Series]) -> str:
    """The seeds used, how many of the planned cells, and what the bars are."""
    if used.empty:
        return f"0 of {planned} planned cells"
    seeds = sorted({int(seed) for seed in used["seed"]})
    lonely = any(len(point.seeds) == 1 for line in series for point in line.points)
    bars = "means with 95 % t intervals over seeds" + ", but for points of a single seed" * lonely
    bars = bars if len(seeds) > 1 else "one seed, so no intervals"
    return f"{_seeds(seeds)}; {len(used)} of {planned} planned cells; {bars}"


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    whole = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    return f"seeds {seeds[0]}-{seeds[-1]}" if whole else f"seeds {', '.join(map(str, seeds))}"
