"""Numbers of several settings as dots: a row for each setting, a panel for each measure, means with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.plots.dots import draw_dots
from icl_lab.plots.style import EARLIER_LEVEL
from icl_lab.src import intervals
from icl_lab.studies.curve_rows import Scales, mean_row, scale_in

MEAN = ("mean", "low", "high", "seeds")

Row = dict[str, Any]
Numbers = Mapping[tuple[str, str], float]  # (panel, series) -> a run's number


class Dots(NamedTuple):
    """A figure of dots: its settings by runs' name, or what gives that of each run, and what is shown of a run.

    Means with 90 % intervals over runs or, `by_seed`, each run: where a mean describes no run, as some are stuck.
    scale: of the intervals, in all panels or in each that is named; else nonnegative.
    """

    name: str
    title: str
    settings: Mapping[str, str | Callable[[Path], str]]
    numbers: Callable[[Path], Numbers]
    profile: str = "quick"
    by_seed: bool = False
    scale: Scales = ""
    needs: tuple[str, ...] = ()

    @property
    def run_names(self) -> tuple[str, ...]:
        """The runs it is of."""
        return tuple(self.settings)

    def labels(self, seeds: Sequence[int]) -> Mapping[str, Any]:
        """What is written on it."""
        return {"title": self.title, "level": intervals.LEVEL}

    def _setting(self, name: str, run: Path) -> str:
        of_runs = self.settings[name]
        return of_runs if isinstance(of_runs, str) else of_runs(run)

    def rows(self, runs: Mapping[str, Sequence[Path]]) -> list[Row]:
        """Rows of setting, panel, series, mean, low, high, seeds."""
        numbers: dict[tuple[str, str, str], list[float]] = {}
        for name, group in runs.items():
            for run in group:
                for place, value in self.numbers(run).items():
                    numbers.setdefault((self._setting(name, run), *place), []).append(value)
        columns = ("setting", "panel", "series")
        return [
            dict(zip(columns, place, strict=True)) | self._row(place[1], part)
            for place, values in numbers.items()
            for part in ([[value] for value in values] if self.by_seed else [values])
        ]

    def scale_of(self, panel: str) -> str:
        """The scale of the means and intervals in a panel."""
        return scale_in(panel, self.scale)

    def _row(self, panel: str, values: Sequence[float]) -> Row:
        return {name: value for name, value in mean_row(np.array(values), self.scale_of(panel)).items() if name in MEAN}

    def draw(self, table: Path, labels: Mapping[str, Any], to: Path | None = None) -> None:
        """Draws the table beside it, or to another place."""
        interval = "Clopper-Pearson" if self.scale == "share" else "t"
        said = f"{100 * labels.get('level', EARLIER_LEVEL):g} % {interval} intervals"
        draw_dots(table, labels["title"], "" if self.by_seed else said, to)
