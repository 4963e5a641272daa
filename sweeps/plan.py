"""Plans a sweep: the rows of its CSV, the cells that give their numbers, and the packs that train the cells.

Plans depend on the grid alone, so two processes with the same grid have the same plan.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from icl_lab.lab.configs.identity import config_id, depends_on_nothing, generation, ids_by_seeds, required_of, root
from icl_lab.lab.configs.run import RunConfig, Seeds, seeds_of, with_seeds
from icl_lab.runners.static_shape import static_shape, training_part
from icl_lab.sweeps.grid import Grid, canonical, check_number

DIGITS = 8  # of the config's id at the end of a cell's name


class Template:
    """What the cells of a canonical config with many seeds have in common, each worked out once."""

    def __init__(self, config: RunConfig):
        self.config = config
        self.stem = "_".join([config.name, *config.run_words()])
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
    return [row_of(configs[number], templates[number], seeds) for number, seeds in asked]


def row_of(asked: RunConfig, template: Template, seeds: Seeds) -> Row:
    """The row of a config with these seeds, whose cell has the same."""
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


def _batched(values: Iterable[list[Cell]], size: int) -> Iterator[list[list[Cell]]]:
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part
