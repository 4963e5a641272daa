"""Figures as data: which runs each is of, what of them it shows, and how that is drawn.

A figure's rows become a table, NAME.csv, and NAME.png and .pdf are drawn from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plots.curves import draw_curves
from plots.trajectories import draw_trajectories
from plots.weights import draw_products
from src.statistics import mean_and_interval
from store.rundir import read_config
from studies.distance_figure import Distances

SEEDS = (0, 1, 2)  # of what needs no training

Row = dict[str, Any]
Values = Sequence[float] | np.ndarray
Series = Mapping[tuple[str, str], tuple[Values, Values]]  # (panel, series) -> x, y
RunsByName = Mapping[str, Sequence[Path]]


class Figure(NamedTuple):
    """Curves of runs, as means over seeds with 95 % t intervals.

    Where there are no runs, curves takes a seed; where they go `together`, all runs of a seed. A point is left out
    where a mean is beyond `limit`: it has diverged.
    """

    name: str
    title: str
    run_names: tuple[str, ...]
    curves: Callable[[Any, str], Series]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    profile: str = "quick"
    limit: float = 100.0
    together: bool = False

    @property
    def labels(self) -> dict[str, Any]:
        """What is written on it."""
        return {name: getattr(self, name) for name in ("title", "x_label", "y_label", "log_x", "log_y")}

    def rows(self, runs: RunsByName) -> list[Row]:
        """Rows of panel, series, x, mean, low, high and seeds."""
        if not self.run_names:
            return mean_rows([self.curves(seed, "") for seed in SEEDS], self.limit)
        if not self.together:
            return mean_rows([self.curves(run, name) for name, own in runs.items() for run in own], self.limit)
        of_seed: dict[int, list[Path]] = {}
        for run in (run for own in runs.values() for run in own):
            of_seed.setdefault(read_config(run).init_seed, []).append(run)
        return mean_rows([self.curves(own, "") for own in of_seed.values()], self.limit)

    def draw(self, table: Path) -> None:
        """Draws the table."""
        draw_curves(table, self.labels)


class Plane(NamedTuple):
    """Paths in a plane: rows of panel, series, step, x, y and kind, made of all of its runs together."""

    name: str
    title: str
    run_names: tuple[str, ...]
    paths: Callable[[Sequence[Path]], list[Row]]
    x_label: str
    y_label: str
    points: str
    profile: str = "quick"

    @property
    def labels(self) -> dict[str, Any]:
        """What is written on it."""
        return {name: getattr(self, name) for name in ("title", "x_label", "y_label", "points")}

    def rows(self, runs: RunsByName) -> list[Row]:
        """The paths of the runs."""
        return self.paths([run for own in runs.values() for run in own])

    def draw(self, table: Path) -> None:
        """Draws the table."""
        draw_trajectories(table, self.labels)


class HeatMaps(NamedTuple):
    """Matrices of runs: rows of row, matrix, i, j and value, means over the runs."""

    name: str
    title: str
    run_names: tuple[str, ...]
    matrices: Callable[[Sequence[Path]], list[Row]]
    profile: str = "quick"

    @property
    def labels(self) -> dict[str, Any]:
        """What is written on it."""
        return {"title": self.title}

    def rows(self, runs: RunsByName) -> list[Row]:
        """The matrices of the runs."""
        return self.matrices([run for own in runs.values() for run in own])

    def draw(self, table: Path) -> None:
        """Draws the table."""
        draw_products(table, self.title)


AnyFigure = Figure | Plane | HeatMaps | Distances


def mean_rows(curves: Sequence[Series], limit: float = np.inf) -> list[Row]:
    """Means and 95 % t intervals over runs, for each panel, series and x at which none of them is beyond the limit."""
    points: dict[tuple[str, str, float], list[float]] = {}
    for series in curves:
        for (panel, name), (xs, ys) in series.items():
            for x, y in zip(xs, ys, strict=True):
                points.setdefault((panel, name, float(x)), []).append(float(y))
    rows = []
    for (panel, name, x), values in points.items():
        if not (np.abs(values) <= limit).all():
            continue
        mean, width = mean_and_interval(np.array(values))
        half = 0.0 if np.isnan(width) else float(width)
        line = {"panel": panel, "series": name, "x": x, "mean": float(mean), "low": mean - half, "high": mean + half}
        rows.append(line | {"seeds": len(values)})
    return rows
