"""Whether chains have mixed, in numbers: their trend, R-hat, effective sample size, and where one diverged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from icl_lab.lab.environment import extra

STILL = 1e-6  # of the losses' size: draws whose losses differ by no more have not moved, as far as float32 can tell
QUARTERS = 4
NO_MOVEMENT = "the losses of the draws differ by rounding alone, so that R-hat is not computed"


def trend(excess: np.ndarray, since: int = 0) -> float:
    """Last less first quarter of the draws [C, T], mean over chains, over its standard error.

    Without a spread between chains it is infinite, or nan if nothing changes either. In chains that do not move it is
    as a t variable of C - 1 degrees of freedom. since: another quarter than the first; -2 is the last but one.
    """
    quarters = np.array_split(excess, QUARTERS, axis=1)
    change = quarters[-1].mean(axis=1) - quarters[since].mean(axis=1)
    error = change.std(ddof=1) / math.sqrt(len(change))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(change.mean() / error)


def divergence(excess: np.ndarray) -> str:
    """Which chain of [C, T] became non-finite first, and at which draw; "" if none did."""
    gone = ~np.isfinite(excess)
    if not gone.any():
        return ""
    draw = int(np.argmax(gone.any(axis=0)))
    chain = int(np.argmax(gone[:, draw]))
    return f"chain {chain} diverged at draw {draw}, as eps is too large for these nbeta and gamma"


def is_still(losses: np.ndarray) -> bool:
    """Whether the losses [C, K] of draws differ by rounding alone."""
    return bool(np.isfinite(losses).all() and np.ptp(losses) <= STILL * np.abs(losses).max())


def mixing(values: np.ndarray) -> dict[str, float]:
    """r_hat and ess of [C, K] values, by blackjax: Vehtari et al. 2021. nan where nothing moves or K is below 4."""
    program = _mixing()
    if values.shape[1] < 2 * 2 or not np.isfinite(values).all() or is_still(values):
        return {"r_hat": math.nan, "ess": math.nan}
    return {name: float(value) for name, value in program(np.asarray(values, np.float32)).items()}


@lru_cache(maxsize=1)
def _mixing() -> Callable[[np.ndarray], Mapping[str, Any]]:
    """Both in one program; otherwise each of blackjax's hundred operations is compiled separately."""
    from jax import jit

    diagnostics = extra("blackjax.diagnostics")

    program: Callable[[np.ndarray], Mapping[str, Any]] = jit(
        lambda values: {"r_hat": diagnostics.rhat(values), "ess": diagnostics.ess_bulk(values)}
    )
    return program
