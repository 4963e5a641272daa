"""Reads and writes the CSV of a sweep without losing rows of other sweeps.

A row is identified by its run's folder relative to the CSV (`runs_dir`), its run (`exp`) and its settings. A sweep
replaces only the rows that it plans. If other rows or numbers would be lost, that is an error, unless `RowPolicy` says
to keep them (append) or to drop them (replace).
"""

from __future__ import annotations

import csv
import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab.configs.earlier_names import todays_words
from icl_lab.store.atomic import csv_bytes, replace_file
from icl_lab.store.readers import StoreError, csv_rows, read_csv

FOLDER = "runs_dir"
NAMES = ("exp", FOLDER, "results_version")  # columns of what a row is called, and not of its settings
SWEEP_COLUMNS = {"exp", "model", "seed", "status", "results_version"}  # columns of every table
APPEND_HINT = "--append keeps them"
REPLACE_HINT = "--replace_table drops them from the table alone, and another --out leaves the table as it is"
LOCK_TIMEOUT = 60.0  # seconds to wait for another writer, which needs one or two
NAME_LENGTH = 60  # characters of a run's name in a message

Line = dict[str, str]


class RowPolicy(NamedTuple):
    """What may happen to the rows of an existing table.

    append: rows that are not planned are kept. replace: they are dropped. redo: the planned runs are retrained, so
    their numbers may be lost. trains: missing runs are retrained, so the numbers of some may be lost.
    """

    append: bool = False
    replace: bool = False
    redo: bool = False
    trains: bool = True


def relative_folder(folder: Path, out: Path) -> str:
    """The runs folder relative to the table."""
    return Path(os.path.relpath(os.path.realpath(folder), os.path.realpath(out.parent))).as_posix()


def read(out: Path) -> list[Line]:
    """The rows of a table as text under today's names, none if there is none; `StoreError` if it is no sweep table."""
    if not out.exists():
        return []
    names = [str(name) for name in read_csv(out, ()).columns]
    if not {*names} >= SWEEP_COLUMNS:
        raise StoreError(f"{out} exists and is not a sweep table; choose another --out")
    todays = [todays_words(name) for name in names]
    rows = ([words.get(cell, cell) for words, cell in zip(todays, row, strict=True)] for row in csv_rows(out)[1])
    return [dict(zip(names, row, strict=True)) for row in rows]


def check(out: Path, rows: Sequence[Mapping[str, Any]], settings: Sequence[str], policy: RowPolicy) -> None:
    """`StoreError` if writing these rows would lose rows or numbers; `settings` are the columns without results."""
    present, planned = read(out), _as_text(rows)
    if not (present and planned) or policy.replace:
        return
    _check_columns(out, present, planned)
    identity = _Identity(settings, present, planned)
    statuses = {identity(line): line["status"] for line in planned}
    lost = [line for line in present if identity(line) not in statuses]
    if lost and not policy.append:
        raise StoreError(
            f"{out} has {_counted(lost)} that this sweep does not plan{_such_as(lost)}; {APPEND_HINT}, {REPLACE_HINT}"
        )
    finished = [line for line in present if line["status"] == "done" and identity(line) in statuses]
    missing = [line for line in finished if statuses[identity(line)] == "planned"]
    unlocated = [line for line in missing if not line.get(FOLDER)]  # of an earlier version, maybe of another folder
    if missing and not policy.redo and (unlocated or len(missing) == len(finished) or not policy.trains):
        raise StoreError(
            f"{out} has the numbers of {_counted(missing)} whose runs are no longer in {planned[0][FOLDER]}"
            f"{_such_as(missing)}; {REPLACE_HINT}"
        )


def check_distinct(out: Path, rows: Sequence[Mapping[str, Any]], lines: Iterable[Line], columns: Sequence[str]) -> None:
    """`StoreError` if a row is like a line of another run, to which it is joined, in all these columns but `NAMES`."""
    told = [name for name in columns if name not in NAMES]

    def place(line: Line) -> tuple[str, ...]:
        return tuple(_value(line.get(name, "")) for name in told)

    others = {place(line): line["exp"] for line in lines}
    for line in _as_text(rows):
        other = others.get(place(line), line["exp"])
        if other != line["exp"]:
            names = " and ".join(name[:NAME_LENGTH] for name in (other, line["exp"]))
            raise StoreError(f"{out} would have rows that no column tells apart, {names}; {REPLACE_HINT}")


def _unchanged(line: Line) -> Line:
    return line


def write(
    out: Path,
    rows: Sequence[Mapping[str, Any]],
    settings: Sequence[str],
    alone: bool = False,
    fill: Callable[[Line], Line] = _unchanged,
) -> None:
    """Writes these rows where the ones they replace were; other rows stay as they are, unless `alone`.

    fill: gives another row the values of columns that it lacks, where they are known.
    """
    planned = _as_text(rows)
    present = [] if alone else read(out)
    _check_columns(out, present, planned)
    identity = _Identity(settings, present, planned)
    by_identity: dict[tuple[str, ...], deque[Line]] = {}
    for line in planned:
        by_identity.setdefault(identity(line), deque()).append(line)
    if all(identity(line) in by_identity for line in present):
        replace_file(out, csv_bytes(rows))
        return
    merged: list[Line] = []
    for line in present:
        kept = deque([line if identity(line) in by_identity else fill(line)])
        same = by_identity.get(identity(line), kept)  # a row that is not planned stays
        merged += [same.popleft()] if same else []
    rest = [line for lines in by_identity.values() for line in lines]
    replace_file(out, text(list(planned[0]), [*merged, *rest]))


def _check_columns(out: Path, present: Sequence[Line], planned: Sequence[Line]) -> None:
    """`StoreError` if the table has columns that would be lost."""
    unknown = [str(name) for name in (present[0] if present else {}) if name not in planned[0]]
    if unknown:
        raise StoreError(f"{out} has columns that this sweep does not write, such as {unknown[0]}; {REPLACE_HINT}")


class _Identity:
    """What identifies a row: its folder, and the settings that both tables have.

    A row without a folder (of an earlier version) counts as one in the folder of the planned rows.
    """

    def __init__(self, settings: Sequence[str], present: Sequence[Line], planned: Sequence[Line]):
        self.folder = planned[0][FOLDER]
        self.columns = [name for name in settings if name != FOLDER and (not present or name in present[0])]

    def __call__(self, line: Line) -> tuple[str, ...]:
        return (line.get(FOLDER) or self.folder, *(_value(line[name]) for name in self.columns))


def _value(text: str) -> str:
    """A field's text, with numbers normalised: 4 becomes 4.0 once another row of its column has inf."""
    try:
        return repr(float(text))
    except ValueError:
        return text


def _as_text(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    return list(csv.DictReader(io.StringIO(csv_bytes(rows).decode(), newline="")))


def text(columns: Sequence[str], lines: Sequence[Line]) -> bytes:
    """Lines as a CSV with these columns."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue().encode()


def _counted(lines: Sequence[Line]) -> str:
    return f"{len(lines)} row{'s' * (len(lines) > 1)}"


def _such_as(lines: Sequence[Line]) -> str:
    return f", such as {lines[0]['exp'][:NAME_LENGTH]}"
