"""A run's config: what runs of all families have, and how a config is written down and read back."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from icl_lab.lab.configs.stopping import condition_of
from icl_lab.lab.flag_types import whole_value
from icl_lab.lab.loaded_plugins import LOADED, plugin_of
from icl_lab.lab.registries import FAMILIES
from icl_lab.src.checks import ConfigError, one_of, require
from icl_lab.src.config import TrainConfig
from icl_lab.src.fields import OfKinds, check_fields, every_kind, field, kinds_of
from icl_lab.src.registries import FIELDS
from icl_lab.src.registry import Registry

if TYPE_CHECKING:
    import numpy as np

SCHEMA_VERSION = 2  # of configs as they are written, and of the files in a run directory
MOST_RECORDS = 2**23  # of the metrics, as the longest training has at the default eval_every, and twice as many
TAGS = ("schema_version", "family")  # what a written config begins with, which are no fields


Config = TypeVar("Config", bound="RunConfig")


@dataclass(frozen=True)
class RunConfig:
    """One training run. A family adds its own sections; a field that a family does not have does not exist there.

    With `snapshots` the parameters are kept at every record of the metrics, for analyses over training. Records are
    made every `eval_every` steps, at `log_records` steps that are spaced logarithmically, and at the last one. A
    training ends at a record, before its last step, by `stop_when` and `patience` (`lab.configs.stopping`).

    The other ingredients of a run, each with the hash of its content, are the `plugins` whose names it uses, `shared`
    arrays and the parameters that it starts from (`init_from`, `store.weights`); `requires` has the ids of the runs
    that it builds on.
    """

    family: ClassVar[str] = ""

    name: str = field("run", "name of the run, and of its directory where --out is not given")
    preset: str = "default"
    data_seed: int = field(0, "seed of tasks and data")
    init_seed: int = field(0, "seed of the initialisation")
    eval_every: int = field(500, "steps between two evaluations (records of the metrics)", least=1)
    eval_tasks: int = field(2048, "tasks in the evaluation set, on which metrics are measured at every record", least=2)
    test_tasks: int = field(10_000, "tasks in the test set, on which the final results are measured", least=2)
    snapshots: bool = field(False, "keep the parameters at every record")
    keep_best: bool = field(False, "also keep the parameters of the record with the lowest eval_loss")
    log_norms: bool = field(False, "record the gradient norm before clipping, the parameter norm and the learning rate")
    log_records: int = field(0, "number of additional records, at logarithmically spaced steps", least=0)
    stop_when: str = field("", "stop at the first record that meets this condition, such as 'eval_loss < 0.1'")
    patience: int = field(0, "stop after this many records in a row without a better eval_loss; 0: never", least=0)
    plugins: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    init_from: str = ""
    training: TrainConfig = TrainConfig()

    def __post_init__(self) -> None:
        object.__setattr__(self, "plugins", tuple(sorted(set(plugins_of(self)))))
        require(
            re.fullmatch(r"\w[\w.-]*", self.name) is not None, f"name is {self.name!r}; it must be a plain file name"
        )
        check_fields(self)
        if self.stop_when:
            object.__setattr__(self, "stop_when", str(condition_of(self.stop_when)))  # however it is spaced
        for name in ("data_seed", "init_seed"):
            check_seed(name, getattr(self, name))
        records = self.training.steps // self.eval_every + self.log_records
        require(
            records <= MOST_RECORDS,
            f"eval_every {self.eval_every} and log_records {self.log_records} give {records} records of the metrics, "
            "more than the 2^23 whose steps are kept in memory; raise eval_every",
        )

    @property
    def tasks_at_once(self) -> dict[str, int]:
        """The numbers of tasks that are in memory at once, by name."""
        parts = self.training.micro_batches
        return {
            "eval_tasks": self.eval_tasks,
            "test_tasks": self.test_tasks,
            "batch_size" if parts == 1 else "batch_size / micro_batches": self.training.batch_size // parts,
        }

    @property
    def record_steps(self) -> list[int]:
        """The steps at which a record is made: a linear grid and a logarithmic one, the first step and the last."""
        last, count = self.training.steps, self.log_records
        spaced = [round(last ** (index / max(count - 1, 1))) for index in range(count)]
        return sorted({0, *range(0, last, self.eval_every), *spaced, last})

    # --- what families say of their configs ---

    @classmethod
    def complete(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The values of the fields, of which those that follow others (`Family.follows`) are None until now."""
        return values

    def batch_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the evaluation batch, by field."""
        raise NotImplementedError(f"the config of the family {self.family} lacks batch_shapes")

    def layer_bytes(self) -> int:
        """What a layer of a task takes while it is trained, if a batch may be taken in blocks of tasks; else 0."""
        return 0

    def canonical(self) -> Self:
        """The config that represents all equivalent configs; it does not read seeds."""
        return self

    def as_evaluated(self) -> Self:
        """The config whose training contexts are drawn as those of its evaluation."""
        return self

    def run_words(self) -> list[str]:
        """The words that distinguish a run of a sweep, without seeds."""
        return []

    def task_seconds(self) -> float:
        """What a step of one task costs, roughly."""
        return 1e-6

    @property
    def shares_arrays(self) -> bool:
        """Whether a run may have `shared_arrays`, whatever its seeds."""
        return type(self).shared_arrays is not RunConfig.shared_arrays

    def shared_arrays(self) -> Mapping[str, np.ndarray]:
        """Arrays that all runs of a pack have in common, by name."""
        return {}

    def hashed_as(self) -> Mapping[str, np.ndarray]:
        """Of shared arrays whose last digits differ between processors, by name, the exact arrays they come from.

        These are hashed instead.
        """
        return {}

    @property
    def data_file(self) -> str:
        """The file whose contexts a run has; empty if they are drawn."""
        return ""

    def notes(self) -> Iterable[str]:
        """What a user is to know before a training, in sentences."""
        return ()

    def required_runs(self) -> Sequence[RunConfig]:
        """The configs of the runs that a run builds on."""
        return ()


def check_seed(name: str, value: Any) -> None:
    """`ConfigError` unless a field is a seed."""
    if not (isinstance(value, int) and 0 <= value < 2**32):
        raise ConfigError(f"{name} is {value}; it must be a whole number from 0 to 2^32 - 1")


class Seeds(NamedTuple):
    """The seeds of a run's data and of its initialisation; each is a field, `data_seed` and `init_seed`."""

    data: int = 0
    init: int = 0


