"""The step size that a model takes at each position, compared with the best one there: writes position_steps.json.

python -m analysis.position_steps --run DIR [--tasks N]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.lab import cli
from icl_lab.lab.flag_types import TASKS

BY_POSITION = ("predicted", "predicted_se", "regressed", "regressed_se", "differentiated")


def add_flags(parser: cli.Parser) -> None:
    """How many tasks."""
    parser.add_argument("--tasks", type=TASKS, help="tasks, drawn as the test set is, which is taken if not given")


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each position of a stored run's contexts, then how well predictions and step sizes are explained."""
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.analysis.measures.position_steps import write

    return _rows(write(load_run(run), flags.tasks))


def _rows(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    positions = range(len(values["predicted"]))
    rows = [{"position": place + 1} | {name: values[name][place] for name in BY_POSITION} for place in positions]
    single = {name: value for name, value in values.items() if name not in BY_POSITION}
    return [*rows, *({name: "not defined" if value is None else value} for name, value in single.items())]


COMMAND = Command(
    "position_steps",
    "Reads the step size that a model takes at each position, and compares it with the best one there.",
    measure,
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
