"""A sweep's table, one row for each planned run, checked before anything is drawn; means over seeds with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab.command_end import typed
from icl_lab.lab.configs.columns import has_trained
from icl_lab.lab.configs.run import RunConfig
from icl_lab.plots import sweep_lines
from icl_lab.plots.choice import CHOSEN, TooLarge, Where, chosen, said, short
from icl_lab.plots.sweep_lines import Settings
from icl_lab.src import intervals
from icl_lab.src.statistics import LEVEL
from icl_lab.store.readers import StoreError, read_csv

if TYPE_CHECKING:
    import pandas as pd

ALPHAS = ("1", "1.5", "2", "3")  # as the columns' names say them
BASELINES = {
    "test_gd_loss": "GD, clean step",
    "test_gd_tuned_step_loss": "GD, tuned step",
    "test_linear_mmse_loss": "linear MMSE",
    "test_mask_bayes_loss": "Bayes over masks",
}
TEXT = (
    *("exp", "model", "ordering", "noise_mode", "placement", "status", "results_version", "eval_difficulty"),
    *("train_ordering", "train_noise_mode", "train_placement", "train_difficulty"),
)
SHARES = ("p", "train_p")
# columns of which one value is shown where all do not fit, in this order, and those that a figure is about: last
NARROWED = (
    *("results_version", "steps", "train_noise_mode", "train_ordering", "train_p", "train_sigma", "train_placement"),
    *("train_difficulty", "placement", "sigma", "ordering", "p", "noise_mode", "eval_difficulty", "model"),
)
ABOUT = {
    "order_sensitivity": ("ordering", "model"),
    "noise_robustness": ("noise_mode", "p", "model"),
    "attention_separation": ("noise_mode", "model"),
}
UNKNOWN = ("sigma", "train_sigma", "steps")  # settings that a row may lack
SETTINGS = ("seed", "sigma", "train_sigma", "steps", *SHARES)
MEASURED = (
    *("test_loss", *BASELINES, "align_cos", "align_l2", "auroc", "gd_auroc", "auroc_position"),
    *(f"{owner}ood_alpha{alpha}" for owner in ("", "gd_") for alpha in ALPHAS),
)
# columns, if the table has them, of what does not depend on a model: positive controls for `auroc`
DETECTORS = {"mask_bayes_auroc": "Bayes over masks", "loo_gd_auroc": "leave-one-out GD error"}
# measure -> the column, if the table has it, that counts the tasks behind each value; named as in a run's config
TASKS = {
    **{"test_loss": "test_tasks", "ood": "test_tasks"},
    **{"auroc": "eval_tasks", "alignment": "eval_tasks"},
}
T_BARS = "means, 95 % intervals"
LISTED = 12  # seeds in a caption
SAME = 1e-3  # relative difference up to which two results of one run are the same result


def read_sweep(path: Path, where: Sequence[Where] = ()) -> pd.DataFrame:
    """The rows for which the conditions hold, with `done`, `noisy` and `trained`; `StoreError` if they cannot be drawn.

    The detectors' columns are empty in tables that have none.
    """
    table = read_csv(path, (*SETTINGS, *MEASURED), TEXT)
    table["done"] = table["status"] == "done"
    table["noisy"] = (table["noise_mode"] != sweep_lines.CLEAN) & (table["p"] != 0)
    for name in ("seed", *SHARES, "test_loss"):
        if table.loc[table["done"], name].isna().any():
            raise StoreError(f"{path} has rows that are done and have no {name}")
    for name in SHARES:
        if not table[name].dropna().between(0, 1).all():
            raise StoreError(f"{path} has values of {name} that are not between 0 and 1")
    for name in sorted({*TASKS.values()} & {*table.columns}):
        if table[name].dtype.kind not in "iuf":
            raise StoreError(f"{path} has words in {name}, which counts tasks")
    for name in {*DETECTORS} & {*table.columns}:
        if table[name].dtype.kind not in "iuf":
            raise StoreError(f"{path} has words in {name}, which is an AUROC")
    table = table.assign(**{name: float("nan") for name in DETECTORS if name not in table})
    table["trained"] = has_trained(table)
    table.attrs[PLANNED] = (len(table), int(table["done"].sum()))
    table = chosen(table.copy(), where, path)  # a copy's columns lie together
    _check_repeats(path, table[table["done"]])
    return table


def narrowed(figure: str) -> list[str]:
    """The columns of which a figure shows one value where all do not fit, in the order in which they are tried."""
    about = ABOUT.get(figure, ())
    return [*(column for column in NARROWED if column not in about), *about]


def _check_repeats(path: Path, done: pd.DataFrame) -> None:
    """Runs that mean the same have the same result, or a setting that the table doesn't hold differs."""
    groups: list[tuple[pd.DataFrame, Any]] = [(done, sweep_lines.alike(done))]
    if done[list(UNKNOWN)].isna().any(axis=None):  # which agree with any value
        with suppress(TooLarge):
            groups += [(line.rows, np.zeros(len(line.rows))) for line in sweep_lines.lines(done)]
    for rows, number in groups:
        losses = rows.groupby([number, "seed"], sort=False)["test_loss"]
        apart = losses.transform("max") - losses.transform("min") > SAME * losses.transform("min").abs()
        if apart.any():
            number_of = dict(zip(rows.index, number, strict=True))
            place = apart.index[apart.to_numpy().argmax()]
            same = (rows["seed"] == rows.at[place, "seed"]) & (rows.index.map(number_of) == number_of[place])
            pair = rows[same].sort_values("test_loss").iloc[[0, -1]]
            names, seed = " and ".join(pair["exp"]), rows.at[place, "seed"]
            raise StoreError(f"{path} has two results of one setting and seed {seed:g}: {names}{_differing(pair)}")


