"""The loss on the evaluation set, of a run of any family: at its end, and at every snapshot of its training.

python -m analysis.losses --run DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Mean and standard error over tasks, a row a snapshot; one row, that of the end, where none were kept."""
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.analysis.measures.losses import write

    return write(load_run(run))


COMMAND = Command("losses", "Measures the loss on the evaluation set over training, with standard errors.", measure)

if __name__ == "__main__":
    COMMAND.launch()
