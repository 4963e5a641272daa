"""The figures on one layer's solutions."""

from __future__ import annotations

from icl_lab.studies.figure import AnyFigure, Figure, HeatMaps
from icl_lab.studies.solutions import curves
from icl_lab.studies.solutions.runs import SEEDS

STEP = "training step"

# fmt: off
FIGURES: tuple[AnyFigure, ...] = (
    Figure("shares", "Share of runs that find the mixed minimum", (), curves.shares, "number of pairs N, over N*(D)", "share", log_x=True, profile="full", scale="share", seeds=SEEDS),
    HeatMaps("patterns", "Three stationary points of the loss, D = 2, N = 10", (), curves.patterns, dim=2),
    Figure("paths", "Loss divided by that of gradient descent, D = 2, N = 10, by solution", (), curves.paths, STEP, "loss ratio", log_x=True, log_y=True, means=False, by_seed=True, seeds=SEEDS[:curves.SHOWN]),
    Figure("waiting", "Runs that miss gradient descent, D = 2, N = 10: share still on the plateau", (), curves.waiting, STEP, "share", log_x=True, scale="share", seeds=SEEDS),
)
# fmt: on
