"""Plans a sweep: its points, each a row of the CSV, the runs that give their numbers, and the packs that train these.

Plans depend on the grid alone, so two processes with the same grid have the same plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from icl_lab.lab.configs.identity import config_id, depends_on_nothing, generation, ids_by_seeds, required_of, root
from icl_lab.lab.configs.presets import title_of
from icl_lab.lab.configs.run import RunConfig, Seeds, seeds_of, with_seeds
from icl_lab.lab.garbage import no_garbage_collection
from icl_lab.runners.static_shape import static_shape, training_part
from icl_lab.src.checks import require
from icl_lab.sweeps.grid import Grid, canonical, check_number

DIGITS = 8  # of the config's id at the end of a run's name


class RunSeries:
    """What the runs of a canonical config with many seeds have in common, each worked out once."""

    def __init__(self, config: RunConfig):
        self.config = config
        self.stem = "_".join([title_of(config), *config.run_words()])
        self.id_of = ids_by_seeds(config)

    def run(self, seeds: Seeds) -> PlannedRun:
        """The run with these seeds. Its name is readable and ends with the first digits of the config's id."""
        name = f"{self.stem}_seed{seeds.data}-{self.id_of(seeds)[:DIGITS]}"
        return PlannedRun(name, with_seeds(self.config, seeds), self)

    @cached_property
    def shape(self) -> RunConfig:
        """The static shape of the trainings."""
        return static_shape(self.config)

    @cached_property
    def training(self) -> str:
        """The id of the training part, whatever the seeds."""
        return config_id(with_seeds(training_part(self.config), Seeds()))


@dataclass(frozen=True)
class PlannedRun:
    """A run of a sweep: the name of its directory in the sweep's folder, and its config."""

    name: str
    config: RunConfig
    series: RunSeries = field(compare=False, repr=False)

    def __hash__(self) -> int:
        return hash(self.name)  # which has the config's id

    @cached_property
    def training(self) -> tuple[str, Seeds]:
        """What it shares with the runs that have the same training."""
        return self.series.training, seeds_of(self.config)


@dataclass(frozen=True)
class Point:
    """A planned point: the config asked for, and the run with its numbers, shared by equivalent configs.

    by_field: it is of a grid with axes beside those of its family, whose fields have no columns of their own.
    """

    asked: RunConfig
    run: PlannedRun
    by_field: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.run)


class Pack(NamedTuple):
    """Runs that train together."""

    runs: tuple[PlannedRun, ...]

    @property
    def shape(self) -> RunConfig:
        """The static shape of the trainings."""
        return self.runs[0].series.shape

    @property
    def steps(self) -> int:
        """Training steps of all trainings together."""
        return self.trainings * self.runs[0].config.training.steps

    @property
    def trainings(self) -> int:
        """The number of trainings; runs that differ in evaluation alone share one."""
        return len({run.training for run in self.runs})


@no_garbage_collection()
def plan(grids: Iterable[Grid]) -> list[Point]:
    """The points of the grids, in order, without duplicates; `ConfigError` if there are too many points."""
    grids = list(grids)
    check_number(grids)
    numbers: dict[RunConfig, int] = {}  # of the configs, whatever their seeds
    asked: dict[tuple[int, Seeds], bool] = {}
    for by_field, config, seeds in ((grid.by_field, *each) for grid in grids for each in grid.series()):
        key = with_seeds(config, Seeds()) if depends_on_nothing(config) else config
        number = numbers.setdefault(key, len(numbers))
        asked |= dict.fromkeys(((number, each) for each in seeds), by_field)
    configs = [*numbers]
    series = [RunSeries(canonical(config)) for config in configs]
    _check_files(series)
    return [point_of(configs[number], series[number], seeds, said) for (number, seeds), said in asked.items()]


def _check_files(series: Iterable[RunSeries]) -> None:
    """`ConfigError` for two files of the same contexts, whose runs would be one."""
    files: dict[str, str] = {}
    for config in (each.config for each in series if each.config.data_file):
        first = files.setdefault(config_id(config), config.data_file)
        require(first == config.data_file, f"{first} and {config.data_file} hold the same data; leave one out")


def point_of(asked: RunConfig, series: RunSeries, seeds: Seeds, by_field: bool = False) -> Point:
    """The point of a config with these seeds, whose run has the same."""
    return Point(with_seeds(asked, seeds), series.run(seeds), by_field)


def planned_run(config: RunConfig) -> PlannedRun:
    """The run of a canonical config."""
    return RunSeries(config).run(seeds_of(config))


@no_garbage_collection()
def runs_of(points: Sequence[Point]) -> list[PlannedRun]:
    """The runs of a plan, each once, after those that they build on."""
    ordered: dict[PlannedRun, None] = {}
    for point in points:
        for required in required_of(point.run.config):
            ordered |= dict.fromkeys(planned_run(config) for config in _with_required(required))
        ordered[point.run] = None
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
        groups.setdefault(generation(pack.runs[0].config), []).append(pack)
    return [groups[number] for number in sorted(groups)]


@no_garbage_collection()
def packs(chosen: Sequence[PlannedRun], width: int) -> list[Pack]:
    """Packs of these runs, each with one static shape and at most `width` trainings."""
    shapes: dict[RunConfig, dict[tuple[str, Seeds], list[PlannedRun]]] = {}
    of_series: dict[RunSeries, dict[tuple[str, Seeds], list[PlannedRun]]] = {}
    for run in chosen:
        if run.series not in of_series:
            of_series[run.series] = shapes.setdefault(run.series.shape, {})
        of_series[run.series].setdefault(run.training, []).append(run)
    return [
        Pack(tuple(run for sharing in part for run in sharing))
        for trainings in shapes.values()
        for part in _batched(trainings.values(), width)
    ]


def shard(chosen: Sequence[PlannedRun], index: int, count: int) -> list[PlannedRun]:
    """The runs of shard `index` (from 1) of `count`.

    The shard of a run depends only on its training, or on that of the first run that it builds on. So shards are
    disjoint whatever is finished, and a training is done in one of them.
    """
    if count == 1:
        return list(chosen)
    return [run for run in chosen if int(config_id(training_part(root(run.config))), 16) % count == index - 1]


def _batched(values: Iterable[list[PlannedRun]], size: int) -> Iterator[list[list[PlannedRun]]]:
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part


# --- how long packs take on the machine of benchmarks/performance.md ---

START, COMPILE, FINISH = 4.0, 5.0, 0.6  # seconds per process, per static shape, per run's analyses


def step_seconds(config: RunConfig) -> float:
    """Seconds of one training step of one run on one core."""
    return config.training.batch_size * config.task_seconds()


def seconds_of(packs: Sequence[Pack], width: int, cores: int) -> float:
    """Seconds that packs, each padded to `width` trainings, take on this many cores."""
    if not packs:
        return 0.0
    steps: Counter[RunSeries] = Counter()
    for pack in packs:
        steps[pack.runs[0].series] += width * pack.runs[0].config.training.steps
    training = sum(count * step_seconds(series.shape) for series, count in steps.items())
    shapes = len({series.shape for series in steps})
    finishing = FINISH * sum(len(pack.runs) for pack in packs)
    return START + COMPILE * shapes + (training + finishing) / cores
