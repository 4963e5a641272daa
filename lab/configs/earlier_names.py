"""The one table of names and values of earlier versions: of a config's fields, of metrics and of tables' columns.

What was written or typed under them is read; readers see today's. The id of a run is a hash of its config under the
names and values that the fields had first (`lab.configs.identity`), so that what is renamed leaves ids alone.

A metric's name says which tasks a number is of: `eval_` the evaluation batch, `test_` the test tasks. Earlier versions
wrote `test_loss` and `gd_loss` for the evaluation batch in metrics, and for the test tasks in tables.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.checks import UsageError, require
from icl_lab.src.config import EmbeddedModel, SineModel, TrainConfig
from icl_lab.src.data_config import LinearData, PoolData
from icl_lab.src.decoder_config import DecoderConfig

if TYPE_CHECKING:
    from icl_lab.lab.configs.outputs import Columns

# --- fields of a config: class -> field -> the name it had first, and today's value -> what it was first ---

FIRST_NAMES: dict[type[Any], dict[str, str]] = {
    RunConfig: {"test_tasks": "headline_tasks", "baselines": "opponents"},
    LinearData: {"input_distribution": "input_law"},
    PoolData: {"task_distribution": "task_law"},
    EmbeddedModel: {"d_model": "embed_size"},
    SineModel: {"d_model": "embed_size"},
    DecoderConfig: {"d_model": "embed_size"},
}
FIRST_VALUES: dict[type[Any], dict[str, dict[Any, Any]]] = {
    PoolData: {"num_tasks": {math.inf: 0}},
    TrainConfig: {"schedule": {"linear_up_down": "triangle", "cosine_oscillation": "swing"}},
}
TODAYS = {old: new for names in FIRST_NAMES.values() for new, old in names.items()}

# --- keys of a command line that set a field with another name and value ---


class Renamed(NamedTuple):
    """Today's key for an earlier one, and a function from (the earlier value, the current value) to the new value."""

    key: str
    value: Callable[[Any, Any], Any]


TRUTH = {"true": True, "1": True, "false": False, "0": False}


def _schedule(flag: str, name: str) -> Renamed:
    """A schedule that had a truth value of its own; it ends where it is set to false."""

    def value(given: Any, now: str) -> str:
        said = str(given).lower()
        if said not in TRUTH:
            raise UsageError(f"{flag} is {given!r}; it must be true or false")
        return name if TRUTH[said] else "constant" if now == name else now

    return Renamed("training.schedule", value)


RENAMED: dict[str, Renamed] = {
    "training.cosine": _schedule("cosine", "cosine"),
    "training.triangle": _schedule("triangle", "linear_up_down"),
}

# --- metrics, and columns of tables ---

METRICS = {"test_loss": "eval_loss", "test_accuracy": "eval_accuracy"}
EVALUATED = (  # further metrics of the evaluation batch, which began without `eval_`
    *("preds_diff", "model_diff", "model_cos", "way_to_optimum", "id_*", "ood_*"),
    *("*_loss", "*_accuracy", "*_preds_mse", "*_cosine"),
)
COLUMNS = {"headline_tasks": "test_tasks"}
PREFIXES = ("test_", "eval_")  # columns of results that begin so began without
SWEEP = {"exp", "model", "seed", "status"}  # columns of every sweep's table


@cache
def first_names(kind: type[Any]) -> Mapping[str, str]:
    """Field of a config's class -> the name it had first, of those that were renamed."""
    return {new: old for base in kind.__mro__ for new, old in FIRST_NAMES.get(base, {}).items()}


@cache
def _first_values(kind: type[Any]) -> Mapping[str, Mapping[Any, Any]]:
    """Field of a config's class -> what its values were written as first, of those that were written otherwise."""
    return {name: values for base in reversed(kind.__mro__) for name, values in FIRST_VALUES.get(base, {}).items()}


def first_value(section: Any, field: str) -> Any:
    """The value of a field as it was written first."""
    value = getattr(section, field)
    kind: Any = type(section)
    return _first_values(kind).get(field, {}).get(value, value)


def first_fields(config: Any) -> dict[str, Any]:
    """`lab.configs.run.fields_of` under the names, and with the values, that the fields had first: ids hash it."""
    kind: Any = type(config)
    names = first_names(kind)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            value = first_fields(value)
        elif isinstance(value, tuple):
            value = list(value)
        else:
            value = first_value(config, field.name)
        fields[names.get(field.name, field.name)] = value
    return fields


def todays_value(kind: Any, field: str, value: Any) -> Any:
    """A value of a field of a config's class as it is written today."""
    written = _first_values(kind).get(field, {})
    return next((today for today, first in written.items() if type(value) is type(first) and value == first), value)


def todays_fields(values: Any, kind: Any) -> Any:
    """The fields of a written config of a class under today's names and values, whichever they were written under."""
    if not isinstance(values, Mapping):
        return values
    todays = {old: new for new, old in first_names(kind).items()}
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(kind)}
    fields: dict[str, Any] = {}
    written: Mapping[str, Any] = values
    for given, value in written.items():
        name = given if given in defaults else todays.get(given, given)
        require(name not in fields, f"{name} is given under two names")
        section = defaults.get(name)
        if dataclasses.is_dataclass(section):
            fields[name] = todays_fields(value, type(section))
        else:
            fields[name] = todays_value(kind, name, value)
    return fields


def renamed(name: str) -> Renamed | None:
    """What became of a key, in full or by its last part; None for one that is today's."""
    return next((new for old, new in RENAMED.items() if name in (old, old.rpartition(".")[2])), None)


@lru_cache(maxsize=1024)
def todays_metric(name: str) -> str:
    """Today's name of a metric of an earlier version."""
    is_evaluated = not name.startswith(("train_", "eval_")) and any(fnmatchcase(name, each) for each in EVALUATED)
    return METRICS.get(name, f"eval_{name}" if is_evaluated else name)


@lru_cache(maxsize=1024)
def _earlier_metric(name: str) -> str:
    bare = name.removeprefix("eval_")
    return next((earlier for earlier in (f"test_{bare}", bare) if todays_metric(earlier) == name), name)


def is_earlier(values: Mapping[str, Any]) -> bool:
    """Whether a record of metrics, or a summary, has the names of an earlier version."""
    return "test_loss" in values


def todays(values: Mapping[str, Any]) -> dict[str, Any]:
    """A record of metrics, or a summary, under today's names."""
    return {todays_metric(name): value for name, value in values.items()} if is_earlier(values) else dict(values)


def earlier(values: Mapping[str, Any]) -> dict[str, Any]:
    """A record of metrics under the names of an earlier version."""
    return {_earlier_metric(name): value for name, value in values.items()}


def todays_columns(names: Sequence[str], families: Iterable[Columns]) -> list[str]:
    """Today's names of the columns of a sweep's table of these families."""
    families = [*families]
    results = {name for columns in families for name in (*columns.first, *columns.measured, *columns.further(None))}
    todays_names = results.union(*(part for columns in families for part in (columns.asked, columns.settings)))

    def todays_column(name: str) -> str:
        prefixed = [prefix + name for prefix in PREFIXES if prefix + name in results - {*names}]
        return prefixed[0] if prefixed and name not in todays_names else COLUMNS.get(name, name)

    return [todays_column(name) for name in names]


@cache
def todays_words(column: str) -> Mapping[str, str]:
    """What the words in a column of a sweep's table are today, where they were others; it has the name of a field."""
    written = (values.get(column.rpartition(".")[2], {}) for values in FIRST_VALUES.values())
    return {first: today for values in written for today, first in values.items() if isinstance(first, str)}
