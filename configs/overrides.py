"""From a preset and what the user set to the frozen config of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict

from cli import UsageError, did_you_mean
from configs.meaning import refuse_without_meaning
from src.config import ContextConfig, RunConfig, from_dict, to_dict

AUTO = "auto"
DEFAULTS = to_dict(RunConfig())  # their types are the fields'
DEFAULTS["model"]["attention"] = RunConfig().model.attention
NOISY_DIM, PAIRS_A_DIM = 32, 2  # of a sequence: its noise variance is D over the first, its length D times the second


def leaves(config: ConfigDict) -> dict[str, str]:
    """Every way to name a field -> its dotted key: `model.num_layers`, and `num_layers` where only one field has it."""
    dotted = [
        f"{section}.{field}" if isinstance(values, ConfigDict) else section
        for section, values in config.items()
        for field in (values if isinstance(values, ConfigDict) else [section])
    ]
    short = [key.rpartition(".")[2] for key in dotted]
    unique = {name: key for name, key in zip(short, dotted, strict=True) if short.count(name) == 1}
    return unique | {key: key for key in dotted}


def find_key(config: ConfigDict, name: str) -> str:
    """The dotted key of a field named in full or, where that is unique, by its last part."""
    known = leaves(config)
    if name not in known:
        raise UsageError(f"unknown config key {name!r}{did_you_mean(name, known)}")
    return known[name]


def parse(text: str, default: Any, name: str) -> Any:
    """A value from text, of the type of the field's default."""
    try:
        if isinstance(default, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if isinstance(default, tuple):
            return tuple(word for word in text.strip("()").replace(" ", "").split(",") if word)
        return type(default)(text)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}.get(type(default), "valid")
        raise UsageError(f"{name} is {text!r}; it must be {kind}") from None


def set_values(config: ConfigDict, values: Mapping[str, Any]) -> None:
    """Sets fields by key. Text is parsed to the field's type; None and "auto" leave a field as it is."""
    with config.ignore_type():
        for name, value in values.items():
            if value is None or value == AUTO:
                continue
            section, _, field = find_key(config, name).rpartition(".")
            owner, default = (config[section], DEFAULTS[section]) if section else (config, DEFAULTS)
            owner[field] = parse(value, default[field], name) if isinstance(value, str) else value


def resolve(config: ConfigDict) -> RunConfig:
    """The frozen run config: unset context fields come from `base`, unset difficulties from the noise mode.

    The difficulty of a context with corrupted labels is `residual`, else `gd_error`; by configuration, so it is the
    same for every batch. A sequence whose noise and length are unset has variance D/32, one signal-to-noise ratio for
    all dimensions, and 2 D pairs (Raventos et al. 2023, Fig. 6).
    """
    values: dict[str, Any] = config.to_dict()
    base = values["base"]
    for name in ("train", "eval", "base"):
        context = {field: base[field] if value is None else value for field, value in values[name].items()}
        if context["difficulty"] is None:
            context["difficulty"] = "gd_error" if context["noise_mode"] == ContextConfig().noise_mode else "residual"
        values[name] = context
    data = values["data"]
    if data["noise_std"] is None:
        data["noise_std"] = (data["dim"] / NOISY_DIM) ** 0.5
    if data["num_pairs"] is None:
        data["num_pairs"] = PAIRS_A_DIM * data["dim"]
    resolved: RunConfig = from_dict(values)
    refuse_without_meaning(resolved)
    return resolved
