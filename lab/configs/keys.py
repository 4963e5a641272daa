"""The names of a config's fields: dotted, or short where that is unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from icl_lab.lab.configs.earlier_names import TODAYS
from icl_lab.src.checks import UsageError
from icl_lab.src.words import did_you_mean

# what comes with the model and the flags: nobody sets it
OUTSIDE = ("family", "plugins", "shared", "requires", "init_from")


def leaves(config: Mapping[str, Any]) -> dict[str, str]:
    """Every way to name a field -> its dotted key: `model.num_layers`, and `num_layers` where only one field has it."""
    dotted = [
        f"{section}.{field}" if hasattr(values, "items") else section
        for section, values in config.items()
        if section not in OUTSIDE
        for field in (values if hasattr(values, "items") else [section])
    ]
    short = [key.rpartition(".")[2] for key in dotted]
    number = Counter(short)
    unique = {name: key for name, key in zip(short, dotted, strict=True) if number[name] == 1}
    return unique | {key: key for key in dotted}


def find_key(config: Mapping[str, Any], name: str, known: Mapping[str, str] | None = None) -> str:
    """The dotted key of a field named in full or, where that is unique, by its last part; first names count too.

    `known` is `leaves(config)`, for who looks up many.
    """
    known = known or leaves(config)
    section, dot, last = name.rpartition(".")
    for key in (name, f"{section}{dot}{TODAYS.get(last, last)}"):
        if key in known:
            return known[key]
    several = [key for key in dict.fromkeys(known.values()) if key.rpartition(".")[2] == name]
    if len(several) > 1:
        raise UsageError(f"config key {name!r} is a field of several sections; name one of {', '.join(several)}")
    of = f" of the family {config['family']}" if "family" in config else ""
    words = known if dot else dict.fromkeys(key.rpartition(".")[2] for key in known.values())
    raise UsageError(f"unknown config key {name!r}{of}{did_you_mean(name, words)}")
