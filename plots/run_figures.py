"""All figures of a run, drawn again from its files.

python -m plots.run_figures --run DIR [DIR ...]
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.plots.algorithm_distance import draw_algorithm_distance
from icl_lab.plots.attention_quick import draw_attention
from icl_lab.plots.compare_depth import draw_layerwise
from icl_lab.plots.heat_maps import draw_weights
from icl_lab.plots.interventions import draw_interventions
from icl_lab.plots.nearest_algorithm import draw_nearest_algorithm
from icl_lab.plots.probes import draw_probes
from icl_lab.plots.sines import draw_functions
from icl_lab.plots.training import draw_alignment, draw_loss
from icl_lab.src.words import printable
from icl_lab.store import layout
from icl_lab.store.lock import refuse_links
from icl_lab.store.manifest import adopt
from icl_lab.store.outputs import in_path
from icl_lab.store.rundir import read_config

# (the file a figure is drawn from, how)
FIGURES: tuple[tuple[str, Callable[[Path], Any]], ...] = (
    (layout.METRICS, draw_loss),
    (layout.ALIGNMENT_CURVE, draw_alignment),
    (layout.WEIGHTS, draw_weights),
    (layout.ALGORITHM_DISTANCE, draw_algorithm_distance),
    (layout.LAYERWISE, draw_layerwise),
    (layout.SINE_FUNCTIONS, draw_functions),
    (layout.INTERVENTIONS, draw_interventions),
    (layout.PROBES, draw_probes),
    (layout.NEAREST_ALGORITHM, draw_nearest_algorithm),
    (layout.ATTENTION_SUMMARY, lambda run: draw_attention(run, run / layout.FIGURES)),
)


def draw_run(run: Path) -> None:
    """Draws every figure whose file is there."""
    read_config(run)
    refuse_links(run)
    adopt(run)
    for source, draw in FIGURES:
        if (run / source).exists():
            draw(run)


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("plots.run_figures", "Draws the figures of runs again, from their files.")
    cli.add_list(built, "--run", in_path, [], "run directories")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    runs = parser().parse(argv).run
    if not runs:
        raise cli.UsageError(f"no run to draw: give --run DIR ({typed('runners.run')} lsa1 makes one)")
    for run in runs:
        draw_run(run)
        print(printable(run / layout.FIGURES))


if __name__ == "__main__":
    cli.launch(main)
