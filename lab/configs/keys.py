"""The names of a config's fields: dotted, or short where that is unique; and the names they had in earlier versions."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.checks import UsageError, require
from icl_lab.src.config import DecoderConfig, EmbeddedModel, SineModel
from icl_lab.src.data_config import LinearData, PoolData
from icl_lab.src.words import did_you_mean

OUTSIDE = ("family", "plugins", "shared", "requires")  # what comes with the model and the flags: nobody sets it

# class -> field -> the name it had first. Ids are hashes of first names, so that a renamed field leaves them alone;
# first names are still read, in flags and in the configs of runs. The same of values that were written otherwise
FIRST_NAMES: dict[type[Any], dict[str, str]] = {
    RunConfig: {"test_tasks": "headline_tasks"},
    LinearData: {"input_distribution": "input_law"},
    PoolData: {"task_distribution": "task_law"},
    EmbeddedModel: {"d_model": "embed_size"},
    SineModel: {"d_model": "embed_size"},
    DecoderConfig: {"d_model": "embed_size"},
}
FIRST_VALUES: dict[type[Any], dict[str, dict[Any, Any]]] = {PoolData: {"num_tasks": {math.inf: 0}}}
TODAYS = {old: new for names in FIRST_NAMES.values() for new, old in names.items()}


@cache
def first_names(kind: type[Any]) -> Mapping[str, str]:
    """Field of a config's class -> the name it had first, of those that were renamed."""
    return {new: old for base in kind.__mro__ for new, old in FIRST_NAMES.get(base, {}).items()}


def first_fields(config: Any) -> dict[str, Any]:
    """`run.fields_of` under the names, and with the values, that the fields had first: ids are hashes of it."""
    kind: Any = type(config)
    names, values = first_names(kind), _first_values(kind)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            value = first_fields(value)
        elif isinstance(value, tuple):
            value = list(value)
        elif field.name in values:
            value = values[field.name].get(value, value)
        fields[names.get(field.name, field.name)] = value
    return fields


@cache
def _first_values(kind: type[Any]) -> Mapping[str, Mapping[Any, Any]]:
    """Field of a config's class -> what its values were written as first, of those that were written otherwise."""
    return {name: values for base in reversed(kind.__mro__) for name, values in FIRST_VALUES.get(base, {}).items()}


def todays_fields(values: Any, kind: Any) -> Any:
    """The fields of a written config of a class under today's names, whichever they were written under."""
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
        fields[name] = todays_fields(value, type(section)) if dataclasses.is_dataclass(section) else value
    return fields


def leaves(config: Mapping[str, Any]) -> dict[str, str]:
    """Every way to name a field -> its dotted key: `model.num_layers`, and `num_layers` where only one field has it."""
    dotted = [
        f"{section}.{field}" if hasattr(values, "items") else section
        for section, values in config.items()
        if section not in OUTSIDE
        for field in (values if hasattr(values, "items") else [section])
    ]
    short = [key.rpartition(".")[2] for key in dotted]
    number = Counter(short)
    unique = {name: key for name, key in zip(short, dotted, strict=True) if number[name] == 1}
    return unique | {key: key for key in dotted}


def find_key(config: Mapping[str, Any], name: str, known: Mapping[str, str] | None = None) -> str:
    """The dotted key of a field named in full or, where that is unique, by its last part; first names count too.

    `known` is `leaves(config)`, for who looks up many.
    """
    known = known or leaves(config)
    section, dot, last = name.rpartition(".")
    for key in (name, f"{section}{dot}{TODAYS.get(last, last)}"):
        if key in known:
            return known[key]
    several = [key for key in dict.fromkeys(known.values()) if key.rpartition(".")[2] == name]
    if len(several) > 1:
        raise UsageError(f"config key {name!r} is a field of several sections; name one of {', '.join(several)}")
    of = f" of the family {config['family']}" if "family" in config else ""
    words = known if dot else dict.fromkeys(key.rpartition(".")[2] for key in known.values())
    raise UsageError(f"unknown config key {name!r}{of}{did_you_mean(name, words)}")


class Renamed(NamedTuple):
    """Today's key for an earlier one, and a function from (the earlier value, the current value) to the new value."""

    key: str
    value: Callable[[Any, Any], Any]


TRUTH = {"true": True, "1": True, "false": False, "0": False}


def _schedule(name: str) -> Renamed:
    """A schedule that had a truth value of its own; it ends where it is set to false."""

    def value(given: Any, now: str) -> str:
        said = str(given).lower()
        if said not in TRUTH:
            raise UsageError(f"{name} is {given!r}; it must be true or false")
        return name if TRUTH[said] else "constant" if now == name else now

    return Renamed("training.schedule", value)


# key of schema 1 -> the field that took its place, with another value
RENAMED: dict[str, Renamed] = {
    "training.cosine": _schedule("cosine"),
    "training.triangle": _schedule("triangle"),
}


def renamed(name: str) -> Renamed | None:
    """What became of a key, in full or by its last part; None for one that is today's."""
    return next((new for old, new in RENAMED.items() if name in (old, old.rpartition(".")[2])), None)
