"""The parts of table columns: look-ups in a finished run's files, and arithmetic that propagates missing values.

Non-finite values are null in a run's files, and empty in its row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Results = Mapping[str, Any]

# of the columns that every table has, or several families
MEANINGS = {
    "exp": "the run: its directory below `--runs-dir`",
    "model": "the model",
    "seed": "seed of data and initialisation",
    "status": "status of the run: planned, running, done, stopped, diverged, failed",
    "steps": "training steps",
    "num_layers": "layers",
    "trained": "whether the run trained, by its family's criterion: true, false, or empty where that is not defined",
    "not_defined": "which numbers are not defined, and why",
    "test_mse": "mean squared error on the test set",
    "test_loss": "loss on the test set: half the mean squared error, or cross-entropy where symbols are predicted",
    "*_se": "standard error of the column it is named after",
    "gd_mse": "`test_mse` of gradient descent",
    "test_gd_loss": "`test_loss` of gradient descent",
    "test_ridge_loss": "`test_loss` of ridge regression",
    "results_version": "version of the numbers",
    "runs_dir": "`--runs-dir`, relative to the table",
    "measured_params": "of a run that also keeps its best parameters: which ones the row's numbers are of, `last`",
    "measured_step": "the step of these parameters",
    "best_step": "the step of the record with the lowest `eval_loss`, whose parameters are kept too",
    "best_eval_loss": "`eval_loss` of that record",
    "bitwise": "false if the run was resumed under other conditions, true if it finished and never was, else empty",
    "kernel": "what computed the run's gradients, `xla` or `native` with source, compiler, lanes; where rows differ",
}

LAST = "last"  # the parameters at the end of a run, from which all its numbers are
OF_A_TRAINING = ("model", "seed", "steps")  # columns that two tests of one training share, besides its contexts


def at(*path: Any) -> Callable[[Results], Any]:
    """The value at a path of keys and indices."""

    def value(results: Results) -> Any:
        inside: Any = results
        for key in path:
            inside = inside[key]
        return inside

    return value


# of a run that keeps its best parameters too: whose its row's numbers are, and where the best parameters are
WHOSE: Mapping[str, Callable[[Results], Any]] = {
    "measured_params": lambda results: LAST,
    "measured_step": at("num_steps"),
    "best_step": at("best", "step"),
    "best_eval_loss": at("best", "eval_loss"),
}


def if_there(*path: Any) -> Callable[[Results], Any]:
    """The value at a path of keys; None where files of an earlier version lack it."""

    def value(results: Results) -> Any:
        inside: Any = results
        for key in path:
            if key not in inside:
                return None
            inside = inside[key]
        return inside

    return value


def headline(*names: str) -> dict[str, Callable[[Results], Any]]:
    """Numbers on the test set, by their names."""
    return {name: at("headline", name) for name in names}


def fields(*keys: str) -> dict[str, Callable[[Any], Any]]:
    """Fields of a config, by the last part of their dotted keys."""
    return {key.rpartition(".")[2]: attrgetter(key) for key in keys}


def over(section: str, one: str, other: str) -> Callable[[Any, Results], float | None]:
    """Of a config and a summary: a number of a section over another one there."""
    return lambda config, summary: ratio(summary[section][one], summary[section][other])


def doubled(*path: Any) -> Callable[[Results], float | None]:
    """Twice the value at a path: the mean squared error of a loss."""
    return scaled(2.0, *path)


def halved(*path: Any) -> Callable[[Results], float | None]:
    """Half the value at a path: the loss of a mean squared error."""
    return scaled(0.5, *path)


def scaled(factor: float, *path: Any) -> Callable[[Results], float | None]:
    """So many times the value at a path."""
    find = at(*path)

    def value(results: Results) -> float | None:
        number = find(results)
        return None if number is None else factor * number

    return value


def ratio(value: float | None, of: float | None) -> float | None:
    """A ratio of finite numbers, where there is one."""
    if value is None or of is None or not (math.isfinite(value) and math.isfinite(of)):
        return None
    return value / of if of else None


def mean(values: Sequence[float | None]) -> float | None:
    """The mean, unless a value is missing."""
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if len(known) == len(values) else None


def has_trained(table: pd.DataFrame) -> pd.Series:
    """Which rows of a table are of runs that trained; a row without a verdict is not one.

    A run that was trained on some contexts and tested on others is judged by the same training's test on its own
    contexts, where the table has that: what a change of contexts costs is no lack of training.
    """
    own = (table.get("trained", table["model"]).astype(str).str.lower() == "true").astype(float)
    trainings = [table[name].astype(str) for name in table if name in OF_A_TRAINING or name.startswith("train_")]
    on_own_contexts = own.where(_as_trained(table)).groupby(trainings).transform("min")
    return on_own_contexts.fillna(own) == 1


def _as_trained(table: pd.DataFrame) -> pd.Series:
    """Which rows are tests on the contexts of the training."""
    same = table["model"].notna()
    for name in table:
        if name.startswith("train_") and (tested := name.replace("train_", "eval_", 1)) in table:
            same &= table[name].astype(str) == table[tested].astype(str)
    return same


def trained(results: Results) -> str | None:
    """Whether a run has trained, as a word."""
    met = results["trained"]["met"]
    return None if met is None else str(met).lower()
