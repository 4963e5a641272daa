"""What a study trains: grids of runs for each seed, and which of them have finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from icl_lab.analysis import trained
from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_summary
from icl_lab.store.readers import expecting
from icl_lab.studies.words import MAIN_SEEDS
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import PlannedRun, plan, runs_of
from icl_lab.sweeps.status import run_status

MANY_SEEDS, SOME_SEEDS, FEW_SEEDS = (tuple(range(count)) for count in (8, 5, 3))
FURTHER_SEEDS = tuple(range(8, 16))  # where what is claimed was seen on the first eight
MAIN_FROM = 1000  # the first of the seeds that main results, and further readings, are read on
CONTROL_SEEDS = 3  # networks that are not trained hardly differ
NO_TRAINING = {"steps": 1, "lr": 1e-12}
# settings that mean nothing without training
TRAINED_WITH = ("eval_every", "schedule", "warmup_steps", "snapshots", "log_records")


def fresh(block: int, count: int = MAIN_SEEDS) -> tuple[int, ...]:
    """Seeds that no earlier reading has seen; settings take blocks of ten of their own, and share no test tasks."""
    return tuple(range(MAIN_FROM + 10 * block, MAIN_FROM + 10 * block + count))


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one model with settings of their own, for each seed.

    With axes a seed has a run for each of their points, and a measure takes these as a tuple, in the axes' order.
    needs: a file or folder without which nobody can say what they are; where it is missing they have no cells.
    with_others: a measure takes a seed's run and then those of all other seeds, in order.
    """

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = FEW_SEEDS
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    data_offset: int = 0
    needs: str = ""
    with_others: bool = False

    @property
    def is_possible(self) -> bool:
        """Whether what they need is there."""
        return not self.needs or Path(self.needs).exists()

    def untrained(self) -> Runs:
        """The same networks as they begin, of the first seeds: one step too small to change a weight in float32."""
        begun = {name: value for name, value in self.settings.items() if name not in TRAINED_WITH} | NO_TRAINING
        return replace(self, settings=begun, seeds=self.seeds[:CONTROL_SEEDS])

    def of_next_seeds(self) -> Runs:
        """The same runs shifted by one seed, which pairs each run with one of another seed."""
        return replace(self, seeds=(*self.seeds[1:], self.seeds[0]))

    def with_seeds(self, seeds: Sequence[int]) -> Runs:
        """The same runs of other seeds, shifted as these are."""
        shift = self.shift % len(seeds)
        return replace(self, seeds=(*seeds[shift:], *seeds[:shift]))

    def beside_others(self) -> Runs:
        """The same runs, each beside those of all other seeds."""
        return replace(self, with_others=True)

    @property
    def shift(self) -> int:
        """By how many seeds the runs are shifted against those that they are paired with."""
        return sorted(self.seeds).index(self.seeds[0])

    @property
    def grid(self) -> Grid:
        """What the sweeps train."""
        return Grid((self.model,), self.axes, self.seeds, self.settings, self.data_offset)

    @cached_property
    def cells(self) -> list[PlannedRun]:
        """The cells of the grid, without the runs that these build on.

        Planning resolves a config for each, and every claim asks for those of all.
        """
        return (
            [cell for cell in runs_of(plan([self.grid])) if cell.config.name == self.model] if self.is_possible else []
        )

    def ended(self, folder: Path) -> dict[int, Path | tuple[Path, ...]]:
        """The run, or the runs of the axes, by seed, of the seeds whose runs are all done or have diverged.

        With others: none, unless those of all seeds are.
        """
        of_seed: dict[int, list[PlannedRun]] = {}
        for cell in self.cells:
            of_seed.setdefault(cell.config.init_seed, []).append(cell)
        ended = {
            seed: tuple(folder / cell.name for cell in seed_cells)
            for seed, seed_cells in of_seed.items()
            if all(run_status(cell, folder)[0] in rundir.FINISHED for cell in seed_cells)
        }
        if self.axes:
            return dict(ended)
        single = {seed: runs[0] for seed, runs in ended.items()}
        return _beside_others(single, self.seeds) if self.with_others else dict(single)

    def finished(self, folder: Path) -> list[Path]:
        """All runs, or none if any of them is not done."""
        runs = dict.fromkeys(run for of_seed in self.ended(folder).values() for run in each(of_seed))
        done = [run for run in runs if rundir.read_status(run) == "done"]
        return done if len(done) == len(self.cells) else []


def _beside_others(runs: Mapping[int, Path], seeds: Sequence[int]) -> dict[int, Path | tuple[Path, ...]]:
    """Each seed's run before those of all other seeds; none unless there are all."""
    if set(runs) != set(seeds):
        return {}
    return {seed: (run, *(runs[other] for other in seeds if other != seed)) for seed, run in runs.items()}


@lru_cache(maxsize=1024)  # many claims read the same runs
def summary_part(run: Path, part: str) -> dict[str, Any]:
    """A part of a finished run's summary; `StoreError` if it has none of that name."""
    summary = read_summary(run)
    with expecting(run / layout.SUMMARY, f"a summary with {part!r}"):
        values: dict[str, Any] = summary[part]
    return values


@lru_cache(maxsize=1024)
def has_trained(run: Path) -> float:
    """1 for a run that has trained by its family's criterion, 0 for one that has not or cannot be judged."""
    return float(trained.of_run(run) is True)


def each(runs: Path | tuple[Path, ...]) -> tuple[Path, ...]:
    """A seed's runs: one, or those of the axes' points."""
    return (runs,) if isinstance(runs, Path) else runs
