"""What a family says of itself without JAX: its config, presets, flags and axes.

A family is a folder with three modules: `config`, which has this; `task`, with its model, batches and evaluation set
(`families.task`); and `outputs`, with what a run of it leaves (`lab.configs.outputs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, NamedTuple

from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.batch import Batch, context_shapes
from icl_lab.src.config import Architecture
from icl_lab.src.fields import every_kind, kinds_of, meaning_of, meanings
from icl_lab.src.words import words_of

Values = Mapping[str, Any]  # field, in full or by its last name -> value

AUTO = "auto"  # the value of a flag that leaves a field to others
PRESETS = ("default", "paper")  # every model has these; some have more

FLOAT32 = 4  # bytes
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


@dataclass(frozen=True)
class Family:
    """A family. `models` has the presets of each of its models by name, `about` a line on what each model is.

    follows: fields, or sections, without a value of their own unless a preset sets one, and the word that stands for it
    ("" for the value it takes); `RunConfig.complete` gives them one from the others.
    training_ignores: fields, or sections, that training does not depend on, and batched: fields that may differ within
    a pack, each with the value that stands for all. `RunConfig.canonical` and `run_words` do not read them.
    switches: flag -> (model -> the model it is trained in place of, the flag's text).
    stack: its models are stacks without a learned read-out of pairs, of which the losses are half squared errors, as
    `src.transformer` and `src.layerwise` make them: those that the native kernel computes.
    batch: the type of the evaluation batch; batch_types: of its arrays (float32 where not given).
    """

    config: type[RunConfig]
    models: Mapping[str, Mapping[str, Preset]]
    batch: type[Any] = Batch
    batch_types: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[Flag, ...] = ()
    switches: Mapping[str, tuple[Mapping[str, str], str]] = field(default_factory=dict)
    axes: tuple[Flag, ...] = ()
    follows: Mapping[str, str] = field(default_factory=dict)
    training_ignores: Values = field(default_factory=dict)
    batched: Values = field(default_factory=dict)
    stack: bool = False
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def lists(self) -> tuple[Flag, ...]:
        """The flags whose value is a list of words; in a sweep all points share it."""
        return tuple(flag for flag in self.flags if flag.read is words_of)

    @property
    def flags_of_kinds(self) -> tuple[Flag, ...]:
        """A flag for each field of sections that come in several kinds (`src.fields.OfKinds`), plugins' among them."""
        sections = ((each.name, type(each.default)) for each in fields(self.config))
        return tuple(
            Flag(name, f"{section}.{name}", type(next(iter(kinds.values()))), _text_of_kinds(kind, name, kinds))
            for section, kind in sections
            for name, kinds in every_kind(kind).items()
        )

    @property
    def all_axes(self) -> tuple[Flag, ...]:
        """Its axes, and those of sections that come in several kinds."""
        return (*self.axes, *self.flags_of_kinds)

    @property
    def name(self) -> str:
        """The family's name."""
        return self.config.family

    def module(self, part: str) -> str:
        """The dotted name of another module of its folder."""
        return f"{self.config.__module__.rpartition('.')[0]}.{part}"


def _text_of_kinds(section: type[Any], name: str, defaults: Mapping[str, Any]) -> str:
    """What a field of some kinds means, and its default in each of them."""
    meaning = meaning_of(kinds_of(section)[next(iter(defaults))], name)
    return f"{meaning} ({', '.join(f'{kind}: {default}' for kind, default in defaults.items())})"


def flag_of(
    owner: Any, key: str, name: str = "", text: str = "", read: Callable[[str], Any] | None = None, **given: Any
) -> Flag:
    """The flag of a field of a config, or of a section alone: what is not given is said beside the field."""
    said, last = dict(meanings(owner)), key.rpartition(".")[2]
    meaning, kind = said.get(key) or said[last], type(attrgetter(key if key in said else last)(owner))
    return Flag(name or last, key, read or kind, text or meaning.text, meaning.names or None, **given)


class StackRun(RunConfig):
    """A run on contexts of pairs: its sections are `data`, with `dim` and `num_pairs`, and `model`, a stack."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.architecture.check(self.tasks_at_once)

    @property
    def architecture(self) -> Architecture[Any]:
        """The model and the contexts it sees."""
        config: Any = self
        return Architecture(config.model, config.data.dim, config.data.num_pairs)

    def batch_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field: of one query a task."""
        seen = self.architecture
        return context_shapes(self.eval_tasks, seen.num_pairs, seen.dim)

    def task_seconds(self) -> float:
        """What a step of one task costs, from the channels that its layers compute."""
        seen = self.architecture
        channels = 2 * getattr(seen.model, "d_model", 0) + seen.model.mlp_width or seen.width
        return layers_seconds(seen.num_rows, channels, seen.model.num_layers)


class DecoderRun(RunConfig):
    """A run of a decoder on sequences of pairs: its sections are `data`, with `num_pairs`, and `model`.

    All sequences of a batch have as many predictions that count.
    """

    @property
    def _layer(self) -> tuple[int, int]:
        """A layer's rows and its channels: of attention, of the stream and of the MLP."""
        config: Any = self
        return 2 * config.data.num_pairs, 2 * config.model.d_model + config.model.mlp_width

    def task_seconds(self) -> float:
        """What a step of one sequence costs."""
        config: Any = self
        return layers_seconds(*self._layer, config.model.num_layers)

    def layer_bytes(self) -> int:
        """Those of a sequence, in float32."""
        rows, width = self._layer
        return FLOAT32 * rows * width


def layers_seconds(rows: int, channels: int, layers: int) -> float:
    """The cost of a training step of one task, in seconds on one core of the machine of benchmarks/performance.md.

    Layers on rows of channels, of which the last computes one row.
    """
    return CHANNEL * rows * channels * (1 + INNER_LAYER * (layers - 1))
