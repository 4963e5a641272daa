"""Did a run train? Each family names a number of its summary and how far it must get to have left the plateau.

Training of these models can stay for long on a plateau near the loss of predicting zero. A run that ends there says
nothing about what such models learn. The verdict needs config.json and metrics_summary.json alone, so older runs have
it too. Where no number can decide, it is undefined, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from configs.family import Criterion, Summary
from configs.registry import family_of
from configs.run import RunConfig


def left_plateau(config: RunConfig, summary: Summary) -> dict[str, Any]:
    """Whether a run has left the plateau: `met`, the `criterion` in words, its `value` and the `threshold`.

    A value that is not finite has not. Where the value says nothing, `met` is None and there is a `reason`.
    """
    criterion = family_of(config).criterion
    if criterion is None:
        return {"met": None, "reason": f"the family {config.family} names no criterion"}
    from families.experiment import experiment_of  # brings JAX, which commands import when their flags are valid

    reason, measured = experiment_of(config).undefined(config, summary), criterion.value(config, summary)
    value = None if measured is None or not math.isfinite(measured) else float(measured)
    met = value is not None and (value >= criterion.threshold if criterion.at_least else value <= criterion.threshold)
    verdict = {
        "met": met if reason is None else None,
        "criterion": f"{criterion.words}, {_bound(criterion)}",
        "value": value,
        "threshold": criterion.threshold,
    }
    return verdict if reason is None else verdict | {"reason": reason}


def in_words(config: RunConfig, summary: Summary) -> str:
    """The line of a printed summary; empty for a family without a criterion."""
    criterion = family_of(config).criterion
    return "" if criterion is None else _line(criterion, left_plateau(config, summary))


def _line(criterion: Criterion, verdict: Mapping[str, Any]) -> str:
    if verdict["met"] is None:
        return f"left the plateau: not defined: {verdict['reason']}"
    value = "not finite" if verdict["value"] is None else f"{verdict['value']:.4f}"
    if verdict["met"]:
        return f"left the plateau: {criterion.words} {value}, {_bound(criterion)}"
    missed = "less" if criterion.at_least else "more"
    bound = "" if verdict["value"] is None else f", {missed} than {criterion.threshold:g}"
    return f"NOT off the plateau: {criterion.words} {value}{bound}; train longer (--steps) or take another --seed"


def _bound(criterion: Criterion) -> str:
    return f"{'at least' if criterion.at_least else 'at most'} {criterion.threshold:g}"
