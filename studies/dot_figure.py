"""Numbers of several settings as dots: a row for each setting, a panel for each measure, means with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.plots.dots import draw_dots
from icl_lab.src.intervals import clopper_pearson
from icl_lab.src.statistics import LEVEL, mean_and_interval

Row = dict[str, Any]
Numbers = Mapping[tuple[str, str], float]  # (panel, series) -> a run's number


class Dots(NamedTuple):
    """A figure of dots: its settings by runs' name, and what is shown of a run.

    Means with 95 % t intervals over runs or, `by_seed`, each run: where a mean describes no run, as some are stuck. Of
    `shares`, numbers that are 0 or 1, intervals are Clopper and Pearson's.
    """

    name: str
    title: str
    settings: Mapping[str, str]
    numbers: Callable[[Path], Numbers]
    profile: str = "quick"
    by_seed: bool = False
    shares: bool = False
    needs: tuple[str, ...] = ()

    @property
    def run_names(self) -> tuple[str, ...]:
        """The runs it is of."""
        return tuple(self.settings)

    def labels(self, seeds: Sequence[int]) -> Mapping[str, Any]:
        """What is written on it."""
        return {"title": self.title}

    def rows(self, runs: Mapping[str, Sequence[Path]]) -> list[Row]:
        """Rows of setting, panel, series, mean, low, high, seeds."""
        numbers: dict[tuple[str, str, str], list[float]] = {}
        for name, group in runs.items():
            for run in group:
                for place, value in self.numbers(run).items():
                    numbers.setdefault((self.settings[name], *place), []).append(value)
        columns = ("setting", "panel", "series")
        return [
            dict(zip(columns, place, strict=True)) | (_share(part) if self.shares else _mean(part))
            for place, values in numbers.items()
            for part in ([[value] for value in values] if self.by_seed else [values])
        ]

    def draw(self, table: Path, labels: Mapping[str, Any], to: Path | None = None) -> None:
        """Draws the table beside it, or to another place."""
        interval = "Clopper-Pearson" if self.shares else "t"
        draw_dots(table, labels["title"], "" if self.by_seed else f"95 % {interval} intervals", to)


def _share(values: Sequence[float]) -> Row:
    learnt = clopper_pearson(int(sum(values)), len(values), LEVEL)
    return {"mean": float(np.mean(values)), "low": learnt.low, "high": learnt.high, "seeds": len(values)}


def _mean(values: Sequence[float]) -> Row:
    mean, width = mean_and_interval(np.array(values))
    half = 0.0 if np.isnan(width) else float(width)
    return {"mean": float(mean), "low": float(mean) - half, "high": float(mean) + half, "seeds": len(values)}
