"""From a model's name to the values it is trained with. `docs/reference.md` has the tables."""

from __future__ import annotations

from typing import Any

from ml_collections import ConfigDict

from icl_lab.lab.configs.keys import find_key, leaves
from icl_lab.lab.configs.registry import family_of_model
from icl_lab.lab.configs.run import fields_of


def preset(model: str, name: str = "default", num_layers: int | None = None, recurrent: bool = False) -> ConfigDict:
    """The preset of a model at a depth, as a locked `ConfigDict` that `lab.configs.overrides.resolve` turns into a run.

    Fields that follow others are None in it, unless the preset sets them: `resolve` gives them their values.
    """
    family = family_of_model(model)
    config: dict[str, Any] = {"family": family.name, **fields_of(family.config(name=model, preset=name))}
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
