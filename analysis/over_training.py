"""When does a model become gradient descent, GD++, or a copying layer? Writes over_training.csv, a row a snapshot.

python -m analysis.over_training --run DIR, of a run trained with --config.snapshots=true
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Compares a stored run at every snapshot of its training."""
    from icl_lab.analysis.compared_run import load_compared
    from icl_lab.analysis.measures.over_training import write

    return write(load_compared(run))


COMMAND = Command(
    "over_training",
    "Compares a run at every snapshot of its training with gradient descent, and GD++ where it has several steps.",
    measure,
)

if __name__ == "__main__":
    COMMAND.launch()
