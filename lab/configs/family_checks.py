"""Checks that a plugin's family is complete, when the plugin is loaded and before JAX is."""

from __future__ import annotations

import ast
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from icl_lab.lab.configs.family import PRESETS, Family
from icl_lab.lab.configs.presets import completed, preset
from icl_lab.lab.configs.registry import family_of_model, models
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.checks import ConfigError, UsageError, require

PARTS = ("task", "outputs")  # modules of a family besides its config; each has its name in capitals


def check(family: Family) -> None:
    """`ConfigError` unless a family is one, has all its parts, and takes the name of no model."""
    require(isinstance(family, Family), f"{family!r} is not a lab.configs.family.Family")
    config = family.config
    require(
        RunConfig in getattr(config, "__mro__", ()),
        f"{config!r}, a family's config, is not a lab.configs.run.RunConfig",
    )
    name = family.name
    require(bool(family.models), f"the family {name} lacks a part: it has no models")
    for model, presets in family.models.items():
        if model in models():
            raise ConfigError(f"the model {model!r} exists already, in the family {family_of_model(model).name}")
        for wanted in PRESETS:
            require(wanted in presets, f"the family {name} lacks a part: its model {model} has no preset {wanted!r}")
    for part in PARTS:
        _check_module(name, family.module(part), part.upper())


def _check_module(family: str, module: str, held: str) -> None:
    """`ConfigError` unless there is a module that gives something a name; its source is read and not run."""
    spec: ModuleSpec | None = None
    with suppress(ModuleNotFoundError):
        spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ConfigError(f"the family {family} lacks a part: there is no module {module}")
    tree = ast.parse(Path(spec.origin).read_bytes(), spec.origin)
    given = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    given |= {node.asname or node.name for node in ast.walk(tree) if isinstance(node, ast.alias)}
    require(not given.isdisjoint({held, "*"}), f"the family {family} lacks a part: {module} has no {held}")


def check_presets(family: Family) -> None:
    """`ConfigError` for a preset that is no config of a family that is registered."""
    for model, presets in family.models.items():
        for name in presets:
            try:
                completed(preset(model, name))
            except UsageError as error:
                raise ConfigError(f"the preset {name!r} of {model}: {error}") from None
