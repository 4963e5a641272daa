"""A decoder compared with the exact predictors, in distribution (tasks of its pool) and out of it (fresh tasks).

Errors are those of noiseless labels w.x, squared, averaged over sequences and the K predictions and divided by D; Delta
is the same of two predictors' difference. Raventos et al. 2023, Eq. 4 and App. B; Carroll et al. 2025, Sec. 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from analysis.loaded_run import LoadedRun
from analysis.measures.test_set import mean_and_error
from analysis.measures.transience import verdict
from families.diversity import (
    distance,
    make_eval_set,
    make_test_sequences,
    predictions_of,
    why_no_ridge,
)

RIDGE_DELTA = 0.06  # of a model of infinitely many tasks: at most so far from ridge, it is ridge


def measure_test_set(loaded: LoadedRun) -> dict[str, Any]:
    """Losses and Deltas on the test set, with standard errors over sequences, and which predictor the model is."""
    config, dim = loaded.config, loaded.config.data.dim
    measures: dict[str, Any] = {"tasks": config.test_tasks}
    reason = why_no_ridge(config.data)
    for prefix, batch in zip(("id", "ood"), make_test_sequences(config), strict=True):
        eval_set = make_eval_set(config, batch)
        tf = predictions_of(loaded.model, loaded.params, batch)
        for name, values in {"tf": tf, **eval_set.references, "zero": np.zeros_like(tf)}.items():
            errors = np.mean((values - eval_set.targets) ** 2, axis=1) / dim
            measures[f"{prefix}_{name}_loss"], measures[f"{prefix}_{name}_loss_se"] = mean_and_error(errors)
            if name in eval_set.references:
                apart = np.mean((tf - values) ** 2, axis=1) / dim
                measures[f"{prefix}_delta_{name}"], measures[f"{prefix}_delta_{name}_se"] = mean_and_error(apart)
        if {"ridge", "dmmse"} <= set(eval_set.references):
            measures[f"{prefix}_apart"] = distance(eval_set.references["ridge"], eval_set.references["dmmse"], dim)
        for name in () if reason is None else (f"{prefix}_ridge_loss", f"{prefix}_delta_ridge"):
            measures |= {name: None, f"{name}_se": None, f"{name}_reason": reason}
    return measures | {"verdict": verdict_of(measures)}


def verdict_of(measures: Mapping[str, float]) -> str:
    """Whether a model is dmmse, ridge, or between; of an infinite pool it is ridge at a Delta of at most .06."""
    if "id_apart" in measures:
        names = ("id_delta_dmmse", "id_apart", "ood_delta_ridge", "ood_apart")
        return verdict(*(measures[name] for name in names))
    if measures.get("ood_delta_ridge") is None:
        return "nothing to compare with"
    return "ridge" if measures["ood_delta_ridge"] <= RIDGE_DELTA else "between"
