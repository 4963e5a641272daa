"""What a family of experiments says of itself without JAX: its config, presets, flags, axes, columns and words.

Its other two parts are modules: one with its model, batches and evaluation set (`families.experiment`), one with what
a run of it leaves (`runners.finish`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.batch import Batch

if TYPE_CHECKING:
    import numpy as np

Values = Mapping[str, Any]  # field, in full or by its last name -> value
Summary = Mapping[str, Any]  # metrics_summary.json of a finished run
Results = Mapping[str, Any]  # the same, with the family's further files by short name and whether it left the plateau

AUTO = "auto"  # the value of a flag that leaves a field to others
PRESETS = ("default", "paper")  # every model has these; some have more

# of a training step, in seconds
CHANNEL = 3.3e-9  # for one channel of one row
INNER_LAYER = 4.0  # what a layer whose rows are all computed costs, the last, which has one, costing 1
SORTED_PAIR = 8e-8  # to put one pair in order


def _nothing(*_: Any) -> dict[str, Any]:
    return {}


class Preset(NamedTuple):
    """How a model is trained: values of fields, and those that follow the number of layers, (depth, recurrent)."""

    values: Values
    by_depth: Callable[[int, bool], Values] = _nothing


class Flag(NamedTuple):
    """A flag of runners and, as a list, of sweeps. Without a `key`, the config's field, it is an option of the runner.

    `read` makes a value of text; `bool` stands for a flag without a value. `short` are other names of it in sweeps;
    `former` names are those of earlier versions, which are read and not listed.
    """

    name: str
    key: str
    read: Callable[[str], Any]
    text: str
    choices: Iterable[str] | None = None
    default: Any = None
    short: tuple[str, ...] = ()
    former: tuple[str, ...] = ()


class Meaning(NamedTuple):
    """What a field of the config means, and the names it may have; these may become more while plugins load."""

    text: str
    names: Iterable[str] = ()

    def __str__(self) -> str:
        return f"{self.text}: {', '.join(self.names)}" if self.names else self.text


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


@dataclass(frozen=True)
class Family:
    """A family of experiments. `models` has the presets of each of its models by name.

    follows: fields, or sections, without a value of their own unless a preset sets one, and the word that stands for it
    ("" for the value it takes); `complete` gives them one from the others. without_meaning(config): fields that
    `--config.help` leaves out, because with the config's other values only their default is valid.
    lists: flags whose value is a list of words; in a sweep all points share it.
    training_ignores: fields, or sections, that training does not depend on, and batched: fields that may differ within
    a pack, each with the value that stands for all.
    canonical: the config that represents all equivalent configs. run_words: the words that distinguish a run of a
    sweep. Neither reads seeds, and training_ignores and batched do not name them.
    switches: flag -> (model -> the model it is trained in place of, the flag's text).
    batch: the type of the evaluation batch; batch_shapes, batch_types: of its arrays (float32 where not given).
    criteria: when a run has trained: all of them hold. analyses: those that are of it.
    shared: arrays that all runs of a pack have in common, as NumPy arrays by name. hashed_as: for those whose last
    digits differ between processors, by name, the exact arrays that they are computed from, which are hashed instead.
    required: the configs of the runs that a run builds on. task_seconds: what a step of one task costs, roughly.
    modules: where the other two parts are.
    """

    name: str
    config: type[RunConfig]
    models: Mapping[str, Mapping[str, Preset]]
    loss_convention: str
    test_loss: NamedLoss
    columns: Columns
    panels: tuple[Panel, ...]
    batch_shapes: Callable[[Any], Mapping[str, tuple[int, ...]]]
    batch: type[Any] = Batch
    batch_types: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()
    lists: tuple[Flag, ...] = ()
    options: tuple[Flag, ...] = ()
    switches: Mapping[str, tuple[Mapping[str, str], str]] = field(default_factory=dict)
    axes: tuple[Flag, ...] = ()
    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    follows: Mapping[str, str] = field(default_factory=dict)
    complete: Callable[[dict[str, Any]], dict[str, Any]] = dict
    without_meaning: Callable[[Any], Sequence[str]] = lambda config: ()
    training_ignores: Values = field(default_factory=dict)
    batched: Values = field(default_factory=dict)
    canonical: Callable[[Any], Any] = lambda config: config
    run_words: Callable[[Any], list[str]] = lambda config: []
    criteria: tuple[Criterion, ...] = ()
    analyses: tuple[str, ...] = ()
    task_seconds: Callable[[Any], float] = lambda config: 1e-6
    shared: Callable[[Any], Mapping[str, np.ndarray]] = _nothing
    hashed_as: Callable[[Any], Mapping[str, np.ndarray]] = _nothing
    required: Callable[[Any], Sequence[RunConfig]] = lambda config: ()
    modules: tuple[str, str] = ("", "")

    def is_instead(self, model: str) -> bool:
        """Whether a model is one that a switch puts in another's place, as a control."""
        return any(model in instead.values() for instead, _ in self.switches.values())


def layers_seconds(rows: int, channels: int, layers: int) -> float:
    """The cost of a training step of one task, roughly, in seconds on one core of the machine of docs/performance.md.

    Layers on rows of channels, of which the last computes one row.
    """
    return CHANNEL * rows * channels * (1 + INNER_LAYER * (layers - 1))
