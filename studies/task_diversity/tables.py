"""The table of the page: how far decoders end from the exact predictors, by the number of tasks in their pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from icl_lab.store.readers import expecting, read_csv
from icl_lab.studies.task_diversity.curves import DMMSE, FROM_DMMSE, FROM_RIDGE, RIDGE
from icl_lab.studies.task_diversity.figures import BUDGETS
from icl_lab.studies.template import NOT_MEASURED

SOURCE = "budgets.csv"
ROWS = {  # a row of the table -> the panel of the distance, and the series of what it is divided by
    "relative distance to dMMSE, pool's tasks": (FROM_DMMSE, RIDGE),
    "relative distance to ridge, fresh tasks": (FROM_RIDGE, DMMSE),
}


def relative_distances(folder: Path) -> str:
    """Geometric means over seeds of the relative distances at the end of training, a column for each finite M.

    The means in the figure's table are geometric, so the ratio of two is the mean of the seeds' ratios.
    """
    path = folder / SOURCE
    if not path.exists():
        return NOT_MEASURED
    table = read_csv(path, ("x", "mean"), ("panel", "series", "average"), infinite=("x",))
    with expecting(path, "a table of geometric means by panel, series and M"):
        if {*table["average"]} != {"geometric"}:
            raise ValueError("other means")
        means = {(row["panel"], row["series"], row["x"]): float(row["mean"]) for row in table.to_dict("records")}
        tasks = sorted({x for panel, series, x in means if (panel, series) == (FROM_DMMSE, RIDGE)})
        lines = [f"| tasks in the pool | {' | '.join(f'{m:g}' for m in tasks)} |", f"|---|{'---|' * len(tasks)}"]
        for words, (panel, other) in ROWS.items():
            ratios = [means[panel, BUDGETS["pools"], m] / means[panel, other, m] for m in tasks]
            lines.append(f"| {words} | {' | '.join(_in_short(ratio) for ratio in ratios)} |")
    return "\n".join(lines)


def _in_short(ratio: float) -> str:
    """Two digits, or three decimals of what is smaller."""
    return f"{ratio:.2g}" if ratio >= 1e-3 else f"{ratio:.3f}"


TABLES: Mapping[str, Callable[[Path], str]] = {"relative_distances": relative_distances}
