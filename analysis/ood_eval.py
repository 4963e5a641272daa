"""Evaluates a run, and gradient descent, on inputs of other scales.

python -m analysis.ood_eval --run DIR --alphas 1 1.5 2 3 [--keep_labels]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import ComparedRun, load_compared
from icl_lab.analysis.paired_losses import half_squared_errors
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.outputs import ALPHAS
from icl_lab.families.regression.task import make_test_batch, make_test_batches
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, finite_results, require
from icl_lab.src.data import scale_inputs
from icl_lab.src.data_config import DataConfig
from icl_lab.src.statistics import mean_and_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv


def scaled_batches(config: RegressionConfig, alphas: Sequence[float], keep_labels: bool) -> Sequence[Batch]:
    """The test tasks with inputs times each alpha.

    The labels follow the scaled inputs (same teacher, noise as before), or stay as they were with `keep_labels`.
    """
    if keep_labels:
        return [scale_inputs(make_test_batch(config), alpha) for alpha in alphas]
    require(not config.data.file, "labels of contexts from a file do not follow scaled inputs; give --keep_labels")
    return make_test_batches(config, [_scaled(config.data, alpha) for alpha in alphas])


def _scaled(data: DataConfig, alpha: float) -> DataConfig:
    """The distribution with inputs times alpha; `ConfigError` names alpha where float32 does not hold its labels."""
    try:
        return replace(data, input_range=alpha * data.input_range)
    except ConfigError as error:
        raise ConfigError(f"alphas is {alpha:g}, at which {error}") from None


def ood_curve(loaded: ComparedRun, alphas: list[float], keep_labels: bool = False) -> list[dict[str, Any]]:
    """One row for each alpha: mean squared errors (without the half) and their standard errors, and whose labels."""
    rows = []
    predictors = {"tf": loaded.predict, "gd": loaded.gd.predict}
    for alpha, batch in zip(alphas, scaled_batches(loaded.config, alphas, keep_labels), strict=True):
        errors = half_squared_errors(predictors, batch)
        tf, tf_error = mean_and_error(2 * errors["tf"])
        gd, gd_error = mean_and_error(2 * errors["gd"])
        row = {"alpha": alpha, "test_mse": tf, "gd_test_mse": gd, "test_mse_se": tf_error, "gd_test_mse_se": gd_error}
        rows.append(row | {"labels": "kept" if keep_labels else "scaled"})
    return rows


def write(loaded: ComparedRun, alphas: list[float], keep_labels: bool = False) -> list[dict[str, Any]]:
    """Writes ood.csv."""
    rows = ood_curve(loaded, alphas, keep_labels)
    write_csv(loaded.run / layout.OOD, rows)
    return rows


def add_flags(parser: cli.Parser) -> None:
    """The scales, and whose labels."""
    cli.add_list(parser, "--alphas", POSITIVE, ALPHAS, "input scales")
    parser.add_argument("--keep_labels", action="store_true", help="keep the labels of the unscaled inputs")


@np.errstate(over="ignore", invalid="ignore")  # non-finite results are rejected
def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Evaluates a stored run; `ConfigError` if labels or results at one of the scales are non-finite."""
    loaded = load_compared(run)
    rows = ood_curve(loaded, flags.alphas, flags.keep_labels)
    for alpha, row in zip(flags.alphas, rows, strict=True):
        finite_results("alphas", alpha, [row])
    write_csv(run / layout.OOD, rows)
    return rows


COMMAND = Command("ood_eval", "Evaluates a run on inputs of other scales.", measure, add_flags)

if __name__ == "__main__":
    COMMAND.launch()
