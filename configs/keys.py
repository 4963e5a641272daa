"""The names of a config's fields: dotted, or short where that is unique; and what earlier versions called them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cli import UsageError, did_you_mean

OUTSIDE = ("family", "plugins", "shared", "requires")  # what comes with the model and the flags: nobody sets it


def leaves(config: Mapping[str, Any]) -> dict[str, str]:
    """Every way to name a field -> its dotted key: `model.num_layers`, and `num_layers` where only one field has it."""
    dotted = [
        f"{section}.{field}" if hasattr(values, "items") else section
        for section, values in config.items()
        if section not in OUTSIDE
        for field in (values if hasattr(values, "items") else [section])
    ]
    short = [key.rpartition(".")[2] for key in dotted]
    unique = {name: key for name, key in zip(short, dotted, strict=True) if short.count(name) == 1}
    return unique | {key: key for key in dotted}


def find_key(config: Mapping[str, Any], name: str) -> str:
    """The dotted key of a field named in full or, where that is unique, by its last part."""
    known = leaves(config)
    if name not in known:
        of = f" of the family {config['family']}" if "family" in config else ""
        raise UsageError(f"unknown config key {name!r}{of}{did_you_mean(name, known)}")
    return known[name]


class Renamed(NamedTuple):
    """What an earlier key is called today, and today's value: of the earlier one, as text or read, and what is set."""

    key: str
    value: Callable[[Any, Any], Any]


TRUTH = {"true": True, "1": True, "false": False, "0": False}


def _schedule(name: str) -> Renamed:
    """A schedule that had a truth value of its own; it ends where it is set to false."""

    def value(given: Any, now: str) -> str:
        said = str(given).lower()
        if said not in TRUTH:
            raise UsageError(f"{name} is {given!r}; it must be true or false")
        return name if TRUTH[said] else "constant" if now == name else now

    return Renamed("training.schedule", value)


# key of an earlier version -> what became of it: flags, sweeps' settings and configs of earlier runs are read by it
RENAMED: dict[str, Renamed] = {
    "training.cosine": _schedule("cosine"),
    "training.triangle": _schedule("triangle"),
}


def renamed(name: str) -> Renamed | None:
    """What became of a key, in full or by its last part; None for one that is today's."""
    return next((new for old, new in RENAMED.items() if name in (old, old.rpartition(".")[2])), None)
