"""Cells of an earlier version, whose names end with the ids of then: they are the planned cells, and are taken over."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from configs.identity import config_id
from store import rundir
from store.atomic import replace
from store.lock import locked, locked_file
from store.readers import StoreError
from sweeps import table
from sweeps.plan import Row, cells, earlier_name

PATIENCE = 60.0  # seconds that others who write the table are waited for


def found(rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """The cells of an earlier version that stand for planned ones which are not there: name of then -> today's."""
    pairs = {earlier_name(cell.config): cell for cell in cells(rows)} if folder.is_dir() else {}
    return {
        name: cell.name
        for name, cell in pairs.items()
        if not os.path.lexists(folder / cell.name) and _is_run_of(folder / name, config_id(cell.config))
    }


def _is_run_of(run: Path, identity: str) -> bool:
    try:
        return rundir.has_begun(run) and rundir.stored_id(run) == identity
    except StoreError:
        return False


def take_over(rows: Sequence[Row], folder: Path, out: Path) -> int:
    """Gives such cells, and the rows of a table that are theirs, the names of today; how many there were."""
    names = found(rows, folder)
    if not names:
        return 0
    with locked(folder, patience=PATIENCE), locked_file(out, PATIENCE):
        for name, today in names.items():
            os.rename(folder / name, folder / today)
        lines = table.read(out)
        for line in lines:
            line["exp"] = names.get(line["exp"], line["exp"])
        if lines:
            replace(out, table.text(list(lines[0]), lines))
    return len(names)
