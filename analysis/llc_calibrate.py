"""Which eps, nbeta and gamma give an LLC that can be trusted? A grid on several checkpoints, with a recommendation.

python -m analysis.llc_calibrate --run DIR --steps early,middle,last

Writes analysis/llc_calibration.csv and .json, and figs/llc_calibration.png: heat maps of the LLC, saturation, trend and
acceptance. The cell to use is printed with its reason, or why no cell is healthy, and whether the order of the
checkpoints depends on the setting.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.analysis.llc import FLAGS, STEP, help_of
from icl_lab.analysis.measures.llc_settings import TYPES, Settings
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, shown

GRID = ("eps", "nbeta", "gamma")  # settings that the grid is of
WORDS = ("early", "middle", "last")
SHORT = {"chains": 4, "burn_in": 150, "draws": 300}  # of a cell, where no other number is given


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Estimates the grid, and draws it."""
    from icl_lab.analysis.measures.llc_calibration import calibrate
    from icl_lab.plots.llc_calibration import draw_calibration

    advice = calibrate(run, flags.steps, _settings(flags), *(getattr(flags, name) for name in GRID))
    draw_calibration(run)
    return {"recommended": advice.reason if advice.cell else "none: " + advice.reason, "order": advice.order}


def _settings(flags: argparse.Namespace) -> Settings:
    given = {name: getattr(flags, name) for name in FLAGS if name not in GRID}
    return Settings(**SHORT | {name: value for name, value in given.items() if value is not None})


def _add(parser: cli.Parser) -> None:
    parser.needs("blackjax")
    cli.add_list(parser, "--steps", _checkpoint, WORDS, f"checkpoints: {', '.join(WORDS)} or steps")
    defaults = {"eps": "fractions of the stability bound", "nbeta": "10, 133.3, 1000", "gamma": "1, 10, 100 x nbeta"}
    for name, text in defaults.items():
        cli.add_list(parser, f"--{name}", POSITIVE, (), f"{FLAGS[name]} (default: {text})")
    for name in FLAGS:
        if name not in GRID:
            text = help_of(name, SHORT.get(name))
            parser.add_argument(f"--{name}", type=TYPES.get(name, str), metavar="VALUE", help=text)


def _checkpoint(text: str) -> str:
    """One of the words, or a step in figures."""
    if text in WORDS or re.match(r"[-+.\d]", text):
        return text if text in WORDS else str(STEP(text))
    raise argparse.ArgumentTypeError(f"{shown(text)} is none of {', '.join(WORDS)} and no step")


def _check(flags: argparse.Namespace) -> None:
    _settings(flags)


COMMAND = Command(
    "llc_calibrate", "Finds settings for the local learning coefficient that can be trusted.", measure, _add, _check
)

if __name__ == "__main__":
    COMMAND.launch()
