"""How far is a transformer from each algorithm, and they from one another? Writes algorithm_distance.csv and figures.

python -m analysis.algorithm_distance --run DIR [--snapshots]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.lab import cli
from icl_lab.store.readers import is_number

NOT_DEFINED = "not defined"


def add_flags(parser: cli.Parser) -> None:
    """Whether training is followed too."""
    parser.add_argument(
        "--snapshots",
        action="store_true",
        help="measure the transformer at every snapshot of its training too (--config.snapshots=true keeps them)",
    )


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures a stored run and draws the matrix; gives the transformer's part of it, robustness and the turn."""
    from icl_lab.analysis.compared_run import load_compared
    from icl_lab.analysis.measures.algorithm_distance import FINAL, write
    from icl_lab.analysis.measures.turn import turn_in
    from icl_lab.plots.algorithm_distance import draw_algorithm_distance

    rows = write(load_compared(run), flags.snapshots)
    draw_algorithm_distance(run)
    final = [row for row in rows if row["step"] == FINAL]
    shown = [_shown(name, final) for name in dict.fromkeys(row["row"] for row in final)]
    turned = turn_in(rows) if flags.snapshots else None
    if turned is not None:
        shown.append({"turn": "gd to gd_plus_plus", "step": turned.step, "half_width": turned.half_width})
    return shown


def _shown(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A line of what is printed: losses, also with replaced labels, and the transformer's distances."""
    reason = next((row["reason"] for row in rows if row["row"] == name and row["reason"]), None)
    if reason:
        return {"algorithm": name, NOT_DEFINED: reason}
    algorithm_rows = [row for row in rows if (row["row"], row["column"]) in ((name, ""), ("tf", name))]
    values = {row["measure"]: row["value"] for row in algorithm_rows if name != "tf" or not row["column"]}
    return {"algorithm": name} | {key: value if is_number(value) else NOT_DEFINED for key, value in values.items()}


COMMAND = Command(
    "algorithm_distance",
    "Measures how far a run and the algorithms are from one another: cosines, predictions, losses, replaced labels.",
    measure,
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
