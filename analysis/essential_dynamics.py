"""Where does a training turn? Principal components of a run's outputs over its snapshots, with forms and their null.

python -m analysis.essential_dynamics --run DIR, of a run trained with --config.snapshots=true

Writes analysis/essential_dynamics.csv and .json, and figs/essential_dynamics.png. Every share of variance and
every form is compared with random walks of the run's own steps: what these show too is no evidence about the model.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.lab import cli
from icl_lab.lab.flag_types import SEED, Number, Whole

SMOOTHING = 0.06
SMOOTHINGS = Number(0.0, 1.0, open_high=True)
WALKS = Whole(1, 10_000, "a p-value has then four digits, and each walk takes as long as the run")


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Measures the trajectory and its null, and draws both."""
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.analysis.measures.development.essential_dynamics import FEWEST
    from icl_lab.analysis.measures.development.trajectory import write
    from icl_lab.plots.essential_dynamics import draw_dynamics

    facts = write(load_run(run), flags.walks, flags.smoothing, flags.seed)
    draw_dynamics(run)
    shares = zip(facts["explained"], facts["null"]["explained"], strict=True)
    strongest, few = facts["forms"][:1], facts["p_forms"] is None
    forms = f"{len(facts['forms'])} (walks {facts['null']['forms']:.1f})"
    return {
        "checkpoints": facts["checkpoints"],
        "variance explained": ", ".join(f"{share:.3f} (walks {walk:.3f})" for share, walk in shares),
        "forms": f"not sought below {FEWEST} checkpoints" if few else f"{forms}, p = {facts['p_forms']:.3g}",
        "strongest form": "".join(f"step {one['step']}, p = {one['p']:.3g}" for one in strongest) or "none",
    }


def _add(parser: cli.Parser) -> None:
    parser.add_argument("--walks", type=WALKS, default=100, help="random walks of the null")
    parser.add_argument(
        "--smoothing", type=SMOOTHINGS, default=SMOOTHING, help="width of the smoothing at the end, of the checkpoints"
    )
    parser.add_argument("--seed", type=SEED, default=0, help="of the random walks")


COMMAND = Command(
    "essential_dynamics",
    "Measures where a training turns, by principal components of its outputs, against random walks.",
    measure,
    _add,
)

if __name__ == "__main__":
    COMMAND.launch()
