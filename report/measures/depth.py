"""Of a run of the depth curve: its losses after every layer, from its summary. MSE, including the noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from store import layout
from store.readers import expecting, read_json

Measure = Callable[[Path], float]


@lru_cache(maxsize=64)
def layerwise_of(run: Path) -> dict[str, Any]:
    """What `analysis.layerwise` found at the end of the run."""
    values = read_json(run / layout.SUMMARY)
    with expecting(run / layout.SUMMARY, "the summary of a run of the depth curve"):
        found: dict[str, Any] = values["layerwise"]
    return found


def furthest_from_gd(run: Path) -> float:
    """The paired ratio to gradient descent at the step where it is furthest from 1."""
    ratios = np.array(layerwise_of(run)["ratio_to_gd"], float)
    return float(ratios[np.nanargmax(np.abs(np.log(ratios)))])


def after(layers: int) -> Measure:
    """The mean over tasks after so many layers; -1 is the last."""
    return lambda run: float(layerwise_of(run)["trimmed_mean"][layers - (layers > 0)])


def reference(name: str, steps: int) -> Measure:
    """A reference's mean over the same tasks after so many steps."""
    return lambda run: float(layerwise_of(run)["references"][name]["mse"][steps - 1])


def last_over(name: str) -> Measure:
    """The last layer's loss over a reference's last."""
    return lambda run: after(-1)(run) / float(layerwise_of(run)["references"][name]["mse"][-1])


def first_over_zero(run: Path) -> float:
    """The first layer's loss over that of predicting zero."""
    return after(1)(run) / float(layerwise_of(run)["references"]["zero"]["mse"][0])


def largest_step_up(run: Path) -> float:
    """The largest ratio of a layer's loss to that of the layer before: below 1 where the loss falls with depth."""
    losses = np.array(layerwise_of(run)["trimmed_mean"], float)
    return float((losses[1:] / losses[:-1]).max())
