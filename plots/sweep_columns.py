"""A sweep's table for a figure of any of its columns: which of them are settings, and that no point mixes several."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from icl_lab.lab.configs.registry import named, outputs_of
from icl_lab.lab.configs.run import fields_of
from icl_lab.lab.registries import FAMILIES
from icl_lab.plots.choice import Where, chosen, column_of, holds_numbers, levels, said
from icl_lab.plots.sweep_table import PLANNED, SAME
from icl_lab.src import intervals
from icl_lab.store.listing import flat
from icl_lab.store.readers import StoreError, read_csv

if TYPE_CHECKING:
    import pandas as pd

# column -> the scale of its intervals, by pattern: the first that matches; any other is linear
SCALES = {
    **{"trained": "share", "*accuracy": "fraction", "*auroc*": "fraction", "*cos": "fisher", "*cosine": "fisher"},
    **{"*loss": "nonnegative", "*mse": "nonnegative", "*_l2": "nonnegative", "*_alpha*": "nonnegative"},
}
TRUTH = {"true": 1.0, "false": 0.0}  # words of a column that can be drawn: the mean is a share
VALUES = 3  # of a setting, in a sentence


class Asked(NamedTuple):
    """The columns of a figure; no hue: one line, no panels: one panel."""

    x: str
    y: str
    hue: str = ""
    panels: str = ""


def read_columns(path: Path, asked: Asked, where: Sequence[Where] = ()) -> tuple[pd.DataFrame, Asked]:
    """The rows that the conditions choose, `drawn` where one is done and has all columns; these by their full names.

    `StoreError` for a table without them, and where one point would be of several settings.
    """
    table = read_csv(path, ())
    asked = Asked(*(column_of(table.columns, name, path) if name else "" for name in asked))
    _check_kinds(path, table, asked)
    table["done"] = table["status"] == "done" if "status" in table else True
    table.attrs[PLANNED] = (len(table), int(table["done"].sum()))
    table = chosen(table, where, path)
    table[asked.y] = _numbers(table[asked.y])
    needed = [*filter(None, asked), "seed"]
    there = table[needed].notna().all(axis=1) & np.isfinite(table[asked.y].astype(float))
    table["drawn"] = table["done"] & there
    if not table["drawn"].any():
        raise StoreError(f"{path} has nothing to draw: no row is done with a value of {' and '.join(needed)}")
    _check_alike(path, table[table["drawn"]], asked)
    return table, asked


def _check_kinds(path: Path, table: pd.DataFrame, asked: Asked) -> None:
    if "seed" not in table or not holds_numbers(table["seed"]):
        raise StoreError(f"{path} has no numeric column seed, over which means are taken")
    if len({*filter(None, asked)}) < len([*filter(None, asked)]):
        raise StoreError(f"x, y, hue and panels must be different columns, not {', '.join(filter(None, asked))}")
    if not holds_numbers(_numbers(table[asked.y])):
        raise StoreError(
            f"{path} has words in {asked.y}, which cannot be drawn along y; numbers are in {_drawable(table)}"
        )


def _numbers(values: pd.Series) -> pd.Series:
    """True and false, as words or not, as 1 and 0; anything else as it is."""
    words = values.dropna().astype(str).str.lower() if not holds_numbers(values) else values[:0]
    return values.astype(str).str.lower().map(TRUTH) if len(words) and words.isin(TRUTH).all() else values


def _drawable(table: pd.DataFrame) -> str:
    numbers = [name for name in table if holds_numbers(table[name]) and name.endswith("loss")]
    return ", ".join(numbers[:VALUES]) or "other columns"


def scale_of(column: str, values: pd.Series) -> str:
    """The scale of intervals of this column; linear where a value is not possible on it."""
    name = next((scale for pattern, scale in SCALES.items() if fnmatchcase(column, pattern)), "linear")
    scale = intervals.SCALES[name]
    slack = intervals.ROUNDING
    return name if values.between(scale.lowest - slack, scale.highest + slack).all() else "linear"


@cache
def _setting_names() -> frozenset[str]:
    """The names of settings in tables: those that families declare, and fields of configs, whole and in short."""
    names = {"model", "results_version", "init_seed"}
    results = set[str]()
    for family in map(named, FAMILIES):
        columns = outputs_of(family).columns
        names |= {*columns.asked, *columns.settings}
        results |= {*columns.first, *columns.measured}
        for field in flat(fields_of(family.config())):
            names |= {field, field.rpartition(".")[2]}
    return frozenset(names - results - {"name", "preset"})


def _check_alike(path: Path, rows: pd.DataFrame, asked: Asked) -> None:
    """`StoreError` where rows of one point differ in a setting, or a seed has two results."""
    keys = [*filter(None, (asked.panels, asked.hue, asked.x))]
    settings = [name for name in rows if name in _setting_names() - {*asked} and rows[name].nunique(dropna=False) > 1]
    of_points = rows.groupby(keys, sort=False, dropna=False)
    mixed = [name for name in settings if (of_points[name].nunique(dropna=False) > 1).any()]
    if mixed:
        name, others = mixed[0], _others(rows, mixed)
        values = [said(value) or "nothing" for value in levels(rows[name].astype(object).fillna(""))]
        several = f"{', '.join(values[:VALUES])}{', ...' * (len(values) > VALUES)}"
        also = f" (they also differ in {', '.join(others)})" if others else ""
        choose = (
            f"--where {name}={values[0] if values[0] != 'nothing' else ''} chooses, --hue or --panels {name} parts them"
        )
        raise StoreError(
            f"{path} has several rows for one point of the figure, which differ in {name} ({several}); {choose}{also}"
        )
    losses = rows.groupby([*keys, "seed"], sort=False, dropna=False)[asked.y].agg(["min", "max"])
    apart = losses["max"] - losses["min"] > SAME * losses["min"].abs()
    if apart.any():
        place = dict(zip([*keys, "seed"], losses.index[apart.to_numpy().argmax()], strict=True))
        at = ", ".join(f"{name}={said(value)}" for name, value in place.items())
        raise StoreError(f"{path} has two results of one setting, {at}; no column of settings tells them apart")


def _others(rows: pd.DataFrame, mixed: Sequence[str]) -> list[str]:
    """The further settings, but those that part the rows as an earlier one does."""
    import pandas as pd

    codes = {name: tuple(pd.factorize(rows[name])[0]) for name in mixed}
    told = dict[tuple[int, ...], str]()
    for name, code in codes.items():
        told.setdefault(code, name)
    return [*told.values()][1:]
