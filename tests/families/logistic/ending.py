"""What a run of the family leaves: its logits, its numbers on the test set; and its summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icl_lab.analysis.measures.test_set import mean_and_error
from icl_lab.runners.finish import Ending, Wanted
from icl_lab.runners.summary import header, row
from icl_lab.src.batch import Batch
from icl_lab.src.model import Model
from icl_lab.store import layout
from icl_lab.store.atomic import write_npz

from .config import LogisticConfig
from .experiment import LOG_2, make_test_batch


def finish(
    run: Path, config: LogisticConfig, model: Model, params: Any, batch: Batch, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    write_npz(run / layout.PREDICTIONS, {"logits": np.asarray(jax.jit(model.predict)(params, batch))})
    yield {}
    yield {"headline": headline(config, model, params)}


def headline(config: LogisticConfig, model: Model, params: Any) -> dict[str, Any]:
    """The loss on the test set, that of saying 1/2, that of who knows w, and the share of labels that are right."""
    batch = make_test_batch(config)
    logits = np.asarray(jax.jit(model.predict)(params, batch), np.float64)
    x, y, w = (np.asarray(part, np.float64) for part in (batch.x_query, batch.y_query, batch.w))
    loss, loss_se = mean_and_error(cross_entropies(logits, y))
    teacher, teacher_se = mean_and_error(cross_entropies((x * w).sum(1), y))
    return {
        **{"tasks": config.test_tasks, "loss": loss, "loss_se": loss_se},
        **{"constant_loss": LOG_2, "constant_loss_se": 0.0, "teacher_loss": teacher, "teacher_loss_se": teacher_se},
        "accuracy": float(((logits > 0) == (y == 1)).mean()),
    }


def cross_entropies(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """log(1 + exp(z)) - y z."""
    return np.logaddexp(0, logits) - labels * logits


def summary_lines(summary: Mapping[str, Any], run: Path, config: LogisticConfig) -> list[str]:
    """The losses of the model and of its baselines."""
    numbers = summary["headline"]
    rows = {"trained transformer": "loss", "teacher, who knows w": "teacher_loss", "1/2": "constant_loss"}
    lines = [row(label, numbers, name) for label, name in rows.items()]
    return [header(numbers, "cross-entropy, nats"), *lines, f"  labels that are right: {numbers['accuracy']:.3f}"]


ENDING = Ending(finish, summary_lines)
