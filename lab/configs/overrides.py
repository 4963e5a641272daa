"""From a preset and what the user set to the frozen config of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, TypeAlias

from ml_collections import ConfigDict

from icl_lab.lab.configs.dependencies import with_dependencies
from icl_lab.lab.configs.family import AUTO
from icl_lab.lab.configs.keys import TRUTH, find_key, leaves, renamed
from icl_lab.lab.configs.registry import named
from icl_lab.lab.configs.run import RunConfig, made_of
from icl_lab.lab.flag_types import INFINITY, whole
from icl_lab.src.checks import UsageError
from icl_lab.src.words import words_of


def parse(text: str, default: Any, name: str) -> Any:
    """A value from text, of the type of the field's default."""
    try:
        if isinstance(default, bool):
            return TRUTH[text.lower()]
        if isinstance(default, tuple):
            return words_of(text)
        if default == math.inf:
            return math.inf if text.strip().lower() in INFINITY else whole(text)
        return whole(text) if isinstance(default, int) else type(default)(text)
    except (KeyError, ValueError):
        kinds = {bool: "true or false", int: "a whole number", float: "a number"}
        kind = "a whole number or inf" if default == math.inf else kinds.get(type(default), "valid")
        raise UsageError(f"{name} is {text!r}; it must be {kind}") from None


def value_at(config: Any, key: str) -> Any:
    """The value of a field by its dotted key."""
    for name in key.split("."):
        config = getattr(config, name)
    return config


Values: TypeAlias = ConfigDict | dict[str, Any]  # of a preset; a dict checks no types and is set faster


def set_values(config: Values, *groups: Mapping[str, Any]) -> None:
    """Sets fields by key, later groups last. Text is parsed to the field's type; None and "auto" leave it as it is."""
    defaults, known = named(config["family"]).config(), leaves(config)
    with config.ignore_type() if isinstance(config, ConfigDict) else nullcontext():
        for name, value in (item for values in groups for item in values.items()):
            if value is None or value == AUTO:
                continue
            earlier = renamed(name)
            key = find_key(config, earlier.key if earlier else name, known)
            section, _, field = key.rpartition(".")
            owner = config[section] if section else config
            value = earlier.value(value, owner[field]) if earlier else value
            owner[field] = parse(value, value_at(defaults, key), name) if isinstance(value, str) else value


def resolve(config: Values) -> Any:
    """The frozen run config of the preset's family: what follows other fields, runs or arrays has its value."""
    return with_dependencies(completed(config))


def completed(config: Values) -> RunConfig:
    """The same before it knows of runs and arrays."""
    values: dict[str, Any] = config.to_dict() if isinstance(config, ConfigDict) else dict(config)
    family = named(values.pop("family"))
    resolved: RunConfig = made_of(family.complete(values), family.config)
    return resolved
