"""Does the curve of the local learning coefficient measure more than the loss? At the published setting, hardly.

python -m analysis.llc_saturation --run DIR --checkpoints all

Estimates the checkpoints at the published setting and at the default one, prints the slope of the LLC in the loss
(-nbeta where the chains are saturated), and draws figs/llc_saturation.png. docs/llc.md says what saturation is.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.analysis.llc import FLAGS, SELECTIONS, selection
from icl_lab.analysis.measures.llc_settings import TYPES, Settings
from icl_lab.lab import cli

SHARED = ("batch_size", "tasks", "chains", "burn_in", "draws", "seed")  # settings that both have in common


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Estimates both settings and draws them; gives a row for each."""
    from icl_lab.analysis.measures.llc_saturation import compare_settings, line
    from icl_lab.plots.llc_saturation import draw_saturation

    rows = compare_settings(run, _given(flags), flags.checkpoints)
    lines = [line(name, setting_rows) for name, setting_rows in rows.items()]
    draw_saturation(run, rows)
    return [fit._asdict() for fit in lines]


def _given(flags: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in SHARED if (value := getattr(flags, name)) is not None}


def _add(parser: cli.Parser) -> None:
    parser.needs("blackjax")
    parser.add_argument(
        "--checkpoints", type=selection, default="all", metavar="WHICH", help=f"which: {SELECTIONS} (default: all)"
    )
    for name in SHARED:
        parser.add_argument(f"--{name}", type=TYPES[name], help=FLAGS[name])


def _check(flags: argparse.Namespace) -> None:
    Settings(**_given(flags))


COMMAND = Command(
    "llc_saturation", "Compares the LLC over training with the loss, at the published setting.", measure, _add, _check
)

if __name__ == "__main__":
    COMMAND.launch()
