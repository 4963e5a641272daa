"""Measures of the runs that learnt, where others are stuck on a plateau and a mean over both describes no run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Measure = Callable[..., float]


def among(has_learnt: Callable[[Path], float], measure: Measure) -> Measure:
    """The measure of runs that have learnt by this criterion; nan for the others."""
    return lambda run: measure(run) if has_learnt(run) else float("nan")
