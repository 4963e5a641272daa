"""Compares a decoder with ridge and dMMSE, on tasks of its pool and on fresh ones.

python -m analysis.task_diversity --run DIR

Errors are those of noiseless labels w.x, squared, averaged over sequences and the K predictions and divided by D; Delta
is the same of two predictors' difference. Raventos et al. 2023, Eq. 4 and App. B; Carroll et al. 2025, Sec. 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.analysis.transience import verdict
from icl_lab.families.diversity.task import distance, make_eval_set, predictions_of, sequences_of_test
from icl_lab.src.statistics import mean_and_error, not_defined, with_error

RIDGE_DELTA = 0.06  # of a model of infinitely many tasks: at most so far from ridge, it is ridge
NOTHING = "nothing to compare with"  # the verdict without ridge, or where dMMSE does not differ from it


def measure_test_set(loaded: LoadedRun) -> dict[str, Any]:
    """Losses and Deltas on the test set, with standard errors over sequences, and which predictor the model is.

    Those of an exact predictor that is not defined are null, with the reason.
    """
    config, dim = loaded.config, loaded.config.data.dim
    metrics: dict[str, Any] = {"tasks": config.test_tasks}
    for prefix, batch in sequences_of_test(config).items():
        eval_set = make_eval_set(config, batch)
        tf = predictions_of(loaded.model, loaded.params, batch)
        for name, values in {"tf": tf, **eval_set.references, "zero": np.full_like(tf, config.data.y_mean)}.items():
            errors = np.mean((values - eval_set.targets) ** 2, axis=1) / dim
            metrics |= with_error(f"{prefix}_{name}_loss", mean_and_error(errors))
            if name in eval_set.references:
                apart = np.mean((tf - values) ** 2, axis=1) / dim
                metrics |= with_error(f"{prefix}_delta_{name}", mean_and_error(apart))
        if {"ridge", "dmmse"} <= set(eval_set.references):
            metrics[f"{prefix}_apart"] = distance(eval_set.references["ridge"], eval_set.references["dmmse"], dim)
        for name, reason in eval_set.undefined.items():
            metrics |= not_defined(f"{prefix}_{name}_loss", reason) | not_defined(f"{prefix}_delta_{name}", reason)
    return metrics | {"verdict": verdict_of(metrics)}


def verdict_of(metrics: Mapping[str, float]) -> str:
    """Whether a model is dmmse, ridge, or between; of an infinite pool it is ridge at a Delta of at most .06."""
    names = ("id_delta_dmmse", "id_apart", "ood_delta_ridge", "ood_apart")
    if {"id_apart", "ood_apart"} <= set(metrics):
        deltas = [metrics[name] for name in names]
        alike = min(metrics["id_apart"], metrics["ood_apart"]) == 0
        return NOTHING if alike or not np.isfinite(deltas).all() else verdict(*deltas)
    if metrics.get("ood_delta_ridge") is None:
        return NOTHING
    return "ridge" if metrics["ood_delta_ridge"] <= RIDGE_DELTA else "between"


COMMAND = Command(
    "task_diversity",
    "Compares a decoder with ridge and dMMSE, on tasks of its pool and on fresh ones.",
    lambda run, flags: measure_test_set(load_run(run)),
)

if __name__ == "__main__":
    COMMAND.launch()
