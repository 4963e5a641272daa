"""When a training ends before its last step: where a condition holds at a record, or no record was better for long.

A rule reads columns of the training and evaluation batches alone: the test set is not looked at during a training.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from icl_lab.src.checks import ConfigError, require

SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
WRITTEN = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\S+)\s*")
READ = ("train_", "eval_")  # how the columns begin that a rule may read
BEST = "eval_loss"  # by which records are compared
LOSSES = ("train_loss", BEST)  # in every record


class Condition(NamedTuple):
    """A column of the metrics, a sign and a bound."""

    column: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.bound!r}"

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Whether it holds at a record; not for a value that is missing or no number."""
        value = _number(record[self.column])
        return bool(SIGNS[self.sign](value, self.bound))  # nan compares as false

    def check(self, columns: Iterable[str]) -> None:
        """`ConfigError` unless its column is one of these."""
        known = [name for name in columns if name.startswith(READ)]
        said = f"stop_when reads {self.column!r}; the records of this run have {', '.join(known)}"
        require(self.column in known, said)


def condition_of(text: str) -> Condition:
    """The condition that a text says; `ConfigError` for any other text, and for a column of the test set."""
    said = f"stop_when is {text!r}; it must be a condition such as 'eval_loss < 0.1'"
    match = WRITTEN.fullmatch(text)
    if match is None:
        raise ConfigError(said)
    column, sign, bound = match.groups()
    require(
        column.startswith(READ),
        f"stop_when reads {column!r}; only train_ and eval_ columns may stop a training, never its test set",
    )
    try:
        number = float(bound)
    except ValueError:
        raise ConfigError(said) from None
    require(math.isfinite(number), said)
    return Condition(column, sign, number)


class Stopping:
    """The rule of one run, which sees its records in order. The record of step 0 is the first best and ends nothing."""

    def __init__(self, stop_when: str, patience: int):
        self.condition = condition_of(stop_when) if stop_when else None
        self.patience = patience
        self.best, self.best_step, self.worse = math.inf, 0, 0

    def is_better(self, record: Mapping[str, Any]) -> bool:
        """Whether a record is better than all that were seen; not one whose loss is missing or no number."""
        return _number(record[BEST]) < self.best  # nan compares as false

    def reason(self, record: Mapping[str, Any]) -> str:
        """Why the training ends with this record; "" if it goes on. `ConfigError` for a column it lacks."""
        loss, step, condition = _number(record[BEST]), record["step"], self.condition
        if self.is_better(record):
            self.best, self.best_step, self.worse = loss, step, 0
        else:
            self.worse += 1
        if condition is not None:
            condition.check(record)
        if step == 0:
            self.worse = 0
        elif condition is not None and condition.holds(record):
            return f"{condition.column} is {record[condition.column]:.4g}, {condition.sign} {condition.bound:g}"
        elif self.patience and self.worse >= self.patience:
            records = "record" if self.patience == 1 else f"{self.patience} records"
            return f"no better {BEST} in the last {records} than {self.best:.4g} at step {self.best_step}"
        return ""


def reason_of(stop_when: str, patience: int, records: Iterable[Mapping[str, Any]]) -> str:
    """Why a training with these records has ended by its rule; "" if it has not."""
    rule = Stopping(stop_when, patience)
    return next(filter(None, map(rule.reason, records)), "") if stop_when or patience else ""


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
