"""The loss after every layer, and gradient descent's after as many steps on the same tasks: layerwise_metrics.json.

python -m analysis.layerwise --run DIR [--num_tasks 5000] [--layers L] [--damping .75] [--out FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, TASKS, Whole
from icl_lab.src.checks import finite_results
from icl_lab.store import layout, outputs
from icl_lab.store.atomic import json_bytes
from icl_lab.store.outputs import out_file

WRITER = "analysis.layerwise"
LAYERS = Whole(1, 100_000, "a loss of every task is kept after each")
SHOWN = (1, 2, 4, 8, 12, 24, 50)  # layers that are printed, and the last


def add_flags(parser: cli.Parser) -> None:
    """How many tasks and layers, the roll-out's damping, and where to write."""
    parser.add_argument("--num_tasks", type=TASKS, default=5000, help="tasks")
    parser.add_argument("--layers", type=LAYERS, help="layers (50 for one layer rolled out, else those of the stack)")
    parser.add_argument("--damping", type=POSITIVE, help="damping of a roll-out (.75)")
    parser.add_argument("--out", type=out_file, help=f"file to write ({layout.LAYERWISE} of the run)")


@np.errstate(over="ignore", invalid="ignore")  # non-finite medians are rejected
def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Writes layerwise_metrics.json, and gives a row for some of the layers.

    A roll-out may diverge on some tasks, and their mean with it; `ConfigError` if it does on half of them, at a damping
    that was given.
    """
    place = run / layout.LAYERWISE if flags.out is None else flags.out
    outputs.check([place], WRITER, run)
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.analysis.measures.layerwise import layerwise

    metrics = layerwise(load_run(run), flags.num_tasks, flags.layers, flags.damping)
    if flags.damping is not None:
        medians = zip(metrics["median"], metrics["gd"]["median"], strict=True)
        finite_results(
            "damping", flags.damping, [{"tf": transformer, "gd": descent} for transformer, descent in medians]
        )
    outputs.write({place: json_bytes(metrics)}, WRITER, run)
    return [_row(metrics, layer) for layer in range(1, metrics["layers"] + 1) if layer in (*SHOWN, metrics["layers"])]


def _row(metrics: Mapping[str, Any], layer: int) -> dict[str, Any]:
    """What is printed of a layer (from 1)."""
    names = ("mse", "sem", "median", "trimmed_mean", "unstable_share", "ratio_to_gd", "gd_steps_to_reach")
    return {"layer": layer} | {name: metrics[name][layer - 1] for name in names}


COMMAND = Command(
    "layerwise",
    "Measures the loss after every layer, and gradient descent's on the same tasks.",
    measure,
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
