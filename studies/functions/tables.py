"""The tables of the page on function classes, from the tables of its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.src import intervals
from icl_lab.store.readers import expecting, read_csv
from icl_lab.studies.functions.curves import AT, CURRICULA, DISTANCES
from icl_lab.studies.functions.measures import ERROR, crossing
from icl_lab.studies.template import NOT_MEASURED

if TYPE_CHECKING:
    import pandas as pd

HALVES, TRAINING, SIZES = "pools.csv", "curriculum.csv", "sizes.csv"


def halves(folder: Path) -> str:
    """The number of functions at which the distance falls to one half, by class, at two steps of training.

    Geometric means over seeds with 90 % intervals; and in how many seeds it is at the grid's beginning or never.
    """
    path = folder / HALVES
    if not path.exists():
        return NOT_MEASURED
    table = read_csv(path, ("x", "mean", "seed"), ("panel", "series"))
    with expecting(path, "a table of distances by seed, class, step and M"):
        lines = [f"| functions | {' | '.join(AT.values())} |", f"|---|{'---|' * len(AT)}"]
        for kind, rows in table.groupby("series", sort=False):
            found = [_half(rows[rows["panel"] == panel]) for panel in DISTANCES.values()]
            lines.append(f"| {kind} | {' | '.join(found)} |")
    return "\n".join(lines)


def _half(rows: pd.DataFrame) -> str:
    """M at one half in words: the mean over seeds, or of how many it is no number."""
    by_seed = [of_seed.sort_values("x") for _, of_seed in rows.groupby("seed")]
    halves = [2 ** crossing(np.log2(seed["x"].to_numpy(float)).tolist(), seed["mean"].tolist()) for seed in by_seed]
    least, seeds = rows["x"].min(), len(halves)
    bounds = (sum(half <= least for half in halves), f"at most {least:.0f}"), (halves.count(math.inf), "never")
    beyond = [
        words if number == seeds else f"{words} in {number} of {seeds} seeds" for number, words in bounds if number
    ]
    if beyond:
        return ", ".join(beyond)
    mean, low, high, _ = (_rounded(value) for value in intervals.of(np.array(halves), "log"))
    return f"{mean} [{low}, {high}]"


def _rounded(value: float) -> str:
    """A number to two digits, without an exponent."""
    return f"{float(f'{value:.2g}'):g}"


def log_rank(folder: Path) -> str:
    """Steps to the error with and without a curriculum: how many runs come to it, their median, the log-rank test."""
    path = folder / TRAINING
    if not path.exists():
        return NOT_MEASURED
    table = read_csv(path, ("x", "mean", "seed"), ("series",))
    with expecting(path, "a table of errors by seed over training"):
        times = {words: _times(table[table["series"] == words]) for words in CURRICULA.values()}
        found = []
        for words, (steps, last) in times.items():
            median = float(np.median(steps))
            at = f"{median:.0f}" if math.isfinite(median) else f"above {last:.0f}"
            found.append(f"{words}, {np.isfinite(steps).sum()} of {len(steps)}, median step {at}")
    return f"Runs that come to it: {'; '.join(found)} (log-rank test, p = {_p_value(times):.2g})."


def sizes(folder: Path) -> str:
    """The error after twice as many pairs as inputs, by size and number of inputs, with intervals over seeds."""
    path = folder / SIZES
    if not path.exists():
        return NOT_MEASURED
    table = read_csv(path, ("x", "mean", "low", "high"), ("series",))
    with expecting(path, "a table of errors by size and D"):
        dims = sorted(set(table["x"]))
        lines = [f"| model | {' | '.join(f'{dim:.0f} inputs' for dim in dims)} |", f"|---|{'---|' * len(dims)}"]
        for words, rows in table.groupby("series", sort=False):
            found = [rows[rows["x"] == dim].iloc[0] for dim in dims]
            cells = [f"{row['mean']:.2g} [{row['low']:.2g}, {row['high']:.2g}]" for row in found]
            lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _times(rows: pd.DataFrame) -> tuple[np.ndarray, float]:
    """The first step of each seed at which the error is reached, infinite where it is not, and the last step."""
    steps = [float(of_seed.loc[of_seed["mean"] <= ERROR, "x"].min()) for _, of_seed in rows.groupby("seed", sort=False)]
    return np.nan_to_num(np.array(steps), nan=math.inf), float(rows["x"].max())


def _p_value(times: Mapping[str, tuple[np.ndarray, float]]) -> float:
    """Of the log-rank test of both, what is not reached being censored at the last step."""
    from scipy.stats import CensoredData, logrank

    parts = [
        CensoredData(uncensored=steps[np.isfinite(steps)], right=np.full(int(np.isinf(steps).sum()), last))
        for steps, last in times.values()
    ]
    return float(logrank(*parts).pvalue)


TABLES: Mapping[str, Callable[[Path], str]] = {"halves": halves, "log_rank": log_rank, "sizes": sizes}
