"""What a sweep will do: the rows of its CSV, the cells that fill them, and the packs that train the cells.

Everything here is a function of the grid alone, so two processes with one grid have one plan.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from configs.dependencies import generation, required_of, root
from configs.identity import RESULTS_VERSION, config_id
from configs.registry import family_of, from_dict
from configs.run import RunConfig, to_dict
from runners.shapes import static_shape, training_part
from src.registry import why_not_loaded
from store.atomic import json_bytes, replace
from store.readers import StoreError, expecting, read_json
from sweeps.grid import Grid, canonical, check_number

EARLIER_PLAN = "plan.json"  # of versions with one plan to a folder
DIGITS = 8  # of its id at the end of a cell's name


class Cell(NamedTuple):
    """A run of a sweep: its directory's name below the sweep's, and its config."""

    name: str
    config: RunConfig


class Row(NamedTuple):
    """A planned point: the config as asked for, and the cell that gives its numbers, which synonyms share."""

    asked: RunConfig
    cell: Cell


class Pack(NamedTuple):
    """Cells that train together."""

    cells: tuple[Cell, ...]

    @property
    def shape(self) -> RunConfig:
        """The static shape of all its trainings."""
        return static_shape(self.cells[0].config)

    @property
    def steps(self) -> int:
        """The training steps it makes, over all its trainings."""
        return self.trainings * self.cells[0].config.training.steps

    @property
    def trainings(self) -> int:
        """How many trainings the pack holds: cells that differ in evaluation alone share one."""
        return len({training_part(cell.config) for cell in self.cells})


def plan(grids: Iterable[Grid]) -> list[Row]:
    """The rows of the grids, in their order; a point that several grids hold is planned once.

    `ConfigError` if there are too many points to plan.
    """
    grids = list(grids)
    check_number(grids)
    asked = dict.fromkeys(point for grid in grids for point in grid.points())
    return [Row(config, cell_of(canonical(config))) for config in asked]


def cell_of(config: RunConfig) -> Cell:
    """The cell of a canonical config. Its name says what it is to a person, and ends with the config's id."""
    words = [config.name, *family_of(config).cell_words(config), f"seed{config.data_seed}"]
    return Cell(f"{'_'.join(words)}-{config_id(config)[:DIGITS]}", config)


def cells(rows: Sequence[Row]) -> list[Cell]:
    """The cells of a plan, each once, behind those that they build on."""
    found: dict[Cell, None] = {}
    for row in rows:
        for required in required_of(row.cell.config):
            found |= dict.fromkeys(cell_of(config) for config in _row_to(required))
        found[row.cell] = None
    return list(found)


def _row_to(config: RunConfig) -> Iterator[RunConfig]:
    """The configs of the runs that one builds on, then its own."""
    for required in required_of(config):
        yield from _row_to(required)
    yield config


def generations(parts: Sequence[Pack]) -> list[list[Pack]]:
    """Packs in groups of which each can begin when those before it have ended."""
    found: dict[int, list[Pack]] = {}
    for pack in parts:
        found.setdefault(generation(pack.cells[0].config), []).append(pack)
    return [found[number] for number in sorted(found)]


def packs(chosen: Sequence[Cell], width: int) -> list[Pack]:
    """Packs of these cells, each of one static shape and with at most `width` trainings."""
    shapes: dict[RunConfig, dict[RunConfig, list[Cell]]] = {}
    for cell in chosen:
        shapes.setdefault(static_shape(cell.config), {}).setdefault(training_part(cell.config), []).append(cell)
    return [
        Pack(tuple(cell for together in part for cell in together))
        for trainings in shapes.values()
        for part in _by(width, trainings.values())
    ]


def shard(chosen: Sequence[Cell], index: int, count: int) -> list[Cell]:
    """The cells of shard `index` of `count`, from 1. It depends on a cell's training alone, or that of the first run in
    the row that it builds on, so shards are disjoint whatever is finished, and a training is done in one of them.
    """
    return [cell for cell in chosen if int(config_id(training_part(root(cell.config))), 16) % count == index - 1]


