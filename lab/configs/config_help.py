"""What `--config.help` lists: each field of a config with its type, the preset's value and its meaning."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ml_collections import ConfigDict

from icl_lab.lab.configs.keys import OUTSIDE
from icl_lab.lab.configs.presets import resolve, without_meaning
from icl_lab.lab.configs.registry import named
from icl_lab.lab.configs.run import default_like, fields_of
from icl_lab.src.fields import meanings

TYPES = {bool: "true/false", int: "whole number", float: "number", str: "word", tuple: "words", list: "words"}


def fields(config: ConfigDict, reserved: Sequence[str] = ()) -> Iterator[tuple[str, str, str, str]]:
    """(dotted name, type, value, meaning) of each field of a preset, less those `reserved`."""
    family, resolved = named(config.family), resolve(config)
    said = dict(meanings(resolved))
    idle = (*OUTSIDE, "preset", *reserved, *without_meaning(resolved))
    unset, values = _leaves(config.to_dict()), _leaves(fields_of(resolved))
    for name, default in _leaves(fields_of(default_like(resolved))).items():
        if name not in idle and name.partition(".")[0] not in idle:
            follows = family.follows.get(name) or family.follows.get(name.partition(".")[0])
            value = follows if unset[name] is None and follows else values[name]
            kind = TYPES[int if default == math.inf else type(default)]
            yield name, kind, in_words(value), str(said.get(name, ""))


def listing(config: ConfigDict, reserved: Sequence[str] = ()) -> str:
    """The fields as a table in plain text, below a line that says of which model and preset the values are."""
    rows = list(fields(config, reserved))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in rows]
    return "\n".join([f"fields of {config.name}, preset {config.preset}: --config.NAME=VALUE", *lines])


def _leaves(values: dict[str, Any]) -> dict[str, Any]:
    """Every field's value by its dotted name."""
    sections = {name: value if isinstance(value, dict) else {"": value} for name, value in values.items()}
    return {
        f"{section}.{name}".rstrip("."): value for section, inside in sections.items() for name, value in inside.items()
    }


def in_words(value: Any) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)
