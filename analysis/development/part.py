"""A part of a checkpoint's metrics: what computes it, and why it lacks what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from icl_lab.analysis.loaded_run import LoadedRun

Measure = Callable[[LoadedRun], Mapping[str, Any]]


class Part(NamedTuple):
    """What a checkpoint is measured by, and a sentence for each thing that the run or its model does not have."""

    measure: Measure = lambda checkpoint: {}
    missing: tuple[str, ...] = ()