def plan_file(folder: Path, out: Path) -> Path:
    """Where the plan of a table lies in a sweep's folder: each table has its own."""
    path = folder / f"plan_{out.stem}.json"
    table = _relative(out, folder)
    if path.exists() and _planned_table(path) not in (table, None):  # another table of that name, elsewhere
        return folder / f"plan_{out.stem}_{hashlib.sha256(table.encode()).hexdigest()[:6]}.json"
    return path


def write_plan(folder: Path, out: Path, rows: Sequence[Row]) -> None:
    """Writes the plan of a table into its sweep's folder."""
    configs = [{"asked": to_dict(row.asked), "cell": to_dict(row.cell.config)} for row in rows]
    found = {"results_version": RESULTS_VERSION, "table": _relative(out, folder), "rows": configs}
    replace(plan_file(folder, out), json_bytes(found))


def check_plan(folder: Path, out: Path, rows: Sequence[Row], append: bool) -> list[Row]:
    """The rows that a table's plan will have, with `append` in addition to those it has.

    `StoreError` if a file that is no plan of a sweep has its name.
    """
    path = plan_file(folder, out)
    if path.is_symlink() or (path.exists() and not _is_plan(path)):
        raise StoreError(f"{path} is not the plan of a sweep; move it away or choose another --out")
    earlier = read_plan(path) if append and path.exists() else []
    return list(dict.fromkeys([*earlier, *rows]))


def plan_files(folder: Path) -> list[Path]:
    """The plans that a sweep's folder holds; `StoreError` if there is none."""
    found = [path for path in (folder / EARLIER_PLAN, *sorted(folder.glob("plan_*.json"))) if path.is_file()]
    if not found:
        raise StoreError(f"{folder} is not the folder of a sweep: it has no plan_<table>.json")
    return found


def find_plan(folder: Path, out: Path) -> Path:
    """The plan of a table, or the only one there is."""
    found = plan_files(folder)
    own = plan_file(folder, out)
    if own in found or len(found) == 1:
        return own if own in found else found[0]
    names = ", ".join(path.name for path in found)
    raise StoreError(f"{folder} has the plans {names}, and none for {out.name}; say which with --plan")


def read_plans(folder: Path) -> list[Row]:
    """The rows of all plans in a sweep's folder, each once."""
    return list(dict.fromkeys(row for path in plan_files(folder) for row in read_plan(path)))


def read_plan(path: Path) -> list[Row]:
    """The rows of a plan; `StoreError` if it is damaged, or of another results version."""
    found = read_json(path)
    if found.get("results_version") != RESULTS_VERSION:
        raise StoreError(f"{path} is of another results version; run its sweep again")
    with expecting(path, "the plan of a sweep"):
        reasons = {why_not_loaded(config) for row in found["rows"] for config in (row["asked"], row["cell"])} - {None}
    if reasons:
        raise StoreError(f"a run of {path} {min(map(str, reasons))}")
    with expecting(path, "the plan of a sweep"):
        return [Row(from_dict(row["asked"]), cell_of(from_dict(row["cell"]))) for row in found["rows"]]


def _is_plan(path: Path) -> bool:
    """Whether a file is a plan, of this results version or another."""
    try:
        plan = read_json(path)
    except StoreError:
        return False
    rows = plan.get("rows")
    shaped = isinstance(rows, list) and all(isinstance(row, dict) and {*row} == {"asked", "cell"} for row in rows)
    return shaped and isinstance(plan.get("results_version"), int)


def _planned_table(path: Path) -> str | None:
    try:
        return str(read_json(path)["table"])
    except (StoreError, KeyError):
        return None


def _relative(out: Path, folder: Path) -> str:
    return Path(os.path.relpath(os.path.realpath(out), os.path.realpath(folder))).as_posix()


def _by(width: int, values: Iterable[list[Cell]]) -> Iterator[list[list[Cell]]]:
    rest = iter(values)
    while part := list(islice(rest, width)):
        yield part
