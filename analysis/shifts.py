"""A run on test tasks of shifted distributions, compared with the algorithms: writes shifts.csv.

python -m analysis.shifts --run DIR --shift num_pairs=5 --shift spectrum=given,eigenvalues=0.1:1 --shift weight_scale=2

A shift is one or more fields of the run's data, FIELD=VALUE, separated by commas; lists are separated by colons.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.lab import cli
from icl_lab.lab.configs.presets import parse
from icl_lab.lab.configs.run import fields_of, made_of
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.data_config import DataConfig
from icl_lab.src.words import did_you_mean

FIELDS = {field.name: field for field in fields(DataConfig)}


def add_flags(parser: cli.Parser) -> None:
    """The shifts."""
    text = "FIELD=VALUE of the run's data, several separated by commas; may be given again"
    parser.add_argument("--shift", action="append", default=[], metavar="SHIFT", help=text)


def check(flags: argparse.Namespace) -> None:
    """`ConfigError` for no shift, and for one that names no field or has no value of its type."""
    require(len(flags.shift) > 0, "--shift is missing; give at least one, such as --shift num_pairs=5")
    for text in flags.shift:
        changed_fields(text)


def changed_fields(text: str) -> dict[str, Any]:
    """The fields of a shift from its text; `ConfigError` for one that the data do not have."""
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        require(bool(equals), f"the shift {part!r} is not FIELD=VALUE")
        if name not in FIELDS:
            raise ConfigError(f"the shift {part!r} names no field of the data{did_you_mean(name, FIELDS)}")
        require(name != "dim", "dim is the width of the model's tokens; no shift changes it")
        values[name] = parse(value.replace(":", ","), FIELDS[name].default, name)
    return values


def shifted(data: DataConfig, text: str) -> DataConfig:
    """The data with a shift's fields; `ConfigError` where no such distribution exists."""
    changed: DataConfig = made_of({**fields_of(data), **changed_fields(text)}, DataConfig)
    return changed


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Evaluates a stored run."""
    from icl_lab.analysis.compared_run import load_compared
    from icl_lab.analysis.measures.shifts import write

    loaded = load_compared(run)
    shifts: Mapping[str, DataConfig] = {text: shifted(loaded.config.data, text) for text in flags.shift}
    return write(loaded, shifts)


COMMAND = Command("shifts", "Evaluates a run on test tasks of shifted distributions.", measure, add_flags, check)

if __name__ == "__main__":
    COMMAND.launch()
