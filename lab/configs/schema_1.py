"""Configs as earlier versions wrote them: schema 1 had every field of every family in every config, at its default.

`upgraded` makes schema 2 of one, and `earlier_id` gives the id that a run of today's config had then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icl_lab.lab.configs.identity import config_id, differences, hashed
from icl_lab.lab.configs.keys import RENAMED, first_fields
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.checks import require

CONTEXT: dict[str, Any] = {
    "ordering": "random",
    "difficulty": "gd_error",
    "noise_mode": "clean",
    "noise_p": 0.0,
    "noise_sigma": 0.0,
    "noise_placement": "mixed",
}
DEFAULTS_1: dict[str, Any] = {  # of schema 1
    "name": "lsa1",
    "family": "regression",
    "preset": "default",
    "data_seed": 0,
    "init_seed": 0,
    "eval_every": 500,
    "eval_tasks": 2048,
    "headline_tasks": 10_000,
    "step_size_tasks": 65_536,
    "snapshots": False,
    "log_records": 0,
    "data": {
        "dim": 10,
        "num_pairs": 10,
        "input_law": "uniform",
        "input_range": 1.0,
        "weight_scale": 1.0,
        "noise_std": 0.0,
        "num_distractors": 0,
        "num_queries": 1,
        "amplitude_low": 0.1,
        "amplitude_high": 0.5,
        "num_tasks": 0,
        "task_law": "gaussian",
    },
    "model": {
        "tokens": "concatenated",
        "attention": ["linear"],
        "num_layers": 1,
        "num_heads": 1,
        "key_size": 0,
        "recurrent": False,
        "damping": 1.0,
        "activation_clip": 0.0,
        "pos_enc_size": 0,
        "bias": False,
        "layer_norm": False,
        "mlp_width": 0,
        "init_scale": 0.002,
        "embed_size": 0,
        "embedded": "pairs",
        "step_size": 0.0,
        "block": "gpt2",
        "attention_output": True,
        "doubled_residual": False,
    },
    "training": {
        "steps": 5000,
        "batch_size": 2048,
        "lr": 0.001,
        "b1": 0.9,
        "b2": 0.98,
        "weight_decay": 0.0,
        "grad_clip": 0.001,
        "warmup_steps": 0,
        "cosine": False,
        "deep_supervision": False,
        "full_batch": False,
        "triangle": False,
    },
    "base": CONTEXT,
    "train": CONTEXT,
    "eval": CONTEXT,
}
INSTEAD_OF_DIM = {"sine": 1}  # families whose dimension was a field, which had this one value


def is_earlier(values: Mapping[str, Any]) -> bool:
    """Whether a written config is of schema 1, which was not written into it."""
    return "schema_version" not in values


def upgraded(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A config of schema 1 in the sections of today, given the defaults of its family; fields have their first names.

    Fields that were left out then had their defaults of then. A field that the family does not have must have been at
    its default; `ConfigError` otherwise.
    """
    _check_known(values)
    filled = _filled(values, DEFAULTS_1)
    filled["training"] = _renamed(filled["training"])
    config: dict[str, Any] = {}
    for name, value in filled.items():
        if not isinstance(value, dict):
            inside, kept = {name: value}, {name} & {*defaults}
        else:
            inside, kept = value, {*value} & {*defaults.get(name, {})}
        for field in {*inside} - kept - {"family"}:
            _check_default(str(filled["family"]), name, field, inside[field])
        if isinstance(value, dict) and kept:
            config[name] = {field: item for field, item in value.items() if field in kept}
        elif kept:
            config[name] = value
    return config


def _filled(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The values, and the defaults of those that are left out."""
    return {
        name: default | dict(values.get(name, {})) if isinstance(default, dict) else values.get(name, default)
        for name, default in defaults.items()
    }


def _check_known(values: Mapping[str, Any]) -> None:
    unknown = {*values} - {*DEFAULTS_1}
    for name, default in DEFAULTS_1.items():
        if isinstance(default, dict) and name in values:
            require(isinstance(values[name], Mapping), f"{name} must be an object")
            unknown |= {*values[name]} - {*default}
    require(not unknown, f"unknown config fields: {', '.join(sorted(unknown))}")


def _check_default(family: str, section: str, field: str, value: Any) -> None:
    default = DEFAULTS_1[section][field] if isinstance(DEFAULTS_1[section], dict) else DEFAULTS_1[section]
    fixed = INSTEAD_OF_DIM.get(family) if field == "dim" else default
    require(value in (default, fixed), f"{field} is {value}, but has no meaning for the family {family}")


def _renamed(training: Mapping[str, Any]) -> dict[str, Any]:
    """The training section with what is called otherwise today."""
    fields = dict(training) | {"schedule": "constant"}
    for earlier, new in RENAMED.items():
        section, _, field = earlier.rpartition(".")
        if section == "training":
            given = fields.pop(field)
            require(isinstance(given, bool), f"{field} is {given!r}; it must be of type bool")
            fields["schedule"] = new.value(given, fields["schedule"])
    return fields


def earlier_id(config: RunConfig) -> str:
    """The id that the run of a config had under schema 1; today's, if schema 1 could not say such a config."""
    values = first_fields(config)
    schedule = values["training"]["schedule"]
    values["training"] |= {name.rpartition(".")[2]: name.endswith(f".{schedule}") for name in RENAMED}
    if config.family in INSTEAD_OF_DIM:
        values["data"]["dim"] = INSTEAD_OF_DIM[config.family]
    values["family"] = config.family
    merged = {
        name: default | {field: item for field, item in values.get(name, {}).items() if field in default}
        if isinstance(default, dict)
        else values.get(name, default)
        for name, default in DEFAULTS_1.items()
    }
    defaults = first_fields(type(config)())
    could_be_said = _filled(upgraded(merged, defaults), defaults) == first_fields(config)
    return hashed(None, differences(merged, DEFAULTS_1)) if could_be_said else config_id(config)
