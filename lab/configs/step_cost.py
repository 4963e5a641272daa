"""The cost of a training step of one task, roughly, in seconds on one core of the machine of docs/performance.md."""

from __future__ import annotations

CHANNEL = 3.3e-9  # for one channel of one row
INNER_LAYER = 4.0  # what a layer whose rows are all computed costs, the last, which has one, costing 1
SORTED_PAIR = 8e-8  # to put one pair in order


def of_layers(rows: int, channels: int, layers: int) -> float:
    """Layers on rows of channels, of which the last computes one row."""
    return CHANNEL * rows * channels * (1 + INNER_LAYER * (layers - 1))
