"""Plans a sweep: the rows of its CSV, the cells that give their numbers, and the packs that train the cells.

Plans depend on the grid alone, so two processes with the same grid have the same plan.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from configs.dependencies import depends_on_nothing, generation, required_of, root
from configs.identity import RESULTS_VERSION, config_id, ids_by_seeds
from configs.registry import family_of, from_dict
from configs.run import RunConfig, to_dict
from configs.seeds import Seeds, seeds_of, with_seeds
from runners.static_shape import static_shape, training_part
from src.checks import ConfigError
from src.registry import why_not_loaded
from store.atomic import json_bytes, replace_file
from store.readers import StoreError, expecting, read_json
from sweeps.grid import Grid, canonical, check_number

EARLIER_PLAN = "plan.json"  # of versions with one plan per folder
DIGITS = 8  # of the config's id at the end of a cell's name


class Template:
    """What the cells of a canonical config with many seeds have in common, each worked out once."""

    def __init__(self, config: RunConfig):
        self.config = config
        self.stem = "_".join([config.name, *family_of(config).cell_words(config)])
        self.id_of = ids_by_seeds(config)

    def cell(self, seeds: Seeds) -> Cell:
        """The cell with these seeds. Its name is readable and ends with the first digits of the config's id."""
        name = f"{self.stem}_seed{seeds.data}-{self.id_of(seeds)[:DIGITS]}"
        return Cell(name, with_seeds(self.config, seeds), self)

    @cached_property
    def shape(self) -> RunConfig:
        """The static shape of the trainings."""
        return static_shape(self.config)

    @cached_property
    def training(self) -> str:
        """The id of the training part, whatever the seeds."""
        return config_id(with_seeds(training_part(self.config), Seeds()))


