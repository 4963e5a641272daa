"""Did a run train? Each family names numbers of its summary, and how far each must get.

Training of these models can stay for long on a plateau near the loss of predicting zero. A run that ends there says
nothing about what such models learn. The verdict needs config.json and metrics_summary.json alone, so runs of earlier
versions are judged in the same way. Where no number can decide, it is undefined, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.outputs import TRAIN_LONGER, Criterion, Summary
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_summary
from icl_lab.store.readers import expecting


def of_run(run: Path) -> bool | None:
    """Whether a finished run has trained; None where that is not defined."""
    with expecting(run / layout.SUMMARY, "a run's summary"):
        met: bool | None = with_verdict(rundir.read_config(run), read_summary(run))["trained"]["met"]
    return met


def with_verdict(config: RunConfig, summary: Summary) -> dict[str, Any]:
    """A summary with its verdict, `trained`, and the numbers that this rests on.

    `met`: whether all `conditions` hold, each with its `words`, `value` (null if not finite), `unit` and threshold,
    `at_least` or `at_most`. Where the values say nothing, `met` is None and there is a `reason`.
    """
    outputs = outputs_of(family_of(config))
    criteria = outputs.criteria
    if not criteria:
        return {**summary, "trained": {"met": None, "reason": f"the family {config.family} names no criterion"}}
    from icl_lab.families.task import task_of  # brings JAX, which runners import when their flags are valid

    completed = {**summary, **task_of(config).references(config, summary)}
    conditions = [_condition(criterion, config, completed) for criterion in criteria]
    met = all(_holds(condition) for condition in conditions)
    reason = outputs.undefined(config, completed)
    verdict = {"met": met if reason is None else None, "conditions": conditions}
    return {**completed, "trained": verdict if reason is None else verdict | {"reason": reason}}


def in_words(config: RunConfig, summary: Summary, remedy: str = TRAIN_LONGER) -> str:
    """The line of a printed summary, with the remedy of a run that has not trained; "" where there is no criterion."""
    if not outputs_of(family_of(config)).criteria:
        return ""
    verdict = with_verdict(config, summary)["trained"]
    if verdict["met"] is None:
        return f"trained: not defined: {verdict['reason']}"
    said = ", ".join(map(_said, verdict["conditions"]))
    return f"trained: {said}" if verdict["met"] else f"NOT trained: {said}; {remedy}"


def _condition(criterion: Criterion, config: RunConfig, summary: Summary) -> dict[str, Any]:
    measured = criterion.value(config, summary)
    value = None if measured is None or not math.isfinite(measured) else float(measured)
    side = "at_least" if criterion.at_least else "at_most"
    return {"words": criterion.words, "value": value, "unit": criterion.unit, side: criterion.threshold}


def _holds(condition: Mapping[str, Any]) -> bool:
    """Whether a value is on the right side of its threshold; one that is not finite is not."""
    value = condition["value"]
    return value is not None and condition.get("at_least", -math.inf) <= value <= condition.get("at_most", math.inf)


def _said(condition: Mapping[str, Any]) -> str:
    value = "not finite" if condition["value"] is None else f"{condition['value']:.4f}"
    bound = f"at least {condition['at_least']:g}" if "at_least" in condition else f"at most {condition['at_most']:g}"
    return " ".join(filter(None, (condition["words"], value, condition["unit"], f"({bound})")))
