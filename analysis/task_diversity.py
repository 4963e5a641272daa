"""A decoder compared with the exact predictors on the test set: tasks of its pool, and fresh tasks.

python -m analysis.task_diversity --run DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """The test-set losses of a stored run, measured again."""
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.analysis.measures.task_diversity import measure_test_set

    return measure_test_set(load_run(run))


COMMAND = Command(
    "task_diversity",
    "Compares a decoder with ridge and dMMSE, on tasks of its pool and on fresh ones.",
    measure,
)

if __name__ == "__main__":
    COMMAND.launch()
