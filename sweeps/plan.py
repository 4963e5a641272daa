"""What a sweep will do: the rows of its CSV, the cells that fill them, and the packs that train the cells.

Everything here is a function of the grid alone, so two processes with one grid have one plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from runners.shapes import static_shape, training_part
from src.config import ContextConfig, RunConfig, from_dict, to_dict
from store.atomic import write_json
from store.provenance import RESULTS_VERSION, config_id
from store.readers import StoreError, expecting, read_json
from sweeps.grid import Grid, canonical

PLAN = "plan.json"


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
    """The rows of the grids, in their order; a point that several grids hold is planned once."""
    asked = dict.fromkeys(point for grid in grids for point in grid.points())
    return [Row(config, cell_of(canonical(config))) for config in asked]


def cell_of(config: RunConfig) -> Cell:
    """The cell of a canonical config. Its name says what it is to a person, and ends with the config's id."""
    words = [config.name, *(_pool_in_words(config) if config.family == "diversity" else _contexts_in_words(config))]
    return Cell(f"{'_'.join([*words, f'seed{config.data_seed}'])}-{config_id(config)[:8]}", config)


def _contexts_in_words(config: RunConfig) -> list[str]:
    evaluated, trained = in_words(config.eval), in_words(config.train)
    return [evaluated, *(["trained", trained] if trained != evaluated else [])]


def _pool_in_words(config: RunConfig) -> list[str]:
    schedule = "triangle" if config.training.triangle else "constant"
    return [f"D{config.data.dim}", f"M{config.data.num_tasks or 'inf'}", schedule, f"steps{config.training.steps}"]


def in_words(context: ContextConfig) -> str:
    """A context's settings in a word."""
    noise = [context.noise_mode, f"p{context.noise_p:g}", *([f"s{context.noise_sigma:g}"] * (context.noise_sigma > 0))]
    placement = [context.noise_placement] * (context.noise_placement != "mixed")
    return "_".join([context.ordering, *(noise + placement) * (context.noise_mode != "clean")])


def cells(rows: Sequence[Row]) -> list[Cell]:
    """The cells of a plan, each once."""
    return list(dict.fromkeys(row.cell for row in rows))


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
    """The cells of shard `index` of `count`, from 1. It depends on a cell's training alone, so shards are disjoint
    whatever is finished, and a training is done in one of them.
    """
    return [cell for cell in chosen if int(config_id(training_part(cell.config)), 16) % count == index - 1]


def write_plan(folder: Path, rows: Sequence[Row]) -> None:
    """Writes a sweep's plan into its folder."""
    configs = [{"asked": to_dict(row.asked), "cell": to_dict(row.cell.config)} for row in rows]
    write_json(folder / PLAN, {"results_version": RESULTS_VERSION, "rows": configs})


def read_plan(folder: Path) -> list[Row]:
    """The plan that a sweep's folder holds; `StoreError` if there is none, or one of another results version."""
    path = folder / PLAN
    found = read_json(path)
    if found.get("results_version") != RESULTS_VERSION:
        raise StoreError(f"{path} is of another results version; run its sweep again")
    with expecting(path, "the plan of a sweep"):
        return [Row(from_dict(row["asked"]), cell_of(from_dict(row["cell"]))) for row in found["rows"]]


def _by(width: int, values: Iterable[list[Cell]]) -> Iterator[list[list[Cell]]]:
    rest = iter(values)
    while part := list(islice(rest, width)):
        yield part
