"""Iterations that end at a solution: a context's values change until its residual is small, at most so many times.

Where it is not small by then there is no solution to speak of: predictions are nan there, and `why_missing` is the
sentence for whoever reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from icl_lab.src.checks import require


class Solution(NamedTuple):
    """Values [B, F] of B contexts, and in which of them [B] the residual is above the tolerance."""

    values: Array
    unsolved: Array

    @property
    def or_nan(self) -> Array:
        """The values, nan where they are no solution."""
        return jnp.where(self.unsolved[:, None], jnp.nan, self.values)


def iterate(
    step: Callable[[Array], Array], residual: Callable[[Array], Array], start: Array, tolerance: float, most: int
) -> Solution:
    """Steps from a start [B, F] until residual(values) [B] is at most the tolerance; of each context at most `most`.

    A context that is solved stays as it is while others go on, so its values do not depend on theirs.
    """

    def unsolved(values: Array) -> Array:
        return ~(residual(values) <= tolerance)  # so is nan

    def goes_on(state: tuple[Array, Solution]) -> Array:
        return (state[0] < most) & jnp.any(state[1].unsolved)

    def body(state: tuple[Array, Solution]) -> tuple[Array, Solution]:
        count, (values, left) = state
        after = jnp.where(left[:, None], step(values), values)
        return count + 1, Solution(after, unsolved(after))

    solution: Solution = lax.while_loop(goes_on, body, (jnp.int32(0), Solution(start, unsolved(start))))[1]
    return solution


def least_between(objective: Callable[[float], float], low: float, high: float, within: float = 1e-5) -> float:
    """Where a function of one number is least between two, to this accuracy, by Brent's method.

    `ConfigError` where that does not converge, as for values that are not numbers.
    """
    from scipy.optimize import minimize_scalar  # here, as it takes a while to import

    found = minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": within})
    require(bool(found.success), f"no minimum was found between {low:g} and {high:g}: {found.message}")
    return float(found.x)


def why_missing(predictions: np.ndarray) -> str | None:
    """Why predictions [B] of an iteration lack a value, None where none does."""
    missing = int(np.count_nonzero(~np.isfinite(predictions)))
    if missing == 0:
        return None
    return f"in {missing} of {len(predictions)} contexts it has not converged, or float32 does not hold its prediction"
