"""Renames the cells of an earlier version, whose names end with that version's ids, to today's names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.schema_1 import earlier_id
from icl_lab.store import ownership, rundir
from icl_lab.store.atomic import replace_file
from icl_lab.store.lock import in_use, locked, locked_file
from icl_lab.store.readers import StoreError
from icl_lab.sweeps import table
from icl_lab.sweeps.plan import DIGITS, Row, cells


def earlier_cells(rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """{earlier name: today's name} of the planned cells that exist under an earlier name only."""
    there = {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
    planned = {cell.name: cell for cell in cells(rows)} if there else {}
    existing = {name.rpartition("-")[2]: name for name in there - planned.keys() if "-" in name}
    missing = [cell for name, cell in planned.items() if name not in there] if existing else []
    pairs = {existing.get(earlier_id(cell.config)[:DIGITS], ""): cell for cell in missing}
    return {
        name: cell.name for name, cell in pairs.items() if name and _is_run_of(folder / name, config_id(cell.config))
    }


def notice(rows: Sequence[Row], folder: Path, out: Path | None = None) -> str:
    """A line on such cells, or else on such rows of a table, for commands that rename nothing; "" if there are none."""
    if count := len(earlier_cells(rows, folder)):
        return f"{_cells(count)} of an earlier version: the sweep renames and does not retrain them"
    lines = out is not None and renamed_lines(rows, folder, out)
    return f"{out} has cell names of an earlier version: the sweep renames them" if lines else ""


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count > 1)}"


def _is_run_of(run: Path, identity: str) -> bool:
    try:
        return rundir.has_begun(run) and rundir.stored_id(run) == identity
    except StoreError:
        return False


def rename_cells(rows: Sequence[Row], folder: Path, out: Path) -> str:
    """Renames such cells and their rows in the table; returns a line that says so, "" if there were none.

    `StoreError` before anything is renamed if another process has one of the cells.
    """
    cells_too = bool(earlier_cells(rows, folder))
    if not (cells_too or renamed_lines(rows, folder, out)):
        return ""
    with ExitStack() as locks:
        if cells_too:
            locks.enter_context(locked(folder, timeout=table.LOCK_TIMEOUT))
        locks.enter_context(locked_file(out, table.LOCK_TIMEOUT))
        names = earlier_cells(rows, folder) if cells_too else {}  # again: another shard may have renamed them
        for name in filter(lambda name: in_use(folder / name), names):
            with locked(folder / name, below=folder):  # `StoreError`, unless its owner is gone
                pass
        if lines := renamed_lines(rows, folder, out):  # before the cells: a second call after a kill does the rest
            replace_file(out, table.text(list(lines[0]), lines))
        for name, today in names.items():
            with locked(folder / name, below=folder):
                ownership.check(folder / name)
                os.rename(folder / name, folder / today)
    if names:
        return f"renamed {_cells(len(names))} of an earlier version"
    return f"renamed the cells of an earlier version in {out}" if lines else ""


def renamed_lines(rows: Sequence[Row], folder: Path, out: Path) -> list[table.Line]:
    """The lines of a table with today's names of this folder's cells; empty if there is nothing to rename."""
    lines = table.read(out)
    planned = {cell.name: cell for cell in cells(rows)} if lines else {}
    folder_names = (None, "", table.relative_folder(folder, out))  # the earliest tables did not name the folder
    earlier = [line for line in lines if line.get(table.FOLDER) in folder_names and line["exp"] not in planned]
    if not earlier:
        return []
    today = {earlier_id(cell.config)[:DIGITS]: name for name, cell in planned.items()}
    names = {id(line): today.get((line["exp"] or "").rpartition("-")[2], line["exp"]) for line in earlier}
    renamed = [line | {"exp": names.get(id(line), line["exp"])} for line in lines]
    return renamed if renamed != lines else []
