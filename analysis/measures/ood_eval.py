"""Scaled inputs: the MSE of the transformer and of gradient descent on alpha x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from icl_lab.analysis.compared_run import ComparedRun
from icl_lab.analysis.measures.test_set import half_squared_errors
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_test_batch, make_test_batches
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
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
    return write_rows(loaded, ood_curve(loaded, alphas, keep_labels))


def write_rows(loaded: ComparedRun, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """`write` of what `ood_curve` gave."""
    write_csv(loaded.run / layout.OOD, rows)
    return rows
