"""Figures as data: which runs each is of, and what of them it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Values = Sequence[float] | np.ndarray
Series = Mapping[tuple[str, str], tuple[Values, Values]]  # (panel, series) -> x, y


class Figure(NamedTuple):
    """A figure: its name, the runs it is of, the curves of one of them, and its labels.

    Where there are no runs, curves takes a seed; where they go `together`, all runs of a seed. A point is left out where
    a mean is beyond `limit`: it has diverged.
    """

    name: str
    title: str
    runs: tuple[str, ...]
    curves: Callable[[Any, str], Series]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    profile: str = "quick"
    limit: float = 100.0
    together: bool = False


class Plane(NamedTuple):
    """A figure of paths in a plane: rows of panel, series, step, x, y and kind, made of all of its runs together."""

    name: str
    title: str
    runs: tuple[str, ...]
    paths: Callable[[Sequence[Path]], list[dict[str, Any]]]
    x_label: str
    y_label: str
    points: str
    profile: str = "quick"