@dataclass(frozen=True)
class Cell:
    """A run of a sweep: the name of its directory in the sweep's folder, and its config."""

    name: str
    config: RunConfig
    template: Template = field(compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(self.name)  # which has the config's id

    @cached_property
    def training(self) -> tuple[str, Seeds]:
        """What it shares with the cells that have the same training."""
        return self.template.training, seeds_of(self.config)


@dataclass(frozen=True)
class Row:
    """A planned point: the config asked for, and the cell with its numbers, shared by equivalent configs."""

    asked: RunConfig
    cell: Cell

    def __hash__(self) -> int:
        return hash(self.cell)


class Pack(NamedTuple):
    """Cells that train together."""

    cells: tuple[Cell, ...]

    @property
    def shape(self) -> RunConfig:
        """The static shape of the trainings."""
        return self.cells[0].template.shape

    @property
    def steps(self) -> int:
        """Training steps of all trainings together."""
        return self.trainings * self.cells[0].config.training.steps

    @property
    def trainings(self) -> int:
        """The number of trainings; cells that differ in evaluation alone share one."""
        return len({cell.training for cell in self.cells})


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pauses Python's search for reference cycles, which takes a third of planning 100 000 cells; plans have none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@no_garbage_collection()
def plan(grids: Iterable[Grid]) -> list[Row]:
    """The rows of the grids, in order, without duplicates; `ConfigError` if there are too many points."""
    grids = list(grids)
    check_number(grids)
    numbers: dict[RunConfig, int] = {}  # of the configs, whatever their seeds
    asked: dict[tuple[int, Seeds], None] = {}
    for config, seeds in (each for grid in grids for each in grid.series()):
        key = with_seeds(config, Seeds()) if depends_on_nothing(config) else config
        number = numbers.setdefault(key, len(numbers))
        asked |= dict.fromkeys((number, each) for each in seeds)
    configs = [*numbers]
    templates = [Template(canonical(config)) for config in configs]
    return [_row(configs[number], templates[number], seeds) for number, seeds in asked]


def _row(asked: RunConfig, template: Template, seeds: Seeds) -> Row:
    return Row(with_seeds(asked, seeds), template.cell(seeds))


def cell_of(config: RunConfig) -> Cell:
    """The cell of a canonical config."""
    return Template(config).cell(seeds_of(config))


@no_garbage_collection()
def cells(rows: Sequence[Row]) -> list[Cell]:
    """The cells of a plan, each once, after those that they build on."""
    ordered: dict[Cell, None] = {}
    for row in rows:
        for required in required_of(row.cell.config):
            ordered |= dict.fromkeys(cell_of(config) for config in _with_required(required))
        ordered[row.cell] = None
    return list(ordered)


def _with_required(config: RunConfig) -> Iterator[RunConfig]:
    """The configs of the runs that a run builds on, then its own."""
    for required in required_of(config):
        yield from _with_required(required)
    yield config


def generations(packs: Sequence[Pack]) -> list[list[Pack]]:
    """Packs in groups, each of which builds on runs of earlier groups only."""
    groups: dict[int, list[Pack]] = {}
    for pack in packs:
        groups.setdefault(generation(pack.cells[0].config), []).append(pack)
    return [groups[number] for number in sorted(groups)]


@no_garbage_collection()
def packs(chosen: Sequence[Cell], width: int) -> list[Pack]:
    """Packs of these cells, each with one static shape and at most `width` trainings."""
    shapes: dict[RunConfig, dict[tuple[str, Seeds], list[Cell]]] = {}
    of_template: dict[Template, dict[tuple[str, Seeds], list[Cell]]] = {}
    for cell in chosen:
        if cell.template not in of_template:
            of_template[cell.template] = shapes.setdefault(cell.template.shape, {})
        of_template[cell.template].setdefault(cell.training, []).append(cell)
    return [
        Pack(tuple(cell for sharing in part for cell in sharing))
        for trainings in shapes.values()
        for part in _batched(trainings.values(), width)
    ]


def shard(chosen: Sequence[Cell], index: int, count: int) -> list[Cell]:
    """The cells of shard `index` (from 1) of `count`.

    The shard of a cell depends only on its training, or on that of the first run that it builds on. So shards are
    disjoint whatever is finished, and a training is done in one of them.
    """
    if count == 1:
        return list(chosen)
    return [cell for cell in chosen if int(config_id(training_part(root(cell.config))), 16) % count == index - 1]


def plan_file(folder: Path, out: Path) -> Path:
    """The path of a table's plan in a sweep's folder."""
    path = folder / f"plan_{out.stem}.json"
    table = _relative(out, folder)
    if path.exists() and _planned_table(path) not in (table, None):  # of a table of the same name in another folder
        return folder / f"plan_{out.stem}_{hashlib.sha256(table.encode()).hexdigest()[:6]}.json"
    return path


def write_plan(folder: Path, out: Path, rows: Sequence[Row]) -> None:
    """Writes the plan of a table into its sweep's folder."""
    values = {"results_version": RESULTS_VERSION, "table": _relative(out, folder), "rows": _written(rows)}
    replace_file(plan_file(folder, out), json_bytes(values))


def _written(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The entries of a plan file: consecutive rows that differ only in seeds share an entry."""
    written: list[dict[str, Any]] = []
    before: tuple[RunConfig, Template] | None = None
    for row in rows:
        seeds, now = seeds_of(row.asked), (with_seeds(row.asked, Seeds()), row.cell.template)
        if now != before or seeds != seeds_of(row.cell.config):
            written.append({"asked": to_dict(row.asked), "cell": to_dict(row.cell.config), "seeds": []})
        written[-1]["seeds"].append(seeds)
        before = now
    return written


def check_plan(folder: Path, out: Path, rows: Sequence[Row], append: bool) -> list[Row]:
    """The rows that a table's plan will have: with `append`, the new rows follow the present ones.

    `StoreError` if a file of this name exists and is not a plan.
    """
    path = plan_file(folder, out)
    if path.is_symlink() or (path.exists() and not _is_plan(path)):
        raise StoreError(f"{path} is not the plan of a sweep; move it away or choose another --out")
    earlier = read_plan(path) if append and path.exists() else []
    return list(dict.fromkeys([*earlier, *rows])) if earlier else list(rows)


def plan_files(folder: Path) -> list[Path]:
    """The plans in a sweep's folder; `StoreError` if there is none."""
    paths = [path for path in (folder / EARLIER_PLAN, *sorted(folder.glob("plan_*.json"))) if path.is_file()]
    if not paths:
        raise StoreError(f"{folder} is not the folder of a sweep: it has no plan_<table>.json")
    return paths


def find_plan(folder: Path, out: Path) -> Path:
    """The plan of a table, else the only plan in the folder."""
    plans = plan_files(folder)
    table_plan = plan_file(folder, out)
    if table_plan in plans or len(plans) == 1:
        return table_plan if table_plan in plans else plans[0]
    names = ", ".join(path.name for path in plans)
    raise StoreError(f"{folder} has the plans {names}, but none for {out.name}; choose one with --plan")


def read_plans(folder: Path) -> list[Row]:
    """The rows of all plans in a sweep's folder, without duplicates."""
    return list(dict.fromkeys(row for path in plan_files(folder) for row in read_plan(path)))


@no_garbage_collection()
def read_plan(path: Path) -> list[Row]:
    """The rows of a plan; `StoreError` if it is damaged, or of another results version."""
    values = read_json(path)
    if values.get("results_version") != RESULTS_VERSION:
        raise StoreError(f"{path} is of another results version; run its sweep again")
    with expecting(path, "the plan of a sweep"):
        reasons = {why_not_loaded(config) for row in values["rows"] for config in (row["asked"], row["cell"])} - {None}
    if reasons:
        raise StoreError(f"a run of {path} {min(map(str, reasons))}")
    with expecting(path, "the plan of a sweep"):
        try:
            return [row for entry in values["rows"] for row in _rows_of(entry)]
        except ConfigError as error:
            raise StoreError(f"{path} has a config that cannot be used: {error}") from None


def _rows_of(entry: dict[str, Any]) -> list[Row]:
    """The rows of an entry of a plan; earlier versions wrote each row by itself, without its seeds."""
    asked, template = from_dict(entry["asked"]), Template(from_dict(entry["cell"]))
    if "seeds" not in entry:
        return [Row(asked, template.cell(seeds_of(template.config)))]
    return [_row(asked, template, Seeds(*seeds)) for seeds in entry["seeds"]]


def _is_plan(path: Path) -> bool:
    """Whether a file is a plan, of any results version."""
    try:
        plan = read_json(path)
    except StoreError:
        return False
    rows = plan.get("rows")
    has_rows = isinstance(rows, list) and all(isinstance(row, dict) and {"asked", "cell"} <= {*row} for row in rows)
    return has_rows and isinstance(plan.get("results_version"), int)


def _planned_table(path: Path) -> str | None:
    try:
        return str(read_json(path)["table"])
    except (StoreError, KeyError):
        return None


def _relative(out: Path, folder: Path) -> str:
    return Path(os.path.relpath(os.path.realpath(out), os.path.realpath(folder))).as_posix()


def _batched(values: Iterable[list[Cell]], size: int) -> Iterator[list[list[Cell]]]:
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part
