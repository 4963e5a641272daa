"""A run of linear regression and the gradient descent that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, find_gd


@dataclass(frozen=True, eq=False)
class ComparedRun(LoadedRun):
    """A run of linear regression, and its gradient descent."""

    gd: GradientDescent


def load_compared(directory: str | Path, eta: float | None = None) -> ComparedRun:
    """`load_run` of a run of linear regression, and its gradient descent as `find_gd` finds it."""
    loaded = load_run(directory).of_family(RegressionConfig.family)
    gd = find_gd(loaded.config, eta)
    return ComparedRun(loaded.run, loaded.config, loaded.model, loaded.params, loaded.batch, gd)


def compared(loaded: LoadedRun) -> ComparedRun:
    """A run whose evaluation set is made already, with the gradient descent of that."""
    parts = (loaded.run, loaded.config, loaded.model, loaded.params, loaded.batch)
    return ComparedRun(*parts, loaded.eval_set.gd, eval_set=loaded.eval_set)
