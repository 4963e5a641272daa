"""Distances of trained transformers and the algorithms as figures: a matrix, or curves over training.

Cosines of sensitivities are averaged over seeds, with a 95 % t interval, on Fisher's scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from src import intervals

LEVEL = 0.95
DIGITS = 12  # of a cosine: Fisher's scale ends a little below 1

Row = dict[str, Any]
Cosines = Mapping[tuple[Any, ...], float]  # by what stands in the key columns of a table; nan where not defined


class Distances(NamedTuple):
    """Cosines of runs, a table of `columns`, mean, low, high and seeds, and how it is drawn."""

    name: str
    title: str
    run_names: tuple[str, ...]
    cosines: Callable[[Path], Cosines]
    columns: tuple[str, ...]
    drawn: Callable[[Path, str], list[Path]]
    profile: str = "quick"

    def labels(self, seeds: Sequence[int]) -> Mapping[str, Any]:
        """What is written on it."""
        return {"title": self.title}

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns of its table that tables of earlier versions may lack."""
        return ()

    def rows(self, runs: Mapping[str, Sequence[Path]]) -> list[Row]:
        """The means over runs of all cosines that are defined."""
        cosines: dict[tuple[Any, ...], list[float]] = {}
        for run in (run for group in runs.values() for run in group):
            for key, value in self.cosines(run).items():
                cosines.setdefault(key, []).append(value)
        return [
            dict(zip(self.columns, key, strict=True)) | row for key, values in cosines.items() for row in _mean(values)
        ]

    def draw(self, table: Path, labels: Mapping[str, Any]) -> None:
        """Draws the table."""
        self.drawn(table, labels["title"])


def _mean(cosines: Sequence[float]) -> list[Row]:
    """A row, or none where no seed has a cosine; one seed has no interval."""
    values = np.array(cosines, float)
    defined = values[~np.isnan(values)]
    if not defined.size:
        return []
    mean, *ends, seeds = intervals.of(defined, "fisher", LEVEL)
    low, high = ends if seeds > 1 else (mean, mean)
    rounded = {name: round(end, DIGITS) for name, end in (("mean", mean), ("low", low), ("high", high))}
    return [rounded | {"seeds": seeds}]
