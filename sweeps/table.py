"""The CSV of a sweep on disk: whose rows it holds, and what may become of them.

A row is known by the folder of its cell, relative to the table's (`runs_dir`), its cell (`exp`) and its settings. A
sweep replaces the rows it plans and no others. That somebody's rows or numbers would disappear is an error, unless they
are to be kept (append) or let go of (replace).
"""

from __future__ import annotations

import csv
import io
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from store.atomic import csv_bytes, replace_file
from store.readers import StoreError, read_csv, reading

FOLDER = "runs_dir"
SWEEP_COLUMNS = {"exp", "model", "seed", "status", "results_version"}  # columns of every table
APPEND_HINT = "--append keeps them"
REPLACE_HINT = "--replace_table lets go of them in the table alone, and another --out leaves them there"
LOCK_TIMEOUT = 60.0  # seconds that others who write a table are waited for: writing takes one or two
SHOWN = 60  # letters of a cell's name in a sentence

Line = dict[str, str]


class RowPolicy(NamedTuple):
    """What may become of a table that is there.

    append: rows that are not planned stay. replace: they go. redo: the planned cells are trained anew, so their numbers
    may go. trains: cells that are missing are trained again, so that of some of them may.
    """

    append: bool = False
    replace: bool = False
    redo: bool = False
    trains: bool = True


def relative_folder(folder: Path, out: Path) -> str:
    """The runs folder as a table names it: relative to the table."""
    return Path(os.path.relpath(os.path.realpath(folder), os.path.realpath(out.parent))).as_posix()


def read(out: Path) -> list[Line]:
    """The rows of a table as they stand, none where there is no table; `StoreError` if it is something else."""
    if not out.exists():
        return []
    if not set(read_csv(out, ()).columns) >= SWEEP_COLUMNS:
        raise StoreError(f"{out} exists and is not a sweep table; choose another --out")
    with reading(out):
        return list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"), newline="")))


def check(out: Path, rows: Sequence[Mapping[str, Any]], settings: Sequence[str], terms: RowPolicy) -> None:
    """`StoreError` if writing these rows would lose some of what the table holds.

    `settings` are the columns that say what was asked for; the others are results.
    """
    there, planned = read(out), _as_text(rows)
    if not (there and planned) or terms.replace:
        return
    _check_columns(out, there, planned)
    known = _Identity(settings, there, planned)
    statuses = {known(line): line["status"] for line in planned}
    lost = [line for line in there if known(line) not in statuses]
    if lost and not terms.append:
        raise StoreError(
            f"{out} has {_counted(lost)} that this sweep does not plan{_such_as(lost)}; {APPEND_HINT}, {REPLACE_HINT}"
        )
    finished = [line for line in there if line["status"] == "done" and known(line) in statuses]
    missing = [line for line in finished if statuses[known(line)] == "planned"]
    elsewhere = [line for line in missing if not line.get(FOLDER)]  # of an earlier version, maybe of another folder
    if missing and not terms.redo and (elsewhere or len(missing) == len(finished) or not terms.trains):
        raise StoreError(
            f"{out} has the numbers of {_counted(missing)} whose cells are not in {planned[0][FOLDER]} any more"
            f"{_such_as(missing)}; {REPLACE_HINT}"
        )


def write(out: Path, rows: Sequence[Mapping[str, Any]], settings: Sequence[str], alone: bool = False) -> None:
    """Writes these rows, each in the place of the one it replaces; all others stay as they are, unless `alone`."""
    planned = _as_text(rows)
    there = [] if alone else read(out)
    _check_columns(out, there, planned)
    known = _Identity(settings, there, planned)
    own: dict[tuple[str, ...], deque[Line]] = {}
    for line in planned:
        own.setdefault(known(line), deque()).append(line)
    if all(known(line) in own for line in there):
        replace_file(out, csv_bytes(rows))
        return
    together = []
    for line in there:
        same = own.get(known(line), deque([line]))  # one that is not planned stays
        together += [same.popleft()] if same else []
    rest = [line for lines in own.values() for line in lines]
    replace_file(out, text(list(planned[0]), [*together, *rest]))


def _check_columns(out: Path, there: Sequence[Line], planned: Sequence[Line]) -> None:
    """Somebody's own column would be lost."""
    unknown = [str(name) for name in (there[0] if there else {}) if name not in planned[0]]
    if unknown:
        raise StoreError(f"{out} has columns that this sweep's table has not, such as {unknown[0]}; {REPLACE_HINT}")


class _Identity:
    """What a row is known by: its folder, and what was asked for, as far as both tables have columns of it.

    A row without a folder, of an earlier version's table, is in that of the rows that are planned.
    """

    def __init__(self, settings: Sequence[str], there: Sequence[Line], planned: Sequence[Line]):
        self.folder = planned[0][FOLDER]
        self.columns = [name for name in settings if name != FOLDER and (not there or name in there[0])]

    def __call__(self, line: Line) -> tuple[str, ...]:
        return (line.get(FOLDER) or self.folder, *(_value(line[name]) for name in self.columns))


def _value(text: str) -> str:
    """A cell's text, a number as the number it is: a column of whole numbers reads 4.0 once another row has inf."""
    try:
        return repr(float(text))
    except ValueError:
        return text


def _as_text(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    return list(csv.DictReader(io.StringIO(csv_bytes(rows).decode(), newline="")))


def text(columns: Sequence[str], lines: Sequence[Line]) -> bytes:
    """Lines as a CSV of these columns."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue().encode()


def _counted(lines: Sequence[Line]) -> str:
    return f"{len(lines)} row{'s' * (len(lines) > 1)}"


def _such_as(lines: Sequence[Line]) -> str:
    return f", such as {lines[0]['exp'][:SHOWN]}"
