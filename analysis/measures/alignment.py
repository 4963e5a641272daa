"""Is the transformer gradient descent? Predictions and sensitivities of the two on the same tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.compared import ComparedRun
from families.regression import LOGGED, compare_with_gd
from src import conventions
from store import layout
from store.atomic import write_csv, write_json
from store.rundir import read_metrics

CURVE = ("step", "preds_diff", "model_diff", "model_cos", "tf_loss", "gd_loss")


def alignment(subject: ComparedRun) -> dict[str, Any]:
    """The transformer against gradient descent on the analysis batch."""
    step_size = np.float32(subject.gd.step_size)
    values = compare_with_gd(subject.model, subject.gd.steps, subject.params, step_size, subject.batch)
    return {
        **{name: float(value) for name, value in values.items()},
        "eta": float(subject.gd.step_size),
        "eta_source": subject.gd.source,
        "gd_steps": subject.gd.steps,
        "tasks": len(subject.batch.y_query),
        "loss_convention": conventions.LOSS,
    }


def write(subject: ComparedRun) -> dict[str, Any]:
    """Writes alignment.json, and the curve over training from the metrics that the run logged."""
    return write_values(subject, alignment(subject))


def write_values(subject: ComparedRun, values: dict[str, Any]) -> dict[str, Any]:
    """`write` of what `alignment` gave."""
    records = [record | {"tf_loss": record["test_loss"]} for record in read_metrics(subject.run, LOGGED)]
    write_json(subject.run / layout.ALIGNMENT, values)
    write_csv(subject.run / layout.ALIGNMENT_CURVE, [{name: record[name] for name in CURVE} for record in records])
    return values
