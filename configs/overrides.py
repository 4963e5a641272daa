"""From a preset and what the user set to the frozen config of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from cli import UsageError, words_of
from configs.dependencies import with_dependencies
from configs.family import AUTO
from configs.keys import TRUTH, find_key, renamed
from configs.registry import named
from configs.run import RunConfig, made_of

INFINITY = ("inf", "infinity")


def parse(text: str, default: Any, name: str) -> Any:
    """A value from text, of the type of the field's default."""
    try:
        if isinstance(default, bool):
            return TRUTH[text.lower()]
        if isinstance(default, tuple):
            return words_of(text)
        if default == math.inf:
            return math.inf if text in INFINITY else int(text)
        return type(default)(text)
    except (KeyError, ValueError):
        kinds = {bool: "true or false", int: "a whole number", float: "a number"}
        kind = "a whole number or inf" if default == math.inf else kinds.get(type(default), "valid")
        raise UsageError(f"{name} is {text!r}; it must be {kind}") from None


def value_at(config: Any, key: str) -> Any:
    """The value of a field by its dotted key."""
    for name in key.split("."):
        config = getattr(config, name)
    return config


def set_values(config: ConfigDict, values: Mapping[str, Any]) -> None:
    """Sets fields by key. Text is parsed to the field's type; None and "auto" leave a field as it is."""
    defaults = named(config.family).config()
    with config.ignore_type():
        for name, value in values.items():
            if value is None or value == AUTO:
                continue
            earlier = renamed(name)
            key = find_key(config, earlier.key if earlier else name)
            section, _, field = key.rpartition(".")
            owner = config[section] if section else config
            value = earlier.value(value, owner[field]) if earlier else value
            owner[field] = parse(value, value_at(defaults, key), name) if isinstance(value, str) else value


def resolve(config: ConfigDict) -> Any:
    """The frozen run config of the preset's family: what follows other fields, runs or arrays has its value."""
    return with_dependencies(completed(config))


def completed(config: ConfigDict) -> RunConfig:
    """The same before it knows of runs and arrays."""
    values: dict[str, Any] = config.to_dict()
    family = named(values.pop("family"))
    resolved: RunConfig = made_of(family.complete(values), family.config)
    return resolved