def seeds_of(config: RunConfig) -> Seeds:
    """The seeds of a config."""
    return Seeds(config.data_seed, config.init_seed)


def with_seeds(config: Config, seeds: Seeds) -> Config:
    """`dataclasses.replace` of the seeds, a hundred times faster: no other field is checked again."""
    check_seed("data_seed", seeds.data)
    check_seed("init_seed", seeds.init)
    copy = object.__new__(type(config))
    vars(copy).update(vars(config), data_seed=seeds.data, init_seed=seeds.init)
    return copy


def plugins_of(config: Any) -> Iterator[str]:
    """The plugins that registered a config's family, or names in its fields and sections, as name:hash."""
    if LOADED and isinstance(config, RunConfig):
        yield from _records(FAMILIES, config.family)
    for each in dataclasses.fields(config) if LOADED else ():
        value = getattr(config, each.name)
        if dataclasses.is_dataclass(value):
            yield from plugins_of(value)
        elif each.name in FIELDS:
            for word in value if isinstance(value, tuple) else (value,):
                yield from _records(FIELDS[each.name], word)


def _records(registry: Registry[Any], word: str) -> Iterator[str]:
    plugin = plugin_of(registry, word)
    if plugin is not None:
        yield plugin.record


def to_dict(config: RunConfig) -> dict[str, Any]:
    """A config as it is written: its schema and its family, then its fields as nested dictionaries.

    JSON has no infinity: it is the word "inf".
    """
    return {"schema_version": SCHEMA_VERSION, "family": config.family, **_in_json(fields_of(config))}


