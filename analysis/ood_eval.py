"""Inputs of other scales than in training: writes ood.csv.

python -m analysis.ood_eval --run DIR --alphas 1 1.5 2 3 [--keep_labels]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.families.regression.outputs import ALPHAS
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE
from icl_lab.src.checks import finite_results


def add_flags(parser: cli.Parser) -> None:
    """The scales, and whose labels."""
    cli.add_list(parser, "--alphas", POSITIVE, ALPHAS, "input scales")
    parser.add_argument("--keep_labels", action="store_true", help="keep the labels of the unscaled inputs")


@np.errstate(over="ignore", invalid="ignore")  # non-finite results are rejected
def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Evaluates a stored run; `ConfigError` if labels or results at one of the scales are non-finite."""
    from icl_lab.analysis.compared_run import load_compared
    from icl_lab.analysis.measures.ood_eval import ood_curve, write_rows

    loaded = load_compared(run)
    rows = ood_curve(loaded, flags.alphas, flags.keep_labels)
    for alpha, row in zip(flags.alphas, rows, strict=True):
        finite_results("alphas", alpha, [row])
    return write_rows(loaded, rows)


COMMAND = Command("ood_eval", "Evaluates a run on inputs of other scales.", measure, add_flags)

if __name__ == "__main__":
    COMMAND.launch()
