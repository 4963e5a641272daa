"""A study: what it trains, what it claims, what it draws, and its page. Each is a folder here."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from icl_lab.studies.claim import SAMPLED_SEEDS, UNTRAINED_SUFFIX, Claim
from icl_lab.sweeps.plan import PlannedRun, plan, runs_of
from icl_lab.sweeps.status import run_status

if TYPE_CHECKING:
    from icl_lab.studies.figure import AnyFigure
    from icl_lab.studies.runs import Runs
    from icl_lab.sweeps.grid import Grid

# name -> the folder of its runs; their table lies beside it, as FOLDER.csv
RUNS_DIRS = {
    "reproduction": "runs/reproduce",
    "task_diversity": "runs/diversity",
    "order_noise": "runs/study",
    "stages": "runs/stages",
    "languages": "runs/languages",
    "theory": "runs/theory",
    "language_model": "runs/language_model",
    "solutions": "runs/solutions",
    "functions": "runs/functions",
}


FIGURES_OF_A_PAGE = re.compile(r'\{\{ *figure\("(\w+)"\) *\}\}')

PROFILES = ("quick", "full", "gpu")  # each contains those before it


class _Profiled(Protocol):
    @property
    def profile(self) -> str: ...


T = TypeVar("T", bound=_Profiled)


def of_profile(items: Iterable[T], profile: str) -> list[T]:
    """The claims, or the figures, of a profile and those it contains."""
    return [item for item in items if PROFILES.index(item.profile) <= PROFILES.index(profile)]


@dataclass(frozen=True, eq=False)
class Conditions:
    """What a study that compares conditions has besides: contrasts between them, which are measured on its table.

    seeds: by profile; grids: of these seeds; tables: the names of those it writes; write: these and the figures in a
    folder, from the sweep's table and the folder of its runs; remake: the same from the table in the folder itself,
    with or without figures; figures: name -> caption; listed: its contrasts and tables. What its page fills in besides
    claims: arguments, what each names; names, all that these may be; fill_in, what writes it; below: tables to open.
    """

    seeds: Mapping[str, Sequence[int]]
    grids: Callable[[Sequence[int]], list[Grid]]
    tables: Sequence[str]
    write: Callable[[Path, Path, Path, Sequence[int]], None]
    remake: Callable[[Path, bool], None]
    figures: Mapping[str, str]
    listed: Callable[[Path], Mapping[str, Any]]
    arguments: Mapping[str, tuple[str, ...]]
    names: Mapping[str, Sequence[str]]
    fill_in: Callable[[Path], Mapping[str, Callable[..., str]]]
    below: Callable[[Path], str]


@dataclass(frozen=True, eq=False)
class Study:
    """What a command trains, measures, draws and writes.

    remarks: what limits a claim that was not reproduced, by its name. analyses: by the name of runs, what is done in
    the directory of each that has ended, before claims and figures read it there. file: of a user's study or
    conjecture, the plugin that states it. again: how another process makes it; None: by its name. sampled_seeds: of
    the claims that need no training. tables: by name, what writes a table of its page in Markdown, from the folder of
    its figures.
    """

    name: str
    runs: Mapping[str, Runs] = field(default_factory=dict)
    claims: Sequence[Claim] = ()
    figures: Sequence[AnyFigure] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)
    conditions: Conditions | None = None
    analyses: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    file: Path | None = None
    again: Callable[[], Study] | None = None
    sampled_seeds: tuple[int, ...] = SAMPLED_SEEDS
    tables: Mapping[str, Callable[[Path], str]] = field(default_factory=dict)

    def command(self, profile: str) -> str:
        """The command that carries out a profile of it."""
        return f"python -m studies.run {self.file or self.name} --profile {profile}"

    def command_of(self, claim: Claim) -> str:
        """The command that measures a claim."""
        return f"python -m studies.run {self.file or self.name} --claims {claim.name}"

    @property
    def source(self) -> str:
        """Where it is stated, from the root."""
        return str(self.file or f"studies/{self.name}")

    @property
    def written(self) -> Path:
        """Its page, if it is written by hand: page.md of its folder, or Markdown of the same name beside its file."""
        if self.file and not self.file.is_dir():
            return self.file.with_suffix(".md")
        return (self.file or Path(__file__).parent / self.name) / "page.md"

    @property
    def notes(self) -> dict[str, Path]:
        """Its notes, by name: longer texts, written by hand as the page is. A study that is one file has none."""
        if self.file and not self.file.is_dir():
            return {}
        return {path.stem.removeprefix("note_"): path for path in sorted(self.written.parent.glob("note_*.md"))}

    @property
    def alone(self) -> tuple[Study, ...]:
        """A user's study, whose claims have a table of their own; () for one of the house, which share theirs."""
        return (self,) if self.file else ()

    @property
    def runs_dir(self) -> Path:
        """The folder of its runs, unless another is chosen."""
        return Path(RUNS_DIRS.get(self.name, f"runs/{self.name}"))

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles that differ."""
        return tuple(self.conditions.seeds) if self.conditions else PROFILES

    def results(self, profile: str) -> str:
        """The name of its folder of results, and of its page; conditions of fewer seeds have one of their own."""
        return self.name if not self.conditions or profile == self.profiles[-1] else f"{self.name}_{profile}"

    def grids(self, profile: str) -> list[Grid]:
        """What is trained for the claims, figures and conditions of a profile."""
        return self.grids_of([*of_profile(self.claims, profile), *self.figures_of(profile)]) + self._compared(profile)

    @property
    def all_grids(self) -> list[Grid]:
        """What is trained for all profiles."""
        return self.grids_of([*self.claims, *self.figures]) + self._compared(self.profiles[-1])

    def _compared(self, profile: str) -> list[Grid]:
        return self.conditions.grids(self.conditions.seeds[profile]) if self.conditions else []

    def grids_of(self, items: Iterable[Claim | AnyFigure]) -> list[Grid]:
        """What is trained for these claims, with their controls, and figures."""
        names = (name for item in items for name in (item.trained if isinstance(item, Claim) else item.run_names))
        runs = [self.runs_of(name) for name in dict.fromkeys(names)]
        return [each.grid for each in runs if each.is_possible]

    def runs_of(self, name: str) -> Runs:
        """Runs by name; those of a control are the same networks untrained."""
        return self.runs[name] if name in self.runs else self._untrained[name]

    @cached_property
    def _untrained(self) -> dict[str, Runs]:
        return {f"{name}{UNTRAINED_SUFFIX}": runs.untrained() for name, runs in self.runs.items()}

    def cell_names(self, claim: Claim) -> set[str]:
        """The cells that a claim and its control are measured on."""
        return {cell.name for name in claim.trained for cell in self.runs_of(name).cells}

    def finished(self, names: Iterable[str], runs_dir: Path) -> dict[str, list[Path]]:
        """Runs by name; none of a name unless all of them are done."""
        return {name: self.runs[name].finished(runs_dir) for name in names}

    def to_analyse(self, cells: Collection[str], runs_dir: Path) -> list[str]:
        """The runs of these cells that are done and have an analysis, as RUNS/CELL; each cell once."""
        runs = {
            cell.name: f"{name}/{cell.name}"
            for name in self.analyses
            for cell in self.runs[name].cells
            if cell.name in cells and run_status(cell, runs_dir)[0] == "done"
        }
        return [*runs.values()]

    @property
    def shown(self) -> set[str]:
        """The names of the figures that its page shows, which are kept with its results; all of a user's study."""
        if self.file is not None:
            return {figure.name for figure in self.figures}
        return {name for text in (self.written, *self.notes.values()) for name in figures_shown(text)}

    def figures_of(self, profile: str) -> list[AnyFigure]:
        """The figures of a profile."""
        return of_profile(self.figures, profile)


def figures_shown(page: Path) -> set[str]:
    """The names of the figures on a page that is written by hand."""
    return set(FIGURES_OF_A_PAGE.findall(page.read_text(encoding="utf-8"))) if page.exists() else set()


@cache
def load(name: str) -> Study:
    """A study by its name."""
    study: Study = import_module(f"icl_lab.studies.{name}.study").STUDY
    return study


def all_studies() -> list[Study]:
    """All of them."""
    return [load(name) for name in RUNS_DIRS]


@cache
def planned() -> list[PlannedRun]:
    """The cells of all studies, with the runs that they build on."""
    return runs_of(plan([grid for study in all_studies() for grid in study.all_grids]))
