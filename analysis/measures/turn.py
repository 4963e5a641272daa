"""When a transformer turns from one algorithm to another: cosines of sensitivities over training, and the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.compared_run import ComparedRun
from icl_lab.analysis.measures.algorithm_distance import FINAL, over_training
from icl_lab.src.checks import same_shape


class Turn(NamedTuple):
    """A turn at `step`, give or take `half_width`: half the distance of the two snapshots between which it is."""

    step: float
    half_width: float


def cosines_of(rows: Sequence[Mapping[str, object]]) -> dict[str, np.ndarray]:
    """`step` [T], and for each algorithm the cosines [T] with it, of rows of cosines as `over_training` gives them."""
    steps = list(dict.fromkeys(str(row["step"]) for row in rows))
    names = dict.fromkeys(str(row["column"]) for row in rows)
    curves = {name: np.array([row["value"] for row in rows if row["column"] == name], float) for name in names}
    return {"step": np.array(steps, int), **curves}


def turn(steps: np.ndarray, before: np.ndarray, after: np.ndarray) -> Turn | None:
    """The first step from which `after` [T] is above `before` [T] for good; None if it is not at the end.

    It is halfway between the last snapshot where it is not above and the next one. Above from the first snapshot on,
    the turn is there, with no width.
    """
    same_shape(steps=steps, before=before, after=after)
    (not_above,) = np.nonzero(~(after > before))
    if not not_above.size:
        return Turn(float(steps[0]), 0.0)
    last = int(not_above[-1])
    if last == len(steps) - 1:
        return None
    low, high = float(steps[last]), float(steps[last + 1])
    return Turn((low + high) / 2, (high - low) / 2)


def turn_in(rows: Sequence[dict[str, object]], before: str = "gd", after: str = "gd_plus_plus") -> Turn | None:
    """`turn_of` of rows of algorithm_distance.csv; None too where one of the two is not defined."""
    curves = cosines_of([row for row in rows if row["measure"] == "cosine" and row["step"] != FINAL])
    return turn(curves["step"], curves[before], curves[after]) if {before, after} <= curves.keys() else None


def turn_of(loaded: ComparedRun, before: str = "gd", after: str = "gd_plus_plus") -> Turn | None:
    """The turn of a run with snapshots: from where on it is nearer to one algorithm than to another for good."""
    return turn_in([*over_training(loaded, (before, after))], before, after)
