"""The registry of families, a word each: a folder in families/, whose config is imported when it is asked for.

Other modules look families up here and never name one.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from icl_lab.lab.configs.earlier_names import todays_fields
from icl_lab.lab.configs.family import Family
from icl_lab.lab.configs.outputs import Outputs
from icl_lab.lab.configs.run import SCHEMA_VERSION, TAGS, RunConfig, made_of
from icl_lab.lab.loaded_plugins import plugin_of, why_not_loaded
from icl_lab.lab.plugin_files import imported_module
from icl_lab.lab.registries import FAMILIES
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.registry import Deferred
from icl_lab.src.words import did_you_mean

Part = TypeVar("Part")

for _name in ("regression", "layerwise", "sine", "diversity", "autoencoder", "languages", "tokens", "functions"):
    FAMILIES.build_in(_name, Deferred(f"icl_lab.families.{_name}.config", "FAMILY"))


def models() -> list[str]:
    """The models of all families."""
    return [model for family in FAMILIES.values() for model in family.models]


def family_of_model(model: str) -> Family:
    """The family of a model; `ConfigError` for a name that no model has."""
    for family in FAMILIES.values():
        if model in family.models:
            return named(family.name)
    known = f"known are {', '.join(models())}, and --plugin FILE adds others"
    raise ConfigError(f"unknown model {model!r}; {known}{did_you_mean(model, models())}")


def family_of(config: RunConfig) -> Family:
    """The family of a config."""
    return named(config.family)


def named(name: str) -> Family:
    """The family of a name; `ConfigError` for a name that none has."""
    if name not in FAMILIES:
        raise ConfigError(f"unknown family {name!r}; known are {', '.join(FAMILIES)}, and --plugin FILE adds others")
    family: Family = FAMILIES[name]
    return family


def outputs_of(family: Family) -> Outputs:
    """What the runs of a family leave; `ConfigError` if its folder does not say."""
    return part(family, "outputs", Outputs)


def part(family: Family, name: str, kind: type[Part]) -> Part:
    """A part of a family: NAME in capitals, of the module of that name; `ConfigError` if it is not there."""
    module, plugin = family.module(name), plugin_of(FAMILIES, family.name)
    held = getattr(import_module(module) if plugin is None else imported_module(plugin, module), name.upper(), None)
    if not isinstance(held, kind):
        is_none = f"{module} has no {name.upper()}, an {kind.__module__}.{kind.__name__}"
        raise ConfigError(f"the family {family.name} lacks a part: {is_none}")
    return held


def is_of_schema_1(values: Mapping[str, Any]) -> bool:
    """Whether a written config is of schema 1, which was not written into it."""
    return "schema_version" not in values and isinstance(values.get("training"), Mapping)


def check_schema(values: Mapping[str, Any]) -> None:
    """`ConfigError` unless a written config is of the schema that this version reads."""
    require(not is_of_schema_1(values), "it was written by an earlier version (schema 1), which this one does not read")
    version = values.get("schema_version")
    require(version == SCHEMA_VERSION, f"unknown schema_version {version!r}; this version reads {SCHEMA_VERSION}")


def from_dict(values: Mapping[str, Any]) -> RunConfig:
    """A config from what `configs.run.to_dict` gave, under today's names or earlier ones."""
    require(isinstance(values, Mapping), f"a config must be an object, not {type(values).__name__}")
    check_schema(values)
    if why := why_not_loaded(values):
        raise ConfigError(f"it {why}")
    kind = named(str(values.get("family"))).config
    fields = {name: value for name, value in values.items() if name not in TAGS}
    config: RunConfig = made_of(todays_fields(fields, kind), kind)
    return config
