"""Which fields follow those that are swept, and their values, in sentences: a preset's learning rate, by depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from icl_lab.lab.configs.config_help import in_words
from icl_lab.lab.configs.family import Family
from icl_lab.lab.configs.keys import OUTSIDE
from icl_lab.lab.configs.registry import family_of_model
from icl_lab.lab.configs.run import fields_of
from icl_lab.src.data_config import FileData
from icl_lab.store.listing import flat
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import Point

NAMING = {*OUTSIDE, "name", "preset", "data_seed", "init_seed"}  # fields that say which run it is
SCALING = {f"data.{name}" for name in FileData.SCALING}  # numbers of a file, which nobody looks for here
MOST_AXES = 2  # that a sentence gives values for
MOST_VALUES = 6  # in a sentence

Fields = Mapping[str, Any]  # of a config, by dotted name


class Followed(NamedTuple):
    """The axes that a field follows, and its value at each of their points."""

    axes: tuple[str, ...]
    values: Mapping[tuple[str, ...], str]


def lines(grid: Grid, points: Sequence[Point]) -> Iterator[str]:
    """A sentence for each field that differs between the points of a model though it is not swept.

    Fields that stand for others by a word of their family (`auto`, `as base`) are left out.
    """
    for model in grid.models:
        asked = {id(point.run.series): point.asked for point in points if point.asked.name == model}
        configs = [flat(fields_of(config)) for config in asked.values()]
        if len(configs) < 2:
            continue
        keys = {key: name for name, key in grid.keys_of(model).items()}
        swept = [key for key in keys if _differs(key, configs)]
        for field in (field for field in configs[0] if _may_follow(field, keys, family_of_model(model))):
            if _differs(field, configs):
                yield f"{model}: {_sentence(field, _followed(field, swept, configs), keys)}"


def _differs(field: str, configs: Sequence[Fields]) -> bool:
    return any(config.get(field) != configs[0].get(field) for config in configs)


def _may_follow(field: str, swept: Mapping[str, str], family: Family) -> bool:
    """Whether a field is neither swept, nor one that names a run, nor one that says itself what it follows."""
    says = family.follows.get(field) or family.follows.get(field.partition(".")[0])
    return not (field in swept or field in NAMING | SCALING or says)


def _followed(field: str, swept: Sequence[str], configs: Sequence[Fields]) -> Followed | None:
    """The fewest axes that determine a field, up to `MOST_AXES`; None where it takes more."""
    for number in range(1, MOST_AXES + 1):
        for axes in combinations(swept, number):
            values: dict[tuple[str, ...], set[str]] = {}
            for config in configs:
                values.setdefault(tuple(in_words(config.get(axis)) for axis in axes), set()).add(
                    in_words(config.get(field))
                )
            if all(len(each) == 1 for each in values.values()):
                return Followed(axes, {at: value for at, (value,) in values.items()})
    return None


def _sentence(field: str, followed: Followed | None, names: Mapping[str, str]) -> str:
    if followed is None:
        return f"{field} follows the swept fields"
    places: dict[str, list[str]] = {}
    for at, value in followed.values.items():
        places.setdefault(value, []).append(" and ".join(at))
    shown = [f"{value} at {', '.join(at)}" for value, at in places.items()]
    more = [f"and {len(shown) - MOST_VALUES} more values"] if len(shown) > MOST_VALUES else []
    axes = " and ".join(names[axis] for axis in followed.axes)
    return f"{field} follows {axes}: {'; '.join([*shown[:MOST_VALUES], *more])}"
