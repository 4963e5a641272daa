"""Reports the status of a sweep's cells.

python -m sweeps.status --runs_dir DIR
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from icl_lab.lab import cli
from icl_lab.src.words import printable
from icl_lab.store import rundir
from icl_lab.store.outputs import in_path
from icl_lab.store.readers import StoreError
from icl_lab.sweeps import upgrade
from icl_lab.sweeps.plan import Cell, cells
from icl_lab.sweeps.plan_file import read_plans

PLANNED = ("planned", "")


def cell_status(cell: Cell, folder: Path) -> tuple[str, str]:
    """The status of a cell, and the last line of its error if there is one.

    "planned" if it has not begun, "failed" if its directory cannot be used.
    """
    run = folder / cell.name
    try:
        rundir.check_usable(run, cell.config, overwrite=False)
        meta = rundir.read_meta(run)
    except (StoreError, OSError) as error:
        return "failed", str(error)
    last = str(meta.get("error") or "").strip().splitlines()[-1:]
    return str(meta.get("status", "planned")), "".join(last)


def statuses(chosen: Sequence[Cell], folder: Path) -> dict[Cell, str]:
    """The status of each cell."""
    return {cell: status for cell, (status, _) in statuses_and_errors(chosen, folder).items()}


def statuses_and_errors(chosen: Sequence[Cell], folder: Path) -> dict[Cell, tuple[str, str]]:
    """`cell_status` of each cell; of those that have no directory nothing is read."""
    there = {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
    return {cell: cell_status(cell, folder) if cell.name in there else PLANNED for cell in chosen}


def status_counts(statuses: Iterable[str]) -> str:
    """Counts of statuses: `12 done, 3 planned`."""
    return ", ".join(f"{number} {status}" for status, number in sorted(Counter(statuses).items()))


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("sweeps.status", "Counts a sweep's cells by status, and lists those that failed or diverged.")
    built.add_argument("--runs_dir", type=in_path, required=True, help="the sweep's folder")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    folder = parser().parse(argv).runs_dir
    rows = read_plans(folder)
    by_cell = statuses_and_errors(cells(rows), folder)
    for cell, (status, error) in by_cell.items():
        if status in ("failed", "diverged"):
            print(printable(f"{status}: {folder / cell.name}{error and f': {error}'}"))
    print(f"{len(by_cell)} cells: {status_counts(status for status, _ in by_cell.values())}")
    if notice := upgrade.notice(rows, folder):
        print(notice)


if __name__ == "__main__":
    cli.launch(main)