def _differing(pair: pd.DataFrame) -> str:
    """Fields in which two rows differ that are no columns of these figures, and how to choose."""
    fields = [name for name in pair if "." in str(name) and short(name) != name and pair[name].nunique() > 1]
    if not fields:
        return ""
    value = said(pair[fields[0]].iloc[0])
    chooses = f"--where {fields[0]}={value} chooses, and {typed('plots.sweep')} draws any column"
    return f"; they differ in {', '.join(fields)}: {chooses}"


# Columns of a figure's CSV, behind the settings: whose numbers, which, where, and of each seed the value.
DRAWN = ("series", "measure", "x", "mean", "low", "high", "n", "seeds", "values")
DIGITS = 7  # of the values of seeds
PLANNED = "planned and done"  # of a table: how many rows the sweep's has


class Point(NamedTuple):
    """A mean over seeds; `low` and `high` are nan for a single one."""

    x: Any
    mean: float
    low: float
    high: float
    seeds: tuple[int, ...]
    values: tuple[float, ...]


class Series(NamedTuple):
    """What one line of a figure shows: whose numbers, which, under which settings."""

    name: str
    measure: str
    settings: Settings
    points: list[Point]


def points(rows: pd.DataFrame, x: pd.Series | str | float, y: pd.Series, scale: str) -> list[Point]:
    """One point for each x in order of appearance, its mean and interval on a scale (`intervals.SCALES`).

    x is of each row, or one for all. Rows without a y don't count; several of one seed count once.
    """
    places = [x] * len(rows) if isinstance(x, (str, float)) else x.tolist()
    of_seeds: dict[Any, dict[int, list[float]]] = {}
    for place, seed, value in zip(places, rows["seed"].tolist(), y.tolist(), strict=True):
        if value == value and place == place:
            of_seeds.setdefault(place, {}).setdefault(int(seed), []).append(value)
    means = {
        place: [(seed, math.fsum(values) / len(values)) for seed, values in sorted(by_seed.items())]
        for place, by_seed in of_seeds.items()
    }
    return [_point(place, those, scale) for place, those in means.items()]


def _point(x: Any, of_seeds: Sequence[tuple[int, float]], scale: str) -> Point:
    seeds, values = zip(*of_seeds, strict=True)
    mean, *ends, n = intervals.of(np.array(values), scale, LEVEL)
    low, high = ends if n > 1 else (math.nan, math.nan)
    return Point(x, mean, low, high, seeds, values)


def records(series: Iterable[Series]) -> list[dict[str, Any]]:
    """The rows of a figure's CSV: exactly what it shows."""
    return [
        {
            **line.settings,
            **{
                "series": line.name,
                "measure": line.measure,
                "x": point.x,
                "mean": point.mean,
                "low": point.low,
                "high": point.high,
            },
            **{"n": len(point.seeds), "seeds": " ".join(map(str, point.seeds))},
            "values": " ".join(f"{value:.{DIGITS}g}" for value in point.values),
        }
        for line in series
        for point in line.points
    ]


def counted(used: pd.DataFrame, series: Iterable[Series], tasks: str = "", bars: str = T_BARS) -> str:
    """The seeds used, what the bars are, and the tasks behind each value.

    `tasks` names the column of the table that counts them; without that column they are as many as a run has by
    default, and without a name they are not said.
    """
    seeds = sorted({int(seed) for seed in used["seed"]})
    lonely = any(len(point.seeds) == 1 for line in series for point in line.points)
    bars += ", but for points of a single seed" * lonely
    bars = bars if len(seeds) > 1 else "one seed, so no intervals"
    fewest = min((len(point.seeds) for line in series for point in line.points), default=len(seeds))
    fewer = f", at some points {fewest}" * (1 < fewest < len(seeds))
    behind = f"; {_tasks(used, tasks)}" if tasks else ""
    return f"{_seeds(seeds)}{fewer}; {bars}{behind}"


def rows_done(table: pd.DataFrame, shown: int) -> str:
    """How many of the planned rows are done, as the sweep counts them, and how many a figure shows if not all those.

    A table of which a figure was given a part still knows the sweep's numbers.
    """
    planned, done = table.attrs.get(PLANNED, (len(table), int(table["done"].sum())))
    conditions = ", ".join(map(str, table.attrs.get(CHOSEN, ())))
    of_them = f", {shown} of them shown" + f" ({conditions})" * bool(conditions)
    return f"{done} of {planned} planned rows are done" + of_them * bool(shown != done)


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    whole = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    named = f"{seeds[0]}-{seeds[-1]}" if whole else ", ".join(map(str, seeds))
    named = named if whole or len(seeds) <= LISTED else f"from {seeds[0]} to {seeds[-1]}"
    return f"n = {len(seeds)} seeds ({named})"


def _tasks(used: pd.DataFrame, column: str) -> str:
    counts = sorted({int(count) for count in used[column].dropna()}) if column in used else []
    if not counts:
        return f"{getattr(RunConfig, column)} tasks each (the default)"
    return f"{counts[0]} tasks each" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} tasks each"
