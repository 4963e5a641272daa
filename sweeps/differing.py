"""Columns for fields of configs: those in which rows of a table differ, and which no other column shows.

The columns of a family show its own axes. Rows may differ in any other field, such as the learning rate, whether an
axis, a flag, a preset or a default has set it. A column is named after its field, as in `store.table`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.registry import family_of, named, outputs_of
from icl_lab.lab.configs.run import RunConfig, Seeds, fields_of, seeds_of, with_seeds
from icl_lab.lab.registries import FAMILIES
from icl_lab.src.checks import ConfigError
from icl_lab.src.data_config import FileData
from icl_lab.store import rundir
from icl_lab.store.listing import flat
from icl_lab.store.readers import StoreError
from icl_lab.sweeps.plan import Point
from icl_lab.sweeps.plan_file import read_plans

FOLLOWING = {"name", "preset", "shared", "requires", "data_seed"}  # from other fields, or shown by the model and seed
FOLLOWING |= {f"data.{name}" for name in FileData.SCALING}
MOST_TRIED = 16  # values of a field that are exchanged to see whether a column shows it
NO_TEXT = "none"
INIT = "init_seed"  # shown where it is not the seed of the data


@lru_cache(maxsize=4096)
def _fields(config: RunConfig) -> Mapping[str, Any]:
    """The fields of a config, whatever its seeds, as they are written in a table."""
    fields = {name: value for name, value in flat(fields_of(config)).items() if name not in {*FOLLOWING, INIT}}
    return {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in fields.items()}


def written(config: RunConfig, names: Iterable[str]) -> dict[str, Any]:
    """The values of these columns for a config; None for a field that its family does not have, a word for no text."""
    fields = {**_fields(with_seeds(config, Seeds())), INIT: config.init_seed}
    return {name: NO_TEXT if fields.get(name) == "" and _is_text(config, name) else fields.get(name) for name in names}


def _is_text(config: RunConfig, name: str) -> bool:
    return isinstance(_get(config, name), str)


@lru_cache(maxsize=4096)
def stored_config(run: Path) -> RunConfig | None:
    """The config of a row's run, if it is there."""
    try:
        config: RunConfig = rundir.read_config(run)
    except StoreError:
        return None
    return config


@lru_cache(maxsize=16)
def planned_configs(folder: Path) -> Mapping[str, RunConfig]:
    """The configs of the runs that a sweep's folder plans, by name; none where that cannot be read."""
    try:
        return {point.run.name: point.run.config for point in read_plans(folder)}
    except StoreError:
        return {}


def is_field(name: str) -> bool:
    """Whether a column is of a field of a config."""
    columns = [outputs_of(named(family)).columns for family in FAMILIES]
    if any(name in part for each in columns for part in (each.asked, each.settings, each.first, each.measured)):
        return False
    return name == INIT or any(name in _fields(named(family).config()) for family in FAMILIES)


def names(points: Sequence[Point], others: Iterable[RunConfig]) -> list[str]:
    """The fields in which the points of a plan differ from these configs of other rows, and that no column shows.

    Rows of one sweep over a family's own axes differ in these, which are columns; those of several, planned together,
    may be alike in all. Of a sweep over other fields each counts in which any of its rows differ.
    """
    kept = list(others)
    settings = {with_seeds(config, Seeds()): None for config in kept}
    alike: dict[tuple[Any, ...], dict[RunConfig, None]] = {}
    for config, asked in {id(point.run.series): (point.run.series.config, point.asked) for point in points}.values():
        unseeded = with_seeds(config, Seeds())
        alike.setdefault((asked.name, *_shown(with_seeds(asked, Seeds()))), {})[unseeded] = None
    groups = [[*group] for group in alike.values()]
    every = dict.fromkeys((*settings, *chain(*groups)))
    by_field = [point.run.series.config for point in points if point.by_field]
    models = dict.fromkeys(config.name for config in (*settings, *by_field))
    groups += [[config for config in every if config.name == model] for model in models]
    found = dict.fromkeys(
        name for group in groups if len({*group}) > 1 for name in _unshown(list(dict.fromkeys(group)))
    )
    seeds = [seeds_of(config) for config in (*kept, *(point.run.config for point in points))]
    is_free = len({each.init for each in seeds}) > 1 and len({each.init - each.data for each in seeds}) > 1
    return [*found, *([INIT] * is_free)]


def _shown(config: RunConfig) -> list[str]:
    """The values of the columns that show settings."""
    columns = outputs_of(family_of(config)).columns
    return [str(value(config)) for value in (*columns.asked.values(), *columns.settings.values())]


def _unshown(configs: Sequence[RunConfig]) -> list[str]:
    """The fields in which configs of one model differ and that no column of settings shows."""
    fields = [_fields(config) for config in configs]
    followed = {of.removeprefix("as ") for of in family_of(configs[0]).follows.values()}  # others show what they say
    names = [name for name in fields[0] if name.partition(".")[0] not in followed]
    differing = [name for name in names if len({str(each.get(name)) for each in fields}) > 1]
    return [name for name in differing if not _is_shown(name, configs)]


def _is_shown(name: str, configs: Sequence[RunConfig]) -> bool:
    """Whether a column of settings changes where a config takes another's value of a field."""
    first: dict[str, RunConfig] = {}  # with each value
    for config in configs:
        first.setdefault(str(_get(config, name)), config)
    tried = [*first.values()][:MOST_TRIED]
    return any(
        changed is not None and _shown(changed) != _shown(config)
        for config in tried
        for changed in (_with(config, name, _get(other, name)) for other in tried)
    )


def _get(config: Any, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def _with(config: Any, name: str, value: Any) -> Any:
    """A config with another value of a field; None where that is no config."""
    first, _, rest = name.partition(".")
    try:
        new = _with(getattr(config, first), rest, value) if rest else value
        return None if new is None and rest else dataclasses.replace(config, **{first: new})
    except (ConfigError, ValueError, TypeError):
        return None
