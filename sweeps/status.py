"""How far a sweep is.

python -m sweeps.status --runs_dir DIR
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import cli
from src.checks import ConfigError
from store import rundir
from store.readers import StoreError
from sweeps import upgrade
from sweeps.plan import Cell, cells, read_plans


def cell_status(cell: Cell, folder: Path) -> tuple[str, str]:
    """What became of a cell so far, and why, as far as it says so.

    "planned" if it has not begun, "failed" if its place holds what it cannot use.
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
    """What became of each cell so far."""
    return {cell: cell_status(cell, folder)[0] for cell in chosen}


def status_counts(found: Iterable[str]) -> str:
    """Statuses in a line: `12 done, 3 planned`."""
    return ", ".join(f"{number} {status}" for status, number in sorted(Counter(found).items()))


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("sweeps.status", "Says how far a sweep is, and which of its cells have failed or diverged.")
    built.add_argument("--runs_dir", type=Path, required=True, help="the sweep's folder")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    folder = parser().parse(argv).runs_dir
    rows = read_plans(folder)
    found = {cell: cell_status(cell, folder) for cell in cells(rows)}
    for cell, (status, why) in found.items():
        if status in ("failed", "diverged"):
            print(cli.printable(f"{status}: {folder / cell.name}{why and f': {why}'}"))
    print(f"{len(found)} cells: {status_counts(status for status, _ in found.values())}")
    if said := upgrade.notice(rows, folder):
        print(said)


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
