"""No plugin takes a built-in name: in a registry, in a table that its names are merged into, or among columns."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from icl_lab.lab.configs.registry import FAMILIES, outputs_of
from icl_lab.lab.registries import ALL
from icl_lab.src import registries
from icl_lab.src.checks import ConfigError
from icl_lab.src.registries import MODEL
from icl_lab.src.registry import Functions, Registry

# registry -> names that stand beside those of its plugins, in one table
TABLES: Mapping[str, tuple[str, ...]] = {
    "baseline": (MODEL, "loss", "train", "eval", "test"),
    "task distribution": (MODEL, "zero", "ridge", "dmmse"),  # of `families.diversity.task.references`
}
OTHER = registries.Baseline(), registries.TaskDistribution(bayes="own", posterior_mean=lambda batch, config: None)
Add = Callable[[Registry[Any], str, Any], None]


def names_of(registry: Registry[Any]) -> list[str]:
    return [*registry.built_in, *TABLES.get(registry.kind, ())]


@pytest.mark.parametrize("registry", ALL, ids=lambda registry: registry.kind)
def test_no_plugin_takes_a_built_in_name(registry: Registry[Any], registered: Add) -> None:
    before = dict(registry)
    for name in names_of(registry):
        with pytest.raises(ConfigError, match=f"{registry.kind} '{name}'.* (is built in|is reserved)"):
            registered(registry, name, None)
    assert dict(registry) == before


def test_a_table_whose_names_are_open_is_refused_where_it_is_made() -> None:
    registry = Registry("kind", {"one": 1}, reserved=("two",))
    table = {"one": 1, "two": 2}
    assert registry.reserving(table) is table
    with pytest.raises(ConfigError, match=r"^three: a plugin's kind could have this name"):
        registry.reserving({**table, "three": 3})
    with pytest.raises(ConfigError, match=r"^three: "):
        Functions(registry, "field", {"three": print})


@pytest.mark.parametrize("registry", [registries.BASELINES, registries.TASK_DISTRIBUTIONS], ids=lambda r: r.kind)
def test_no_plugin_takes_a_column(registry: Registry[Any], registered: Add) -> None:
    """Every part of a column's name that could be a name is given to a plugin, unless it is refused."""
    entry = OTHER[registry is registries.TASK_DISTRIBUTIONS]
    families = [family for family in FAMILIES.values() if outputs_of(family).columns.further(None)]
    assert families
    own = {family.name: columns_of(family) for family in families}
    parts = {part for names in own.values() for name in names for part in parts_of(name)}
    taken = 0
    for part in parts - {*registry}:
        try:
            registered(registry, part, entry)
        except ConfigError:
            taken += 1
    assert taken
    for family in families:
        added = [name for name in outputs_of(family).columns.further(None) if not further_built_in(name, registry)]
        assert sorted({*added} & own[family.name]) == []


def columns_of(family: Any) -> set[str]:
    columns = outputs_of(family).columns
    return {"exp", "model", "seed", "status", *columns.asked, *columns.first, *columns.settings, *columns.measured}


def parts_of(column: str) -> set[str]:
    words = column.split("_")
    ends = range(len(words) + 1)
    return {"_".join(words[low:high]) for low in ends for high in ends if low < high and words[low : low + 1] != [""]}


def further_built_in(column: str, registry: Registry[Any]) -> bool:
    return any(re.search(rf"(^|_){name}(_|$)", column) is not None for name in registry.built_in)
