"""Figures as data: which runs each is of, what of them it shows, and how that is drawn.

A figure's rows become a table, NAME.csv, and NAME.png and .pdf are drawn from the table with labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.plots.curves import draw_curves, is_log
from icl_lab.plots.heat_maps import draw_products
from icl_lab.plots.trajectories import draw_trajectories
from icl_lab.src import intervals
from icl_lab.store.rundir import read_config
from icl_lab.studies.claim import SAMPLED_SEEDS
from icl_lab.studies.curve_rows import Row, Scales, Series, curve_rows, scale_in
from icl_lab.studies.distance_figure import Distances
from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.matrix_figure import Matrix

RunsByName = Mapping[str, Sequence[Path]]
Labels = Mapping[str, Any]


class Figure(NamedTuple):
    """Curves of runs: `means` over seeds with 90 % intervals, or `by_seed` each seed's own, or both.

    Where there are no runs, curves takes one of `seeds`; where they go `together`, all runs of a seed. A value beyond
    `limit` has diverged. log_y: whether y is logarithmic, or in which panels. scale: of the means and intervals, in all
    panels or in each that is named; else log on logarithmic axes and nonnegative on others. Use `by_seed` where a mean
    describes no run: where some seeds have learnt and others have not, or all have at different times.
    """

    name: str
    title: str
    run_names: tuple[str, ...]
    curves: Callable[[Any, str], Series]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool | Collection[str] = False
    profile: str = "quick"
    limit: float = 100.0
    together: bool = False
    means: bool = True
    by_seed: bool = False
    scale: Scales = ""
    seeds: Sequence[int] = SAMPLED_SEEDS

    def labels(self, seeds: Sequence[int]) -> Labels:
        """What is written on it."""
        labels = {name: getattr(self, name) for name in ("title", "x_label", "y_label", "log_x", "log_y")}
        labels["level"] = intervals.LEVEL
        return labels | ({"interval": "Clopper-Pearson"} if self.scale == "share" else {})

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns of its table that tables of earlier versions may lack."""
        return ("seed",) if self.by_seed else ()

    def rows(self, runs: RunsByName) -> list[Row]:
        """Rows as in `studies.curve_rows`."""
        return curve_rows(self._by_seed(runs), self.limit, self.means, self.by_seed, self.scale_of)

    def scale_of(self, panel: str) -> str:
        """The scale of the means and intervals in a panel."""
        return scale_in(panel, self.scale, "log" if is_log(self.log_y, panel) else "nonnegative")

    def _by_seed(self, runs: RunsByName) -> Iterator[tuple[int, Series]]:
        """A seed and its curves, for each seed or run."""
        if not self.run_names:
            yield from ((seed, self.curves(seed, "")) for seed in self.seeds)
        elif not self.together:
            yield from ((_seed(run), self.curves(run, name)) for name, group in runs.items() for run in group)
        else:
            of_seed: dict[int, list[Path]] = {}
            for run in (run for group in runs.values() for run in group):
                of_seed.setdefault(_seed(run), []).append(run)
            yield from ((seed, self.curves(seed_runs, "")) for seed, seed_runs in of_seed.items())

    def draw(self, table: Path, labels: Labels, to: Path | None = None) -> None:
        """Draws the table beside it, or to another place."""
        draw_curves(table, labels, to)


def _seed(run: Path) -> int:
    return int(read_config(run).init_seed)


def over_seeds(seeds: Sequence[int]) -> str:
    """Says that what is shown is a mean over these seeds."""
    return f"mean over {len(seeds)} seeds" if len(seeds) > 1 else of_first_seed(seeds)


def of_first_seed(seeds: Sequence[int]) -> str:
    """Says that the first of these seeds is shown."""
    return f"seed {min(seeds)}"


class Plane(NamedTuple):
    """Paths in a plane: rows of panel, series, step, x, y and kind, made of all of its runs together.

    whose: says of which of the runs' seeds the paths are.
    """

    name: str
    title: str
    run_names: tuple[str, ...]
    paths: Callable[[Sequence[Path]], list[Row]]
    x_label: str
    y_label: str
    points: str
    whose: Callable[[Sequence[int]], str]
    profile: str = "quick"
    needs: tuple[str, ...] = ()

    def labels(self, seeds: Sequence[int]) -> Labels:
        """What is written on it, of runs of these seeds."""
        labels = {name: getattr(self, name) for name in ("x_label", "y_label", "points")}
        return {"title": f"{self.title}; {self.whose(seeds)}", **labels}

    def rows(self, runs: RunsByName) -> list[Row]:
        """The paths of the runs."""
        return self.paths([run for group in runs.values() for run in group])

    def draw(self, table: Path, labels: Labels, to: Path | None = None) -> None:
        """Draws the table beside it, or to another place."""
        draw_trajectories(table, labels, to)


class HeatMaps(NamedTuple):
    """Matrices of runs, or of closed forms: rows of row, matrix, i, j and value, means over the runs.

    dim: how many of their channels are inputs, if channels are to be named.
    """

    name: str
    title: str
    run_names: tuple[str, ...]
    matrices: Callable[[Sequence[Path]], list[Row]]
    profile: str = "quick"
    needs: tuple[str, ...] = ()
    dim: int = 0

    def labels(self, seeds: Sequence[int]) -> Labels:
        """What is written on it, of runs of these seeds."""
        return {"title": f"{self.title}, {over_seeds(seeds)}" if self.run_names else self.title}

    def rows(self, runs: RunsByName) -> list[Row]:
        """The matrices of the runs."""
        return self.matrices([run for group in runs.values() for run in group])

    def draw(self, table: Path, labels: Labels, to: Path | None = None) -> None:
        """Draws the table beside it, or to another place."""
        draw_products(table, labels["title"], to, self.dim)


AnyFigure = Figure | Plane | HeatMaps | Matrix | Dots | Distances
