"""What the runs of a family leave, as declarations without JAX: analyses, columns, curves, criteria and a summary.

`runners.finish` runs the analyses; sweeps, figures and `store.runs` read the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab.configs.family import Flag

Summary = Mapping[str, Any]  # metrics_summary.json of a finished run
Results = Mapping[str, Any]  # the same, with the family's further files by short name and whether it trained


TRAIN_LONGER = "train longer (--steps) or take another --seed"


def _nothing(*_: Any) -> dict[str, Any]:
    return {}


class Columns(NamedTuple):
    """The columns of a sweep's table: name -> value of a config, or of a finished run's files.

    In this order: `exp`, `model`, `asked`, `seed`, `first` results, `status`, further `settings`, `measured`. `files`
    are the JSON files of results besides the summary, by short name. further(config) are columns of what plugins
    registered, of a config or, of None, all of them. `meanings` says what columns are, by pattern: the first that
    matches a name counts, and those of all families (`lab.configs.columns.MEANINGS`) come last.
    """

    asked: Mapping[str, Callable[[Any], Any]]
    measured: Mapping[str, Callable[[Results], Any]]
    first: Mapping[str, Callable[[Results], Any]] = {}
    settings: Mapping[str, Callable[[Any], Any]] = {}
    files: Mapping[str, str] = {}
    further: Callable[[Any], Mapping[str, Callable[[Results], Any]]] = _nothing
    meanings: Mapping[str, str] = {}


class Curve(NamedTuple):
    """A field of the metrics, its label, and whose it is: "train", "model", "descent" or "other"."""

    field: str
    label: str
    whose: str


class Panel(NamedTuple):
    """Losses over training in one unit, which the axis names."""

    unit: str
    curves: tuple[Curve, ...]
    yscale: str = "linear"


class Criterion(NamedTuple):
    """A condition of having trained: what is measured, its value in a summary, threshold, side, unit."""

    words: str
    value: Callable[[Any, Summary], float | None]
    threshold: float
    at_least: bool = False
    unit: str = ""


class NamedLoss(NamedTuple):
    """The loss of a finished run on its test set: its name, and where it stands in the summary."""

    name: str
    value: Callable[[Summary], Any]


class Analysis(NamedTuple):
    """An analysis that a finished run gets: its name in `runners.analyses.ANALYSES`, and its arguments by name.

    sections: where its result stands in the summary; of several, it gives each by its name. when(config, table):
    whether a run of this config gets it, in a sweep, whose table may need it, or alone. options: flags of the runner;
    the first asks for the analysis, the others are arguments. file: what it leaves, by which a run is seen to have it.
    """

    name: str
    sections: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = {}
    when: Callable[[Any, bool], bool] = lambda config, table: True
    options: tuple[Flag, ...] = ()
    file: str = ""


@dataclass(frozen=True)
class Outputs:
    """What the runs of a family leave. summary(summary, run, config): the lines of the printed summary.

    meaning(summary, run, config): what a run is and what came out, in one line that comes before all numbers; "" if
    none. remedy(run, config): what to do about a run that has not trained. label(config, name): a predictor in words.
    analyses: what a finished run gets, in this order. commands: the analyses that it can be given by hand, besides
    those of all families. criteria: when a run has trained: all of them hold. undefined(config, summary): why no number
    can tell whether it has, or None. file_panels: in place of `panels`, those of contexts from a file, and
    source_panels those of runs whose `data.source` has this name. by_loss: what runs leave whose `model.loss` has this
    name, if that is something else.
    """

    loss_convention: str
    test_loss: NamedLoss
    columns: Columns
    panels: tuple[Panel, ...]
    summary: Callable[[Summary, Path, Any], list[str]]
    analyses: tuple[Analysis, ...] = ()
    commands: tuple[str, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    undefined: Callable[[Any, Summary], str | None] = lambda config, summary: None
    meaning: Callable[[Summary, Path, Any], str] = lambda summary, run, config: ""
    remedy: Callable[[Path, Any], str] = lambda run, config: TRAIN_LONGER
    label: Callable[[Any, str], str] = lambda config, name: name
    file_panels: tuple[Panel, ...] = ()
    source_panels: Mapping[str, tuple[Panel, ...]] = field(default_factory=dict)
    by_loss: Mapping[str, Outputs] = field(default_factory=dict)

    def of(self, config: Any) -> Outputs:
        """What a run leaves."""
        return self.by_loss.get(getattr(getattr(config, "model", None), "loss", ""), self)

    def panels_of(self, config: Any) -> tuple[Panel, ...]:
        """The panels of a run."""
        mine, data = self.of(config), getattr(config, "data", None)
        from_file = bool(getattr(data, "file", "")) and mine.file_panels
        return mine.file_panels if from_file else mine.source_panels.get(getattr(data, "source", ""), mine.panels)

    @property
    def options(self) -> tuple[Flag, ...]:
        """The flags that ask for analyses, with their arguments."""
        return tuple(flag for analysis in self.analyses for flag in analysis.options)
