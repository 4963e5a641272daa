"""Measures on the depth curve: losses after every layer, from the summary of a run. MSE, including the noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.layerwise import REACHABLE
from icl_lab.families.layerwise.config import UNTRAINED
from icl_lab.studies.algorithm_distances import Measure
from icl_lab.studies.runs import summary_part


def layerwise_of(run: Path) -> dict[str, Any]:
    """The results of `analysis.layerwise` on the final checkpoint."""
    return summary_part(run, "layerwise")


def has_learnt(run: Path) -> float:
    """1 for a run whose last layer is clearly better than predicting zero, else 0: it is on the plateau still."""
    return float(after(-1)(run) < UNTRAINED * _last_of(run, "zero"))


def furthest_from_gd(run: Path) -> float:
    """The largest |ratio - 1| of the loss to gradient descent's, over all steps, on the same tasks."""
    return float(np.abs(_numbers(layerwise_of(run)["ratio_to_gd"]) - 1).max())


def after(layers: int) -> Measure:
    """The mean over tasks, less the largest thousandth, after so many layers; -1 is the last."""
    return lambda run: float(_numbers(layerwise_of(run)["trimmed_mean"])[layers - (layers > 0)])


def unstable(run: Path) -> float:
    """The share of tasks on which the last layer is worse than predicting zero."""
    return float(layerwise_of(run)["unstable_share"][-1])


def last_over(name: str) -> Measure:
    """The last layer's loss over a reference's last, both less the largest thousandth."""
    return lambda run: after(-1)(run) / _last_of(run, name)


def first_over_zero(run: Path) -> float:
    """The first layer's loss over that of predicting zero."""
    return after(1)(run) / _last_of(run, "zero")


def largest_step_up(run: Path) -> float:
    """The largest ratio of a layer's loss to that of the layer before."""
    losses = _numbers(layerwise_of(run)["trimmed_mean"])
    return float((losses[1:] / losses[:-1]).max())


def steps_a_layer(run: Path) -> float:
    """Steps of gradient descent that reach the last layer's loss, for each layer.

    If the most that are tried do not reach it, it is worth at least those.
    """
    depth_curve = layerwise_of(run)
    steps = depth_curve["gd_steps_to_reach"][-1]
    return float((REACHABLE if steps is None else steps) / depth_curve["layers"])


def _last_of(run: Path, name: str) -> float:
    return float(layerwise_of(run)["references"][name]["trimmed_mean"][-1])


def _numbers(values: Sequence[float | None]) -> np.ndarray:
    """Numbers from a run's files as an array; null, a non-finite value, becomes infinite."""
    return np.array([np.inf if value is None else value for value in values], float)