def _in_json(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _in_json(value) if isinstance(value, dict) else "inf" if value == math.inf else value
        for name, value in fields.items()
    }


def fields_of(config: Any) -> dict[str, Any]:
    """The fields of a config as plain nested dictionaries, tuples as lists."""
    return {
        each.name: fields_of(value)
        if dataclasses.is_dataclass(value)
        else list(value)
        if isinstance(value, tuple)
        else value
        for each in dataclasses.fields(config)
        for value in [getattr(config, each.name)]
    }


def made_of(values: Mapping[str, Any], kind: type[Any]) -> Any:
    """A config of a kind from what `fields_of` gave. Missing fields take their defaults; unknown ones are an error."""
    require(isinstance(values, Mapping), f"a config must be an object, not {type(values).__name__}")
    kind = kind_in(values, kind)
    known = {each.name: each for each in dataclasses.fields(kind)}
    require(set(values) <= set(known), f"unknown config fields: {', '.join(sorted(set(values) - set(known)))}")
    return kind(**{name: _value(known[name], value) for name, value in values.items()})


def kind_in(values: Mapping[str, Any], section: type[Any]) -> type[Any]:
    """The class of a section with these values: of several kinds the one that they name; else the section's own."""
    if not (kinds := kinds_of(section)):
        return section
    name = values.get("kind", section.kind)
    one_of("kind", name, kinds)
    return kinds[name]


def default_of(kind: type[RunConfig], key: str) -> Any:
    """The default of a field of a family's config, by its dotted key: of a section of kinds, of any that has it."""
    section, _, name = key.rpartition(".")
    owner = getattr(kind(), section) if section else kind()
    if not hasattr(owner, name) and (of_kinds := every_kind(type(owner)).get(name)):
        return next(iter(of_kinds.values()))
    return getattr(owner, name)


def kinds_in(config: RunConfig) -> tuple[Any, ...]:
    """The class of a config, and (name, class) of each of its sections that comes in several kinds."""
    sections = ((each.name, getattr(config, each.name)) for each in dataclasses.fields(config))
    return (type(config), *((name, type(value)) for name, value in sections if isinstance(value, OfKinds)))


def default_like(config: Config) -> Config:
    """The default config of a family, whose sections are of the kinds of a config's."""
    kind, *sections = kinds_in(config)
    default: Config = kind(**{name: section() for name, section in sections})
    return default


def _value(each: dataclasses.Field[Any], value: Any) -> Any:
    """One field's value with the type of its default; JSON has neither tuples nor, at times, floats."""
    default = each.default
    if dataclasses.is_dataclass(default):
        return made_of(value, type(default))
    if isinstance(default, tuple):
        if each.type == "tuple[float, ...]":
            return _numbers(each.name, value)
        require(
            isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value),
            f"{each.name} is {value!r}; it must be a list of words",
        )
        return tuple(value)
    if default == math.inf:
        return _count(each.name, value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        require(abs(value) < sys.float_info.max, f"{each.name} is too large a number")
        return float(value)
    value = whole_value(value) if isinstance(default, int) and not isinstance(default, bool) else value
    require(type(value) is type(default), f"{each.name} is {value!r}; it must be of type {type(default).__name__}")
    return value


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """A list of numbers, which flags give as words."""
    try:
        return tuple(float(item) for item in value if not isinstance(item, bool))
    except (TypeError, ValueError):
        raise ConfigError(f"{name} is {value!r}; it must be a list of numbers") from None


def _count(name: str, value: Any) -> float:
    """A whole number or inf: the value of a field whose default is infinite."""
    value = math.inf if value == "inf" else whole_value(value)
    require(type(value) is int or value == math.inf, f"{name} is {value!r}; it must be a whole number or inf")
    count: float = value
    return count
