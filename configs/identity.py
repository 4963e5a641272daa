"""What a run is known by: the id of its config, and the hashes of arrays that it shares with others."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from configs.keys import first_fields
from configs.run import RunConfig

if TYPE_CHECKING:
    import numpy as np

RESULTS_VERSION = 4  # of the numbers of runs: raised when the same config gives other numbers
VOLATILE = ("preset",)  # fields that name a config without changing what it computes
DIGITS = 16  # of a SHA-256, in hexadecimal


def config_id(config: RunConfig) -> str:
    """A hash of all that a run's numbers depend on: its family, the resolved config and the results version.

    Only what differs from the family's defaults counts, under the names that fields had first: neither a field added
    later, at its default, nor one renamed changes an id.
    """
    defaults = first_fields(type(config)()) | {"plugins": []}  # a family's own plugin is in its defaults too
    return hashed(config.family, differences(first_fields(config), defaults))


def hashed(family: str | None, values: dict[str, Any]) -> str:
    """The id of the differing fields of a family; of runs before there were tags, of none."""
    values = {name: value for name, value in values.items() if name not in VOLATILE}
    tag = {} if family is None else {"family": family}
    text = json.dumps({**tag, "config": values, "results_version": RESULTS_VERSION}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def differences(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The entries that differ from the defaults, sections within sections."""
    return {
        name: differences(value, defaults[name]) if isinstance(value, dict) else value
        for name, value in values.items()
        if value != defaults[name]
    }


def array_hash(array: np.ndarray) -> str:
    """The hash of an array's type, shape and content."""
    head = json.dumps([array.dtype.str, list(array.shape)]).encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()[:DIGITS]
