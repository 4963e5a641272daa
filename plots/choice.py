"""Which rows of a table a figure shows: those with COLUMN=VALUE, and no more than fit a page.

What does not fit is named by the conditions of a command that draws it.
"""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from icl_lab.lab import cli
from icl_lab.src.words import did_you_mean, words_of
from icl_lab.store.readers import StoreError

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

PANELS = 12  # of a figure, at most
PAGE_HEIGHT = 7.5  # inches that its axes may be high together
NAMED = 12  # commands that are printed for one column, at most
SHOWN = 8  # values of a column in a sentence
CHOSEN = "chosen"  # of a table: the conditions that its rows were chosen by


class Figures(NamedTuple):
    """The files that were written, and lines that name what is not in them, each with a command that draws it."""

    files: list[Path]
    left: list[str]


class Where(NamedTuple):
    """Rows that have in a column this value, or one of several that commas part."""

    column: str
    value: str

    def __str__(self) -> str:
        return f"{self.column}={self.value}"


class Left(NamedTuple):
    """What is not in a figure: under `kept` conditions, rows with these further values of a column."""

    kept: tuple[Where, ...]
    column: str
    values: tuple[str, ...]


class TooLarge(Exception):
    """A figure of these rows does not fit a page; `settings` are theirs in force, by column, empty where one is not."""

    def __init__(self, rows: pd.DataFrame, settings: pd.DataFrame) -> None:
        super().__init__("the figure does not fit a page")
        self.rows, self.settings = rows, settings


def condition(text: str) -> Where:
    """`COLUMN=VALUE` of a command line; `argparse.ArgumentTypeError` for other text."""
    column, equals, value = text.partition("=")
    if not column or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=VALUE")
    return Where(column.strip(), value.strip())


def add_flags(parser: cli.Parser, panels: str) -> None:
    """Adds `--where` and `--panels`, which choose what a figure shows."""
    text = "rows to draw, by column and value or values: p=0.1,0.25; several conditions must all hold"
    parser.add_argument(
        "--where", nargs="+", action="extend", type=condition, default=[], metavar="COLUMN=VALUE", help=text
    )
    parser.add_argument("--panels", default="", metavar="COLUMN", help=panels)


def short(column: str) -> str:
    """The last part of the name of a column of a field."""
    last = column.rpartition(".")[2]
    return last if last.isidentifier() else column


def column_of(names: Iterable[str], name: str, path: Path) -> str:
    """The column of this name, whole or its last part where that is unique; `StoreError` names the nearest."""
    known = list(names)
    by_last_part = [column for column in known if short(column) == name]
    if name in known or len(by_last_part) == 1:
        return name if name in known else by_last_part[0]
    if by_last_part:
        raise StoreError(f"{path} has several columns {name}: name one of {', '.join(by_last_part)}")
    words = [*known, *map(short, known)]
    raise StoreError(f"{path} has no column {name}{did_you_mean(name, words)}")


def chosen(table: pd.DataFrame, where: Iterable[Where], path: Path) -> pd.DataFrame:
    """The rows for which all conditions hold; `StoreError` for a column or a value that the table does not have."""
    for column, value in where:
        values = table[column_of(table.columns, column, path)]
        kept, words = _equals(values, value), words_of(value)
        if not kept.any() and len(words) > 1:  # no value of its own, but several
            each = [_equals(values, word) for word in words]
            value = next((word for word, found in zip(words, each, strict=True) if not found.any()), value)
            kept = sum(each[1:], each[0]) if all(found.any() for found in each) else kept
        if not kept.any():
            raise StoreError(f"{path} has no row to draw with {column}={value}; its values are {_some(levels(values))}")
        table = table[kept]
        table.attrs[CHOSEN] = (*table.attrs.get(CHOSEN, ()), Where(column, value))
    return table


def _equals(values: pd.Series, text: str) -> pd.Series:
    """Where a field is this value: numbers are compared as numbers, also among words; no text is an empty field."""
    import pandas as pd

    try:
        number = float(text) if text else math.nan
    except ValueError:
        number = math.nan  # no number is a word
    if holds_numbers(values):
        return values == number if text else values.isna()
    if values.dtype == bool:
        return values.astype(str).str.lower() == text.lower()
    words = values.fillna("").astype(str)
    return (words == text) | (pd.to_numeric(words, errors="coerce") == number)


def holds_numbers(values: pd.Series) -> bool:
    """Whether a column is of numbers, or of none at all; truth values are none."""
    return values.dtype.kind in "iuf"


def levels(values: pd.Series) -> list[Any]:
    """The different values, without empty fields: numbers in order, words as they come."""
    known = values.dropna().unique().tolist()
    return sorted(known) if holds_numbers(values) or values.dtype == bool else [word for word in known if word != ""]


def said(value: Any) -> str:
    """A value as `condition` reads it back: nothing for an empty field, whole numbers without a point."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.0f}" if value.is_integer() else repr(float(value))
    return str(value)


def _some(values: Sequence[Any]) -> str:
    more = f" and {len(values) - SHOWN} more" * (len(values) > SHOWN)
    return ", ".join(map(said, values[:SHOWN])) + more


def fitted(draw: Callable[[pd.DataFrame], T], table: pd.DataFrame, columns: Sequence[str]) -> tuple[T, list[Left]]:
    """A figure that fits a page, `draw`n of all rows or of those with the most frequent value of one column or more.

    The columns are tried in this order, where rows that `draw` finds too many differ.
    """
    left: list[Left] = []
    while True:
        try:
            return draw(table), left
        except TooLarge as large:
            column = next((name for name in columns if large.settings[name].nunique() > 1), None)
            if column is None:
                raise
            value = said(large.settings[column].value_counts(sort=False).idxmax())
            others = tuple(other for other in map(said, large.rows[column].unique()) if other != value)
            kept = tuple(table.attrs.get(CHOSEN, ()))
            left.append(Left(kept, column, others))
            table = table[_equals(table[column], value)]
            table.attrs[CHOSEN] = (*kept, Where(column, value))


def first(values: Sequence[Any], most: int, column: str) -> tuple[list[Any], list[Left]]:
    """As many values of a column as fit, and the rest, so many at a time."""
    pages = [tuple(map(said, values[start : start + most])) for start in range(most, len(values), most)]
    left = [Left((), column, tuple(",".join(page) for page in pages))] if pages else []
    return list(values[:most]), left


def commands(left: Collection[Left], figures: str, words: Sequence[str], out: Path) -> Iterator[str]:
    """A line for each thing that is not in `figures`, with the command, of these words, that draws it."""
    for kept, column, values in left:
        for value in values[:NAMED]:
            conditions = [*map(str, kept), f"{column}={value}"]
            folder = out / "_".join(re.sub(r"[^\w.=,+-]", "-", text) for text in conditions)
            command = shlex.join([*words, "--out", str(folder), *(w for text in conditions for w in ("--where", text))])
            yield f"not in {figures}: {' and '.join(conditions)}; {command}"
        if len(values) > NAMED:
            further = f"--where {column}=VALUE draws one of them"
            yield f"not in {figures}: {len(values) - NAMED} further times {column}, the last {values[-1]}; {further}"
