"""What a user is told of the contexts of a file, before a training and in the summary of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from icl_lab.families.own_config import data_of, drawn_scale
from icl_lab.families.own_data import SPLITS, rows_needed
from icl_lab.families.own_sets import Sets, sets_of
from icl_lab.lab.configs.run import fields_of
from icl_lab.src.checks import ConfigError

FAR = 3.0  # times the scale that a preset is made for, or less than a third of it


def facts_of(config: Any) -> dict[str, Any]:
    """What the summary of a run says of its contexts; scales are None where a model sees the data as they are."""
    data, sets = data_of(config), sets_of(config)
    scaling = {name: getattr(data, name) for name in data.without_meaning} if data.standardize else None
    counts = {name: len(part) for name, part in zip(SPLITS, (sets.train, sets.eval, sets.test), strict=True)}
    return {"file": data.file, "contexts": counts, "left_out": sets.left_out, "standardized": scaling}


def notes_of(config: Any) -> Iterator[str]:
    """What a user is to know before the training: contexts that are left out, and a scale that is far from drawn."""
    if not config.shares_arrays:
        return
    data, sets = data_of(config), sets_of(config)
    if sets.left_out:
        needed = rows_needed(sets.data, data.num_pairs, config.sequences)
        count = f"{sets.left_out} contexts have" if sets.left_out > 1 else "1 context has"
        yield f"{count} fewer than {needed} pairs and {'are' if sets.left_out > 1 else 'is'} left out"
    if not data.standardize:
        yield from _far(config, sets)


def _far(config: Any, sets: Sets) -> Iterator[str]:
    """A line if the root mean square of inputs or labels is far from that of drawn ones."""
    from icl_lab.lab.configs.presets import preset

    try:
        begun = preset(config.name, config.preset).to_dict()["data"]
    except (ConfigError, KeyError):
        begun = fields_of(type(config)().data)
    for name, drawn in zip(("x", "y"), drawn_scale(begun, config.data.dim), strict=True):
        is_now = float(np.sqrt(np.mean(np.square(sets.stored[name], dtype=np.float64))))
        if not 1 / FAR <= is_now / drawn <= FAR:
            yield (
                f"{name} has a root mean square of {is_now:.3g}; rate and clips of the preset are for {drawn:.3g}: "
                "--standardize brings it there"
            )
            return
