"""Distances of trained transformers and the algorithms as figures: matrices, or curves over training.

They are averaged over seeds, with 90 % t intervals: cosines of sensitivities on Fisher's scale, mean prediction
differences and ratios of losses on that of their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.plots.style import EARLIER_LEVEL
from icl_lab.src import intervals

DIGITS = 12  # of a mean: Fisher's scale ends a little below 1
SCALE_OF = {"cosine": "fisher", "difference": "log", "loss_ratio": "log", "excess": "linear"}
ROUNDING = 1e-7  # of float32: a difference of 0 in some seeds is at most this, and has a logarithm

Row = dict[str, Any]
Values = Mapping[tuple[Any, ...], float]  # by the columns of a table, of which the measure is last; nan: not defined


class Distances(NamedTuple):
    """Distances of runs, a table of `columns`, measure, mean, low, high and seeds, and how it is drawn."""

    name: str
    title: str
    run_names: tuple[str, ...]
    distances: Callable[[Path], Values]
    columns: tuple[str, ...]
    drawn: Callable[[Path, str, Path | None, float], list[Path]]
    profile: str = "quick"
    needs: tuple[str, ...] = ()

    def labels(self, seeds: Sequence[int]) -> Mapping[str, Any]:
        """What is written on it."""
        return {"title": self.title, "level": intervals.LEVEL}

    def rows(self, runs: Mapping[str, Sequence[Path]]) -> list[Row]:
        """The means over runs of all distances that are defined."""
        distances: dict[tuple[Any, ...], list[float]] = {}
        for run in (run for group in runs.values() for run in group):
            for key, value in self.distances(run).items():
                distances.setdefault(key, []).append(value)
        columns = (*self.columns, "measure")
        return [
            dict(zip(columns, key, strict=True)) | row
            for key, values in distances.items()
            for row in _mean(values, SCALE_OF[key[-1]])
        ]

    def draw(self, table: Path, labels: Mapping[str, Any], to: Path | None = None) -> None:
        """Draws the table beside it, or to another place."""
        self.drawn(table, labels["title"], to, labels.get("level", EARLIER_LEVEL))


def _mean(distances: Sequence[float], scale: str) -> list[Row]:
    """A row, or none where no seed has a distance; one seed has no interval."""
    values = np.array(distances, float)
    defined = values[~np.isnan(values)]
    if not defined.size:
        return []
    if scale == "log" and not defined.any():  # of an algorithm from itself
        return [{"mean": 0.0, "low": 0.0, "high": 0.0, "seeds": len(defined)}]
    mean, *ends, seeds = intervals.of(np.maximum(defined, ROUNDING) if scale == "log" else defined, scale)
    low, high = ends if seeds > 1 else (mean, mean)
    rounded = {name: round(end, DIGITS) for name, end in (("mean", mean), ("low", low), ("high", high))}
    return [rounded | {"seeds": seeds}]
