"""How far a sweep is.

python -m sweeps.status --runs_dir DIR
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import cli
from src.config import ConfigError
from store import rundir
from store.readers import StoreError
from sweeps.collect import status_of
from sweeps.plan import Cell, cells, read_plan


def statuses(chosen: Sequence[Cell], folder: Path) -> dict[Cell, str]:
    """What became of each cell so far."""
    return {cell: status_of(cell, folder) for cell in chosen}


def counted(found: Mapping[Cell, str]) -> str:
    """The statuses in a line: `12 done, 3 planned`."""
    return ", ".join(f"{number} {status}" for status, number in sorted(Counter(found.values()).items()))


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("sweeps.status", "Says how far a sweep is, and which of its cells have failed or diverged.")
    built.add_argument("--runs_dir", type=Path, required=True, help="the sweep's folder")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    folder = parser().parse(argv).runs_dir
    found = statuses(cells(read_plan(folder)), folder)
    for cell, status in found.items():
        if status in ("failed", "diverged"):
            print(cli.printable(f"{status}: {folder / cell.name}{_why(cell, folder / cell.name)}"))
    print(f"{len(found)} cells: {counted(found)}")


def _why(cell: Cell, run: Path) -> str:
    try:
        rundir.check_usable(run, cell.config, overwrite=False)
        meta = rundir.read_meta(run)
    except (StoreError, OSError) as error:
        return f": {error}"
    error = str(meta.get("error") or "").strip().splitlines()
    return f": {error[-1]}" if error else ""


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
