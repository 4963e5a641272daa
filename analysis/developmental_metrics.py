"""How does a model develop? Its behaviour and structure at every snapshot of its training, in one table.

python -m analysis.developmental_metrics --run DIR [--hessian], of a run trained with --config.snapshots=true

Writes analysis/developmental_metrics.csv, a row a checkpoint, and figs/developmental_metrics.png. Of any family: loss,
weight norm and, with --hessian, trace and largest eigenvalue of the loss's Hessian; further columns depend on the
model, and a sentence explains each missing one.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.lab import cli
from icl_lab.lab.flag_types import SEED, Whole
from icl_lab.src.checks import require

PROBES = 20
MOST_PROBES, MEMORY = 10_000, "the error is then 1 % of one probe's, and each takes a step's time"
SHOWN = ("loss", "weight_norm", "hessian_trace", "hessian_top", "id_icl_1_k_text", "attention_entropy")  # printed


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Measures every checkpoint, and draws the figure."""
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.analysis.measures.development.metrics import write
    from icl_lab.plots.developmental_metrics import draw_metrics

    probes, seed = (default if given is None else given for given, default in ((flags.probes, PROBES), (flags.seed, 0)))
    rows, missing = write(load_run(run), flags.hessian, probes, seed)
    draw_metrics(run)
    first, last = rows[0], rows[-1]
    shown = {name: f"{first[name]:.4g} to {last[name]:.4g}" for name in SHOWN if name in last}
    return {"checkpoints": len(rows), "columns": len(last), **shown, "not measured": "; ".join(missing) or "nothing"}


def _add(parser: cli.Parser) -> None:
    parser.add_argument("--hessian", action="store_true", help="measure the Hessian of the loss too")
    parser.add_argument(
        "--probes",
        type=Whole(2, MOST_PROBES, MEMORY),
        help=f"random vectors of the Hessian's trace (default: {PROBES})",
    )
    parser.add_argument("--seed", type=SEED, help="of these vectors (default: 0)")


def _check(flags: argparse.Namespace) -> None:
    asked = [f"--{name}" for name in ("probes", "seed") if getattr(flags, name) is not None]
    require(flags.hessian or not asked, f"{' and '.join(asked)} ask for the Hessian's trace; add --hessian")


COMMAND = Command(
    "developmental_metrics",
    "Measures behaviour and structure of a model at every checkpoint of its training.",
    measure,
    _add,
    _check,
)

if __name__ == "__main__":
    COMMAND.launch()
