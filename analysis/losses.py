"""Measures the loss on the evaluation set, at the end and at every snapshot of the training.

python -m analysis.losses --run DIR

With its standard error over tasks, as the model's own `losses` have it: a row a snapshot, that of the end alone where
none were kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.task import task_of
from icl_lab.src.model import Batch, Model, Params
from icl_lab.src.statistics import mean_and_error, with_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv
from icl_lab.store.metrics import last_step


@partial(jax.jit, static_argnums=0)
def _losses(model: Model, params: Params, batch: Batch) -> Array:
    return model.losses(params, batch)


def loss(loaded: LoadedRun) -> dict[str, float]:
    """loss and loss_se: mean over the tasks of the evaluation set, and its standard error."""
    unit = task_of(loaded.config).loss_unit(loaded.config)
    losses = unit * np.asarray(_losses(loaded.model, loaded.params, loaded.batch), np.float64)
    return with_error("loss", mean_and_error(losses))


def over_training(loaded: LoadedRun) -> Iterator[dict[str, Any]]:
    """step, loss and loss_se of each snapshot, or of the end alone where the run kept none."""
    if not loaded.config.snapshots:
        yield {"step": last_step(loaded.run, loaded.config), **loss(loaded)}
        return
    for step, then in loaded.checkpoints():
        yield {"step": step, **loss(then)}


def write(loaded: LoadedRun) -> list[dict[str, Any]]:
    """Writes losses.csv."""
    rows = list(over_training(loaded))
    write_csv(loaded.run / layout.LOSSES, rows)
    return rows


COMMAND = Command(
    "losses",
    "Measures the loss on the evaluation set over training, with standard errors.",
    lambda run, flags: write(load_run(run)),
)

if __name__ == "__main__":
    COMMAND.launch()
