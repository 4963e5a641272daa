"""Descent from w* on all samples before chains begin: the only remedy where w* is not a minimum.

A stronger pull hides that draws find lower losses; it does not cure it. SciPy's L-BFGS (Liu and Nocedal 1989), whose
losses never rise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.llc.loss import Split, measured_gradient


class Descended(NamedTuple):
    """Where a descent ends: parameters taken apart, the distance from w*, and the loss that it gained."""

    split: Split
    distance: float
    gain: float


def descended(split: Split, data: Any, mask: np.ndarray | None, steps: int) -> Descended:
    """At most `steps` iterations from w*, of the parameters that the mask lets move."""
    from scipy.optimize import minimize

    start = np.asarray(split.vector, np.float64)
    chosen = np.arange(len(start)) if mask is None else np.flatnonzero(mask)

    def value_and_slope(part: np.ndarray) -> tuple[float, np.ndarray]:
        w = start.copy()
        w[chosen] = part
        loss, slope = measured_gradient(split.form, split.fixed, w.astype(split.vector.dtype), data)
        return float(loss), np.asarray(slope, np.float64)[chosen]

    begin, _ = value_and_slope(start[chosen])
    options = {"maxiter": steps, "maxfun": 4 * steps, "ftol": 0.0, "gtol": 0.0}
    found = minimize(value_and_slope, start[chosen], jac=True, method="L-BFGS-B", options=options)
    if not found.fun < begin:
        return Descended(split, 0.0, 0.0)
    w = start.copy()
    w[chosen] = found.x
    moved = split._replace(vector=w.astype(split.vector.dtype))
    return Descended(moved, float(np.linalg.norm(w - start)), begin - float(found.fun))
