"""Cells of an earlier version, whose names end with the ids of then: they are the planned cells, and are taken over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from configs.identity import config_id
from configs.schema_1 import earlier_id
from store import rundir
from store.atomic import replace
from store.lock import locked, locked_file
from store.readers import StoreError
from sweeps import table
from sweeps.plan import DIGITS, Row, cells


def found(rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """The cells of an earlier version that stand for planned ones which are not there: name of then -> today's."""
    there = {path.name.rpartition("-")[2]: path.name for path in folder.iterdir()} if folder.is_dir() else {}
    missing = [cell for cell in cells(rows) if not os.path.lexists(folder / cell.name)] if there else []
    pairs = {there.get(earlier_id(cell.config)[:DIGITS], ""): cell for cell in missing}
    return {
        name: cell.name for name, cell in pairs.items() if name and _is_run_of(folder / name, config_id(cell.config))
    }


def counted(count: int) -> str:
    """How many cells have the names, in words."""
    return f"{count} {'cells have the names' if count > 1 else 'cell has the name'}"


def remark(rows: Sequence[Row], folder: Path) -> str:
    """What is said of such cells where nothing is renamed; "" if there are none."""
    count = len(found(rows, folder))
    return f"{counted(count)} of an earlier version: the sweep renames them, and trains none anew" if count else ""


def _is_run_of(run: Path, identity: str) -> bool:
    try:
        return rundir.has_begun(run) and rundir.stored_id(run) == identity
    except StoreError:
        return False


def take_over(rows: Sequence[Row], folder: Path, out: Path) -> int:
    """Gives such cells, and the rows of a table that are theirs, the names of today; how many cells there were."""
    if not (found(rows, folder) or renamed(rows, out)):
        return 0
    with locked(folder, patience=table.PATIENCE), locked_file(out, table.PATIENCE):
        if lines := renamed(rows, out):  # before the cells: what a kill leaves undone is found again
            replace(out, table.text(list(lines[0]), lines))
        names = found(rows, folder)  # another shard may have been faster
        for name, today in names.items():
            os.rename(folder / name, folder / today)
    return len(names)


def renamed(rows: Sequence[Row], out: Path) -> list[table.Line]:
    """The lines of a table with today's names, whichever table's sweep renamed the cells; none if all have them."""
    lines, planned = table.read(out), {cell.name: cell for cell in cells(rows)}
    if {line["exp"] for line in lines} <= {*planned}:
        return []
    today = {earlier_id(cell.config)[:DIGITS]: name for name, cell in planned.items()}
    found_again = [line | {"exp": today.get(line["exp"].rpartition("-")[2], line["exp"])} for line in lines]
    return found_again if found_again != lines else []
