"""Is the transformer gradient descent? Writes alignment.json, and the curve over training, alignment.csv.

python -m analysis.alignment --run DIR [--eta X]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE
from icl_lab.src.checks import finite_results


def add_flags(parser: cli.Parser) -> None:
    """The step size of gradient descent."""
    parser.add_argument("--eta", type=POSITIVE, help="step size eta/N; the best on separate tasks if not given")


@np.errstate(over="ignore", invalid="ignore")  # non-finite results are rejected
def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Compares a stored run with gradient descent; `ConfigError` if the step size gives non-finite values."""
    from icl_lab.analysis.compared_run import load_compared
    from icl_lab.analysis.measures.alignment import alignment, write_values

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
)

if __name__ == "__main__":
    COMMAND.launch()
