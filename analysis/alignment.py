"""Is the transformer gradient descent? Predictions and sensitivities of the two on the same tasks.

python -m analysis.alignment --run DIR [--eta X]

Writes alignment.json, and the curve over training, alignment.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import ComparedRun, load_compared
from icl_lab.families.regression.task import LOGGED, compare_with_gd
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE
from icl_lab.src import loss_conventions
from icl_lab.src.checks import finite_results
from icl_lab.store import layout
from icl_lab.store.atomic import csv_blocks, write_blocks, write_json
from icl_lab.store.metrics import metrics

CURVE = ("step", "preds_diff", "model_diff", "model_cos", "tf_loss", "gd_loss")


def alignment(loaded: ComparedRun) -> dict[str, Any]:
    """The transformer compared with gradient descent on the analysis batch."""
    step_size = np.float32(loaded.gd.step_size)
    values = compare_with_gd(loaded.model, loaded.gd.steps, loaded.params, step_size, loaded.batch, loaded.gd.units)
    return {
        **{name: float(value) for name, value in values.items()},
        "eta": float(loaded.gd.step_size),
        "eta_source": loaded.gd.source,
        "gd_steps": loaded.gd.steps,
        "tasks": len(loaded.batch.y_query),
        "loss_convention": loss_conventions.LOSS,
    }


def write(loaded: ComparedRun, values: dict[str, Any] | None = None) -> dict[str, Any]:
    """Writes what `alignment` gives, or gave, and the curve over training from the metrics that the run logged."""
    values = alignment(loaded) if values is None else values
    logged = {"tf_loss": "eval_loss", **{name: f"eval_{name}" for name in LOGGED}}
    records = (
        {"step": record["step"]} | {name: record[of] for name, of in logged.items()}
        for record in metrics(loaded.run, [*logged.values()])
    )
    write_blocks(loaded.run / layout.ALIGNMENT_CURVE, csv_blocks(records, CURVE))
    write_json(loaded.run / layout.ALIGNMENT, values)
    return values


def add_flags(parser: cli.Parser) -> None:
    """The step size of gradient descent."""
    parser.add_argument("--eta", type=POSITIVE, help="step size eta/N; the best on separate tasks if not given")


@np.errstate(over="ignore", invalid="ignore")  # non-finite results are rejected
def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Compares a stored run with gradient descent; `ConfigError` if the step size gives non-finite values."""
    loaded = load_compared(run, flags.eta)
    values = alignment(loaded)
    if flags.eta is not None:
        finite_results("eta", flags.eta, [values])
    return write(loaded, values)


COMMAND = Command(
    "alignment",
    "Compares a run's transformer with gradient descent: predictions and sensitivities on the same tasks.",
    measure,
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
