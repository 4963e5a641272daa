"""In which stages does a model develop? Milestones of a run's local learning coefficient, and of its loss alone.

python -m analysis.stages --run DIR [--also DIR,DIR,...], of a run with analysis/llc.csv

Writes analysis/stages.csv and .json, and figs/stages.png. Every milestone is reported with its support, its
interval, and whether the loss alone has it: where chains are saturated the LLC is a decreasing line in the loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.lab import cli
from icl_lab.lab.flag_types import POSITIVE, SEED, Number, Whole
from icl_lab.store.outputs import in_path

BOUND, Z, DRAWS = 0.047, 3.0, 1000
LENGTH = Number(1e-3, 1e3, why="a training is shorter than 22 in log step")


def measure(run: Path, flags: argparse.Namespace) -> Iterator[Mapping[str, Any]]:
    """Fits the curve, writes its milestones and stages, and draws them; prints both."""
    from icl_lab.analysis.measures.development.run_stages import LLC, Rule, write
    from icl_lab.plots.stages import draw_stages

    rule = Rule(flags.bound, flags.z, flags.length, flags.draws, flags.seed)
    facts, table = write(run, flags.also, flags.setting, flags.healthy, rule)
    draw_stages(run)
    healthy = facts["checkpoints"]["healthy"]
    yield {"setting": facts["setting"], "checkpoints": len(healthy), "healthy": sum(healthy)}
    for one in facts["milestones"]:
        yield _shown(one)
    if not facts["milestones"]:
        yield {"milestones": "none: " + ("no plateau" if facts["curve"]["has_shape"] else "a line and noise")}
    stages = [row for row in table if row["series"] == LLC][: len(facts["milestones"]) + 1]
    yield from ({"stage": number + 1, **_stage(row)} for number, row in enumerate(stages))
    yield {"change_points": ", ".join(f"{point['step']:g}" for point in facts["change_points"]["points"]) or "none"}


def _shown(milestone: Mapping[str, Any]) -> dict[str, Any]:
    """What is printed of a milestone."""
    numbers = {name: milestone[name] for name in ("low", "high", "support", "sides")}
    words = {name: "yes" if milestone[name] else "no" for name in ("loss_has_one", "healthy")}
    over = milestone["seeds"]
    return (
        {"milestone": milestone["step"]}
        | numbers
        | words
        | ({"seeds": f"{over['having']} of {over['seeds']}"} if over else {})
    )


def _stage(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("end", "type", "delta_loss", "delta_llc", "delta_llc_se")}


def _add(parser: cli.Parser) -> None:
    cli.add_list(parser, "--also", in_path, [], "further runs of the same training with other seeds")
    parser.add_argument("--setting", help="which of llc.csv, by the beginning of its name (default: the only one)")
    parser.add_argument("--healthy", action="store_true", help="use healthy checkpoints alone")
    parser.add_argument(
        "--bound", type=POSITIVE, default=BOUND, help="largest slope on a plateau, in heights of the curve per log step"
    )
    parser.add_argument("--z", type=POSITIVE, default=Z, help="standard errors that a change must exceed")
    parser.add_argument("--length", type=LENGTH, help="length scale of the fit in log step (default: the likeliest)")
    parser.add_argument(
        "--draws",
        type=Whole(1, 100_000, "all of them are in memory"),
        default=DRAWS,
        help="draws of the curve, for the milestones' intervals",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="of the draws")


COMMAND = Command(
    "stages", "Finds milestones and stages of a training in its local learning coefficients.", measure, _add
)

if __name__ == "__main__":
    COMMAND.launch()
