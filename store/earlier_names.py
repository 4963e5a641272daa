"""The names that earlier versions gave to metrics and to columns of tables; readers see today's.

A name says which tasks a number is of: `eval_` the evaluation batch, `test_` the test tasks. Earlier versions wrote
`test_loss` and `gd_loss` for the evaluation batch in metrics, and for the test tasks in tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from icl_lab.lab.configs.family import Columns
from icl_lab.lab.configs.registry import family_of_model
from icl_lab.src.checks import ConfigError

METRICS = {"test_loss": "eval_loss", "test_accuracy": "eval_accuracy"}
EVALUATED = (  # further metrics of the evaluation batch, which began without `eval_`
    *("preds_diff", "model_diff", "model_cos", "way_to_optimum", "id_*", "ood_*"),
    *("*_loss", "*_accuracy", "*_preds_mse", "*_cosine"),
)
COLUMNS = {"headline_tasks": "test_tasks"}
PREFIXES = ("test_", "eval_")  # columns of results that begin so began without
SWEEP = {"exp", "model", "seed", "status"}  # columns of every sweep's table


@lru_cache(maxsize=1024)
def todays_metric(name: str) -> str:
    """Today's name of a metric of an earlier version."""
    is_evaluated = not name.startswith(("train_", "eval_")) and any(fnmatchcase(name, each) for each in EVALUATED)
    return METRICS.get(name, f"eval_{name}" if is_evaluated else name)


@lru_cache(maxsize=1024)
def _earlier_metric(name: str) -> str:
    bare = name.removeprefix("eval_")
    return next((earlier for earlier in (f"test_{bare}", bare) if todays_metric(earlier) == name), name)


def is_earlier(values: Mapping[str, Any]) -> bool:
    """Whether a record of metrics, or a summary, has the names of an earlier version."""
    return "test_loss" in values


def todays(values: Mapping[str, Any]) -> dict[str, Any]:
    """A record of metrics, or a summary, under today's names."""
    return {todays_metric(name): value for name, value in values.items()} if is_earlier(values) else dict(values)


def earlier(values: Mapping[str, Any]) -> dict[str, Any]:
    """A record of metrics under the names of an earlier version."""
    return {_earlier_metric(name): value for name, value in values.items()}


def todays_columns(names: Sequence[str], models: Iterable[str]) -> list[str]:
    """Today's names of the columns of a sweep's table of these models; other tables keep theirs."""
    if not {*names} >= SWEEP:
        return [*names]
    families = [columns for model in dict.fromkeys(models) if (columns := _columns_of(model))]
    results = {name for columns in families for name in (*columns.first, *columns.measured, *columns.further(None))}
    todays_names = results.union(*(part for columns in families for part in (columns.asked, columns.settings)))

    def todays_column(name: str) -> str:
        prefixed = [prefix + name for prefix in PREFIXES if prefix + name in results - {*names}]
        return prefixed[0] if prefixed and name not in todays_names else COLUMNS.get(name, name)

    return [todays_column(name) for name in names]


def _columns_of(model: str) -> Columns | None:
    """The columns of a model's family; None for a model that nobody knows."""
    try:
        return family_of_model(model).columns
    except ConfigError:
        return None
