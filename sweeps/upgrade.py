"""Renames the cells of an earlier version, whose names end with that version's ids, to today's names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from configs.identity import config_id
from configs.schema_1 import earlier_id
from store import rundir
from store.atomic import replace_file
from store.lock import locked, locked_file
from store.readers import StoreError
from sweeps import table
from sweeps.plan import DIGITS, Row, cells


def earlier_cells(rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """{earlier name: today's name} of the planned cells that exist under an earlier name only."""
    existing = {path.name.rpartition("-")[2]: path.name for path in folder.iterdir()} if folder.is_dir() else {}
    missing = [cell for cell in cells(rows) if not os.path.lexists(folder / cell.name)] if existing else []
    pairs = {existing.get(earlier_id(cell.config)[:DIGITS], ""): cell for cell in missing}
    return {
        name: cell.name for name, cell in pairs.items() if name and _is_run_of(folder / name, config_id(cell.config))
    }


def cell_count(count: int) -> str:
    """`1 cell` or `2 cells`."""
    return f"{count} cell{'s' * (count > 1)}"


def notice(rows: Sequence[Row], folder: Path) -> str:
    """A line on such cells for commands that rename nothing; "" if there are none."""
    count = len(earlier_cells(rows, folder))
    return f"{cell_count(count)} of an earlier version: the sweep renames and does not retrain them" if count else ""


def _is_run_of(run: Path, identity: str) -> bool:
    try:
        return rundir.has_begun(run) and rundir.stored_id(run) == identity
    except StoreError:
        return False


def rename_cells(rows: Sequence[Row], folder: Path, out: Path) -> int:
    """Renames such cells and their rows in the table; returns the number of cells."""
    if not (earlier_cells(rows, folder) or renamed_lines(rows, out)):
        return 0
    with locked(folder, timeout=table.LOCK_TIMEOUT), locked_file(out, table.LOCK_TIMEOUT):
        if lines := renamed_lines(rows, out):  # before the cells, so that a second call after a kill does the rest
            replace_file(out, table.text(list(lines[0]), lines))
        names = earlier_cells(rows, folder)  # again: another shard may have renamed them
        for name, today in names.items():
            os.rename(folder / name, folder / today)
    return len(names)


def renamed_lines(rows: Sequence[Row], out: Path) -> list[table.Line]:
    """The lines of a table with today's cell names; empty if there is nothing to rename."""
    lines, planned = table.read(out), {cell.name: cell for cell in cells(rows)}
    if {line["exp"] for line in lines} <= {*planned}:
        return []
    today = {earlier_id(cell.config)[:DIGITS]: name for name, cell in planned.items()}
    renamed = [line | {"exp": today.get(line["exp"].rpartition("-")[2], line["exp"])} for line in lines]
    return renamed if renamed != lines else []
