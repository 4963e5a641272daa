"""Is the transformer gradient descent? Writes alignment.json, and the curve over training, alignment.csv.

python -m analysis.alignment --run DIR [--eta X]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import cli
from analysis.command import Command
from src.checks import LARGEST, finite_results, require


def add_flags(parser: cli.Parser) -> None:
    """The step size of gradient descent."""
    parser.add_argument("--eta", type=float, help="step size eta/N; the best on separate tasks if not given")


def check(flags: argparse.Namespace) -> None:
    """`ConfigError` for an invalid step size."""
    require(flags.eta is None or 0 < flags.eta <= LARGEST, f"eta is {flags.eta}; it must be a finite number above 0")


@np.errstate(over="ignore", invalid="ignore")  # non-finite results are rejected
def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Compares a stored run with gradient descent; `ConfigError` if the step size gives non-finite values."""
    from analysis.compared_run import load_compared
    from analysis.measures.alignment import alignment, write_values

    loaded = load_compared(run, flags.eta)
    values = alignment(loaded)
    if flags.eta is not None:
        finite_results("eta", flags.eta, [values])
    return write_values(loaded, values)


COMMAND = Command(
    "alignment",
    "Compares a run's transformer with gradient descent: predictions and sensitivities on the same tasks.",
    measure,
    add_flags,
    check,
)

if __name__ == "__main__":
    COMMAND.launch()
