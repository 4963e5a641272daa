"""From a model's name, a preset and what a user set to the frozen config of a run, and back to the command.

docs/reference.md has the tables of presets.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, TypeAlias

from ml_collections import ConfigDict

from icl_lab.lab.command_end import typed
from icl_lab.lab.configs.earlier_names import TRUTH, renamed, todays_value
from icl_lab.lab.configs.family import AUTO
from icl_lab.lab.configs.identity import with_dependencies
from icl_lab.lab.configs.keys import OUTSIDE, find_key, leaves
from icl_lab.lab.configs.registry import family_of, family_of_model, named
from icl_lab.lab.configs.run import RunConfig, default_of, fields_of, kind_in, made_of
from icl_lab.lab.flag_types import INFINITY, whole
from icl_lab.src.checks import ConfigError, UsageError, require
from icl_lab.src.fields import OfKinds, every_kind
from icl_lab.src.words import words_of


def preset(model: str, name: str = "default", num_layers: int | None = None, recurrent: bool = False) -> ConfigDict:
    """The preset of a model at a depth, as a locked `ConfigDict` that `resolve` turns into a run.

    Fields that follow others are None in it, unless the preset sets them: `resolve` gives them their values.
    """
    family = family_of_model(model)
    config: dict[str, Any] = {"family": family.name, **fields_of(family.config(name=model, preset=name))}
    for section, kind in sections_of_kinds(family.config).items():
        config[section] = {"kind": kind.kind, **dict.fromkeys(every_kind(kind))}
    chosen, keys = family.models[model][name], leaves(config)
    values = dict(chosen.values)
    if num_layers is not None and "num_layers" in keys:
        values["num_layers"] = num_layers
    if recurrent and "recurrent" in keys:
        values["recurrent"] = True
    values |= chosen.by_depth(values.get("num_layers", 1), recurrent)
    given = {find_key(config, key, keys): value for key, value in values.items()}
    for key, value in given.items():
        section, _, field = key.rpartition(".")
        (config[section] if section else config)[field] = value
    for key in (key for key in family.follows if key not in given):
        section, _, field = key.rpartition(".")
        owner = config[section] if section else config
        owner[field] = dict.fromkeys(owner[field]) if isinstance(owner[field], dict) else None
    return ConfigDict(config).lock()


def sections_of_kinds(kind: type[RunConfig]) -> dict[str, type[Any]]:
    """The sections of a family's config that come in several kinds, by name."""
    sections: dict[str, Any] = {each.name: each.default for each in dataclasses.fields(kind)}
    return {name: type(value) for name, value in sections.items() if isinstance(value, OfKinds)}


def of_one_kind(values: Mapping[str, Any], name: str, section: type[Any]) -> dict[str, Any]:
    """What a section of several kinds has of its kind's fields, with their defaults where nothing is said.

    `ConfigError` for a field of another kind.
    """
    kind = kind_in(values, section)
    own = {each.name for each in dataclasses.fields(kind)}
    given = {field: value for field, value in values.items() if value is not None}
    for field in given.keys() - own:
        others = ", ".join(every_kind(section)[field])
        raise ConfigError(f"{field} is a field of {others}, but {name} is {values['kind']}")
    return fields_of(kind()) | given


def title_of(config: RunConfig) -> str:
    """What a run is called in titles and directories: its name and, where it has more or fewer layers, how many.

    `lsa1`, `lsa1_2layers`: more or fewer than the default of its model, whose name the field `name` has.
    """
    depth = getattr(getattr(config, "model", None), "num_layers", None)
    known = config.name in family_of(config).models
    if depth is None or not known or depth == _default_depth(config.name):
        return config.name
    return f"{config.name}_{depth}layer{'s' * (depth > 1)}"


def _default_depth(model: str) -> int:
    return int(preset(model)["model"]["num_layers"])


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
    kind, known = named(config["family"]).config, leaves(config)
    defaults = kind()
    with config.ignore_type() if isinstance(config, ConfigDict) else nullcontext():
        for name, value in (item for values in groups for item in values.items()):
            if value is None or value == AUTO:
                continue
            earlier = renamed(name)
            key = find_key(config, earlier.key if earlier else name, known)
            section, _, field = key.rpartition(".")
            owner = config[section] if section else config
            value = earlier.value(value, owner[field]) if earlier else value
            value = parse(value, default_of(kind, key), name) if isinstance(value, str) else value
            owner[field] = todays_value(type(value_at(defaults, section) if section else defaults), field, value)


def resolve(config: Values) -> Any:
    """The frozen run config of the preset's family: what follows other fields, runs or arrays has its value."""
    return with_dependencies(completed(config))


def completed(config: Values) -> RunConfig:
    """The same before it knows of runs and arrays."""
    values: dict[str, Any] = config.to_dict() if isinstance(config, ConfigDict) else dict(config)
    family = named(values.pop("family"))
    for name, section in sections_of_kinds(family.config).items():
        values[name] = of_one_kind(values[name], name, section)
    resolved: RunConfig = made_of(family.config.complete(values), family.config)
    return resolved


def check_given(config: RunConfig, *groups: Mapping[str, Any]) -> None:
    """`ConfigError` if a field of a resolved config is not what a user set (None, "auto": nothing): its file says else.

    Fields are named as in `set_values`. Without a data file nothing is checked.
    """
    file, fields = config.data_file, fields_of(config) if config.data_file else {}
    for name, value in (item for values in groups for item in values.items()) if file else ():
        key = find_key(fields, name)
        if value is None or value == AUTO or key == "data.file":
            continue
        is_now = value_at(config, key)
        wanted = parse(value, is_now, name) if isinstance(value, str) else value
        if key.startswith("data.") or key in ("eval_tasks", "test_tasks"):
            name = key.rpartition(".")[2]
            require(wanted == is_now, f"{name} is {wanted}, but with the data of {file} it must be {is_now}")


def command_of(config: RunConfig) -> str:
    """The command that trains a config: `runners.run MODEL` with what differs from its preset, quoted for a shell."""
    first = preset(config.name, config.preset).to_dict()
    of_kinds = sections_of_kinds(type(config))
    changed = {f"{name}.kind": getattr(config, name).kind for name in of_kinds}
    set_values(first, changed)
    begun = fields_of(completed(first))
    for name, section in of_kinds.items():
        begun[name]["kind"] = section.kind
    words = [*typed("runners.run").split(), config.name]
    if config.preset != RunConfig.preset:
        words += ["--preset", config.preset]
    if config.data_seed == config.init_seed != 0:
        words += ["--seed", str(config.data_seed)]
        begun |= {"data_seed": config.data_seed, "init_seed": config.init_seed}
    differing, idle = _differing(fields_of(config), begun), {*without_meaning(config)}
    words += [f"--config.{key}={_typed(value)}" for key, value in differing if key not in idle]
    return shlex.join(words)


def without_meaning(config: RunConfig) -> Iterator[str]:
    """The fields that nobody sets beside the others: of which only the default is valid, or which a file says."""
    for section in dataclasses.fields(config):
        for name in getattr(getattr(config, section.name), "without_meaning", ()):
            yield f"{section.name}.{name}"


def _differing(values: Mapping[str, Any], others: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _differing(value, others[name], f"{before}{name}.")
        elif before + name not in OUTSIDE and value != others[name]:
            yield before + name, value


def _typed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
