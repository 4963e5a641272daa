"""The loss after every layer, and gradient descent's after as many steps on the same tasks: layerwise_metrics.json.

python -m analysis.layerwise --run DIR [--num_tasks 5000] [--layers L] [--damping .75] [--out FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import cli
from analysis.command import Command
from src.checks import LARGEST, finite_results, require
from store import layout, outputs
from store.atomic import json_bytes

WRITER = "analysis.layerwise"
SHOWN = (1, 2, 4, 8, 12, 24, 50)  # layers that are printed, and the last


def add_flags(parser: cli.Parser) -> None:
    """How many tasks and layers, the roll-out's damping, and where to write."""
    parser.add_argument("--num_tasks", type=int, default=5000, help="tasks")
    parser.add_argument("--layers", type=int, help="layers (50 for one layer rolled out, else those of the stack)")
    parser.add_argument("--damping", type=float, help="damping of a roll-out (.75)")
    parser.add_argument("--out", type=Path, help=f"file to write ({layout.LAYERWISE} of the run)")


def check(flags: argparse.Namespace) -> None:
    """`ConfigError` for flags that are invalid for every run."""
    require(flags.num_tasks >= 2, f"num_tasks is {flags.num_tasks}; it must be a whole number of at least 2")
    require(flags.layers is None or flags.layers >= 1, f"layers is {flags.layers}; it must be at least 1")
    damping = flags.damping
    require(damping is None or 0 < damping <= LARGEST, f"damping is {damping}; it must be a finite number above 0")


@np.errstate(over="ignore", invalid="ignore")  # non-finite medians are rejected
def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Writes layerwise_metrics.json, and gives a row for some of the layers.

    A roll-out may diverge on some tasks, and their mean with it; `ConfigError` if it does on half of them, at a damping
    that was given.
    """
    place = run / layout.LAYERWISE if flags.out is None else flags.out
    outputs.check([place], WRITER, run)
    from analysis.loaded_run import load_run
    from analysis.measures.layerwise import layerwise

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
    check,
)

if __name__ == "__main__":
    COMMAND.launch()
