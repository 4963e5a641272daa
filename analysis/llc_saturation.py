"""Tests whether the LLC over training measures more than the loss; at the published setting, hardly.

python -m analysis.llc_saturation --run DIR --checkpoints all

Where the chains are saturated their draws have the same loss at every checkpoint, L_draw. Then

    LLC = nbeta (L_draw - L(w*)),

a line of slope -nbeta in the loss: the curve tells no more than the loss. The command estimates the checkpoints at the
published setting and at the default one, prints the slope of the LLC in the loss, and draws figs/llc_saturation.png.
docs/llc/reference.md says what saturation is.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.llc.checkpoints import estimate_run
from icl_lab.analysis.llc.settings import FLAGS, SELECTIONS, SETTINGS, TYPES, Settings, selection
from icl_lab.lab import cli
from icl_lab.plots.llc import draw_saturation
from icl_lab.src.checks import require
from icl_lab.store.llc_rows import is_usable

PUBLISHED = SETTINGS["published"]
LEAST = 3  # checkpoints that say something of a line
SHARED = ("batch_size", "tasks", "chains", "burn_in", "draws", "seed")  # settings that both have in common


class Line(NamedTuple):
    """The LLC of a setting as a line in the loss L(w*), by least squares over checkpoints.

    slope and slope / -nbeta, which is 1 where all draws have one loss; correlation of LLC and loss; mean saturation,
    where L(w*) is below the null predictor's loss; usable: of how many checkpoints.
    """

    setting: str
    eps: float
    nbeta: float
    gamma: float
    slope: float
    slope_over_minus_nbeta: float
    correlation: float
    saturation: float
    usable: int
    checkpoints: int


def settings_of(given: Mapping[str, Any]) -> dict[str, Settings]:
    """The published setting and the default one, with what is given for both: chains, draws, batch_size."""
    default = Settings(**given)
    return {"published": replace(default, **PUBLISHED), "default": default}


def compare_settings(run: Path, given: Mapping[str, Any], selection: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the selected checkpoints at both settings; those that llc.csv has are not estimated again."""
    return {name: list(estimate_run(run, settings, selection)) for name, settings in settings_of(given).items()}


def has_line(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether three checkpoints or more have an estimate; the chains of others have diverged."""
    return len(_estimated(rows)) >= LEAST


def _estimated(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if np.isfinite(row["llc"])]


def line(name: str, rows: Sequence[Mapping[str, Any]]) -> Line:
    """The line of a setting's rows; `ConfigError` for fewer than three checkpoints with an estimate."""
    kept = _estimated(rows)
    require(has_line(rows), f"a line needs {LEAST} checkpoints with an estimate, but {name} has {len(kept)}")
    losses, llcs = (np.array([row[column] for row in kept], float) for column in ("loss", "llc"))
    require(bool(np.ptp(losses) > 0), "all checkpoints have the same loss, so no line can be fitted")
    slope = float(np.polyfit(losses, llcs, 1)[0])
    eps, nbeta, gamma = (kept[0][column] for column in ("eps", "nbeta", "gamma"))
    return Line(
        name,
        eps,
        nbeta,
        gamma,
        slope,
        -slope / nbeta,
        float(np.corrcoef(losses, llcs)[0, 1]) if np.ptp(llcs) > 0 else 0.0,
        float(np.mean([value for row in kept if np.isfinite(value := row["saturation"])] or [np.nan])),
        sum(map(is_usable, rows)),
        len(rows),
    )


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Estimates both settings and draws them; gives a row for each."""
    rows = compare_settings(run, _given(flags), flags.checkpoints)
    lines = [line(name, setting_rows) for name, setting_rows in rows.items()]
    draw_saturation(run, rows)
    return [fit._asdict() for fit in lines]


def _given(flags: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in SHARED if (value := getattr(flags, name)) is not None}


def _add(parser: cli.Parser) -> None:
    parser.add_argument(
        "--checkpoints",
        type=selection,
        default="all",
        metavar="WHICH",
        help=f"checkpoints to use: {SELECTIONS} (default: all)",
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
