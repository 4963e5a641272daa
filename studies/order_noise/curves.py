"""The curves of the study's figure of runs: step sizes by position, the best ones and those read from the models."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from icl_lab.studies.curve_rows import Series
from icl_lab.studies.figure import Figure
from icl_lab.studies.order_noise.runs import SORTED
from icl_lab.studies.order_noise.step_sizes import steps_of
from icl_lab.studies.runs import has_trained

READINGS = {"Best by position": "predicted", "From predictions": "regressed", "From derivatives": "differentiated"}


def by_position(run: Path, name: str) -> Series:
    """The step size at each position: the best one for contexts of the training, and those read from the model.

    None for a run that has not trained: a mean that includes it would describe no run.
    """
    if not has_trained(run):
        return {}
    steps = steps_of(run)
    positions = np.arange(1, len(steps["predicted"]) + 1)
    return {(f"trained: {name.replace('_', ' ')}", series): (positions, steps[key]) for series, key in READINGS.items()}


RUN_FIGURES = (
    Figure(
        "steps_by_position",
        "Step sizes by position: two layers follow the best ones, a single layer does not",
        (*(f"twolayer_{order}" for order in SORTED), "twolayer_random", "lsa1_pe_easy2hard", "three_layers_easy2hard"),
        by_position,
        "position",
        "step size",
        profile="full",
        scale="linear",
    ),
)
