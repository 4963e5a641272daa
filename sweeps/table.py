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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from store.atomic import csv_bytes, write_bytes
from store.readers import StoreError, read_csv, reading

FOLDER = "runs_dir"
OF_A_SWEEP = {"exp", "model", "seed", "status", "results_version"}  # columns of every table
KEEP = "--append keeps them"
LET_GO = "--replace_table lets go of them in the table alone, and another --out leaves them there"
SHOWN = 60  # letters of a cell's name in a sentence

Line = dict[str, str]


class Terms(NamedTuple):
    """What may become of a table that is there: `append` keeps all rows that are not planned, `replace` drops them;
    with `redo` the planned cells are trained anew, so their numbers may go.
    """

    append: bool = False
    replace: bool = False
    redo: bool = False


def folder_of(folder: Path, out: Path) -> str:
    """The runs folder as a table names it: relative to the table."""
    return Path(os.path.relpath(os.path.realpath(folder), os.path.realpath(out.parent))).as_posix()


def read(out: Path) -> list[Line]:
    """The rows of a table as they stand, none where there is no table; `StoreError` if it is something else."""
    if not out.exists():
        return []
    if not set(read_csv(out, ()).columns) >= OF_A_SWEEP:
        raise StoreError(f"{out} exists and is not a sweep table; choose another --out")
    with reading(out):
        return list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"), newline="")))


def check(out: Path, rows: Sequence[Mapping[str, Any]], settings: Sequence[str], terms: Terms) -> None:
    """`StoreError` if writing these rows would lose some of what the table holds.

    `settings` are the columns that say what was asked for; the others are results.
    """
    there, planned = read(out), _as_text(rows)
    if not (there and planned) or terms.replace:
        return
    unknown = [str(name) for name in there[0] if name not in planned[0]]
    if unknown:
        raise StoreError(f"{out} has columns that this sweep's table has not, such as {unknown[0]}; {LET_GO}")
    known = _identity(settings, there[0])
    statuses = {known(line, planned[0][FOLDER]): line["status"] for line in planned}
    lost = [line for line in there if known(line, planned[0][FOLDER]) not in statuses]
    if lost and not terms.append:
        raise StoreError(f"{out} has {_counted(lost)} that this sweep does not plan{_such_as(lost)}; {KEEP}, {LET_GO}")
    finished = [line for line in there if line["status"] == "done"]
    gone = [line for line in finished if statuses.get(known(line, planned[0][FOLDER]), "done") != "done"]
    if gone and len(gone) == len(finished) and not terms.redo:
        raise StoreError(
            f"{out} has the numbers of {_counted(gone)} and none of their cells is finished any more in "
            f"{planned[0][FOLDER]}{_such_as(gone)}; {LET_GO}"
        )


def write(out: Path, rows: Sequence[Mapping[str, Any]], alone: bool = False) -> None:
    """Writes these rows in the place of those of their cells; all others stay as they are, unless `alone`."""
    planned = _as_text(rows)
    waiting: dict[tuple[str, str], deque[Line]] = {}
    for line in planned:
        waiting.setdefault((line[FOLDER], line["exp"]), deque()).append(line)
    together, others = [], False
    for line in [] if alone else read(out):
        own = waiting.get((line.get(FOLDER, planned[0][FOLDER]), line["exp"]))
        if own is None:
            together.append(line)
            others = True
        elif own:
            together.append(own.popleft())
    together += [line for own in waiting.values() for line in own]
    write_bytes(out, _text(list(planned[0]), together) if others else csv_bytes(rows))


def _identity(settings: Sequence[str], of: Line) -> Callable[[Line, str], tuple[str, ...]]:
    """What a row is known by in a table with these columns; a table of an earlier version lacks some."""
    columns = [name for name in settings if name in of]

    def known(line: Line, folder: str) -> tuple[str, ...]:
        return (line.get(FOLDER, folder), *(line[name] for name in columns))

    return known


def _as_text(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    return list(csv.DictReader(io.StringIO(csv_bytes(rows).decode(), newline="")))


def _text(columns: Sequence[str], lines: Sequence[Line]) -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue().encode()


def _counted(lines: Sequence[Line]) -> str:
    return f"{len(lines)} row{'s' * (len(lines) > 1)}"


def _such_as(lines: Sequence[Line]) -> str:
    return f", such as {lines[0]['exp'][:SHOWN]}"
