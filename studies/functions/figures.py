"""The figures on function classes."""

from __future__ import annotations

from icl_lab.plots.cells import draw_cells
from icl_lab.studies.distance_figure import Distances
from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.figure import AnyFigure, Figure
from icl_lab.studies.functions import curves
from icl_lab.studies.functions.runs import POOLED, SHIFTED

POOLS = tuple(f"pools_{kind}" for kind in POOLED)

# fmt: off
FIGURES: tuple[AnyFigure, ...] = (
    Figure("small", "D = 2: losses on functions that training did not have", tuple(curves.SETTINGS), curves.on_fresh_functions, "pairs in the context", "error / variance"),
    Figure("curves", "Losses on fresh functions by position", tuple(curves.BESIDE), curves.beside_baselines, "pairs in the context", "error / variance", profile="full"),
    Dots("classes", f"Gain / gain of the reference, where that is at least {curves.LEAST_GAINED:g} of the constant's loss", curves.CLASSES, curves.gains, "full", scale="linear"),
    Figure("pools", "Fresh functions; distances are to the reference", POOLS, curves.after_pools, "functions in training, M", "ratio", log_x=True, log_y=(*curves.DISTANCES.values(),), profile="full", scale="linear", by_seed=True),
    Distances("shifts", "Excess over the best baseline under the same shift, divided by the labels' variance, last position", SHIFTED, curves.excesses_under_shifts, ("row", "column"), draw_cells, "full"),
    Figure("curriculum", "Linear functions, D = 10: error after 20 pairs over training", tuple(curves.CURRICULA), curves.errors_of_training, "training step", "error / D", log_y=True, means=False, by_seed=True, profile="full"),
    Figure("sizes", "Linear functions: error after 2 D pairs", tuple(curves.SIZE_WORDS), curves.errors_by_dim, "inputs, D", "error / D", log_y=True, profile="full"),
)
# fmt: on
