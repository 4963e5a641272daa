"""One matrix of runs as a heat map: rows of i, j and value, means over the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.plots.heat_maps import draw_matrix


class Matrix(NamedTuple):
    """A figure of one matrix, [rows, columns], of a run; means over runs.

    beside: the matrix of another figure, with which it shares the limits of its colours.
    """

    name: str
    title: str
    run_names: tuple[str, ...]
    matrix: Callable[[Path], np.ndarray]
    beside: Callable[[Path], np.ndarray] | None = None
    profile: str = "quick"
    needs: tuple[str, ...] = ()

    def labels(self, seeds: Sequence[int]) -> Mapping[str, Any]:
        """What is written on it."""
        return {"title": f"{self.title}; mean over {len(seeds)} seeds"}

    def rows(self, runs: Mapping[str, Sequence[Path]]) -> list[dict[str, Any]]:
        """The mean of the runs' matrices, an entry to a row, and the limit of the colours."""
        every = [run for group in runs.values() for run in group]
        mean, *other = (np.mean([of(run) for run in every], axis=0) for of in (self.matrix, self.beside) if of)
        limit = max(float(np.abs(part).max()) for part in (mean, *other))
        return [{"i": i, "j": j, "value": float(mean[i, j]), "limit": limit} for i, j in np.ndindex(*mean.shape)]

    def draw(self, table: Path, labels: Mapping[str, Any], to: Path | None = None) -> None:
        """Draws the table beside it, or to another place."""
        draw_matrix(table, labels["title"], to)
