"""Whether chains drew from the local posterior: diagnostics of a point's chains, and the reasons to distrust them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab.environment import extra
from icl_lab.store import llc_rows
from icl_lab.store.llc_rows import is_known

if TYPE_CHECKING:
    from icl_lab.analysis.llc.settings import Settings

SATURATED = 0.3  # of the way to the null predictor: above it a chain is saturated
UNSTABLE = 1.0  # eps (nbeta h_max + gamma): a step as long as the steepest direction's width
TRENDING = 2.0  # standard errors between the first and the last quarter of the draws
UNMIXED = 1.2  # R-hat (Brooks and Gelman 1998): a chain's half holds two or so independent draws, or fewer
REJECTED = 0.1  # mean Metropolis acceptance: the steps are too long for the target
STILL = 1e-6  # of the losses' size: draws whose losses differ by no more have not moved, as far as float32 can tell
ABOVE_NULL = f"{llc_rows.NOT_COMPUTED}: {llc_rows.ABOVE_NULL}"
NO_MOVEMENT = f"{llc_rows.NOT_MIXED}: the losses of the draws differ by rounding alone, so R-hat is not computed"
NO_CAUSES: Mapping[str, str] = {}
QUARTERS = 4


class Limit(NamedTuple):
    """What a diagnostic has to be, and the reason of one that is not."""

    holds: Callable[[float], bool]
    otherwise: str


LIMITS = {
    "saturation": Limit(
        lambda value: value <= SATURATED,
        f"{llc_rows.SATURATED}: draws are {{:.2f}} of the way to the null predictor",
    ),
    "stability": Limit(
        lambda value: value < UNSTABLE,
        f"{llc_rows.STEP_TOO_LONG}: eps (nbeta h_max + gamma) is {{:.2g}}, not below {UNSTABLE:g}",
    ),
    "trend": Limit(
        lambda value: abs(value) <= TRENDING,
        f"{llc_rows.NOT_MIXED}: {{:+.1f}} standard errors from the first to the last quarter of the draws",
    ),
    "r_hat": Limit(lambda value: value <= UNMIXED, f"{llc_rows.NOT_MIXED}: R-hat is {{:.3f}}, above {UNMIXED:g}"),
    "acceptance": Limit(lambda value: value >= REJECTED, f"{llc_rows.STEP_TOO_LONG}: acceptance is {{:.2g}}"),
}


class Diagnostics(NamedTuple):
    """The diagnostics of an estimate.

    draw_loss: mean loss of the draws, L(w*) + mean excess; saturation: (draw_loss - L(w*)) / (L_null - L(w*)).
    acceptance: of a Metropolis-adjusted step of the same size; stability: eps (nbeta h_max + gamma).
    trend: last less first quarter of the draws over its standard error between chains.
    r_hat, ess: rank-normalised split R-hat and bulk effective sample size of losses on the fixed set, over all chains;
    below: share of those that are below L(w*) on the same tasks, which noise alone makes at a minimum of no width.
    distance: mean |w - w*| of the draws; radius: sqrt(d / gamma), that of the localisation alone; norm: |w*|; of what
    moves.
    relaxation: 2 / (eps gamma) steps, in which a flat direction forgets its start. verdict, reasons: of `llc_rows`.
    """

    draw_loss: float
    saturation: float
    acceptance: float
    stability: float
    trend: float
    r_hat: float
    ess: float
    below: float
    distance: float
    radius: float
    norm: float
    relaxation: float
    top_eigenvalue: float
    verdict: str
    reasons: str


def diagnose(
    traces: Mapping[str, np.ndarray],
    settings: Settings,
    loss: float,
    null_loss: float,
    top_eigenvalue: float,
    weights: np.ndarray,
) -> Diagnostics:
    """The diagnostics of chains: excess and distance [C, T], fixed_loss and acceptance [C, K], burn-in included.

    weights [d]: of the parameters that move, at w*.
    """
    kept = {name: _kept(values, settings) for name, values in traces.items()}
    excess, moved = kept["excess"].mean(), kept["fixed_loss"]
    known = is_known(loss) and is_known(null_loss) and null_loss > loss
    steepest = max(top_eigenvalue, 0.0) if is_known(top_eigenvalue) else math.nan
    with np.errstate(invalid="ignore"):  # of chains that diverged, which the reasons say
        numbers = {
            "saturation": float(excess / (null_loss - loss)) if known else math.nan,
            "stability": float(settings.eps * (settings.nbeta * steepest + settings.gamma)),
            "trend": trend(kept["excess"]),
            "acceptance": float(kept["acceptance"].mean()),
            **mixing(moved),
        }
    causes = {"saturation": ABOVE_NULL} if null_loss <= loss else {}
    causes |= {"r_hat": NO_MOVEMENT} if is_still(moved) else {}
    diverged = divergence(traces["excess"])
    found = [diverged] if diverged else [*reasons(numbers, causes), *off_minimum(kept["excess"])]
    verdict, told = llc_rows.said(found).values()
    return Diagnostics(
        draw_loss=float(loss + excess),
        **numbers,
        below=float(np.mean(moved < traces["fixed_loss"][:, :1])),
        distance=float(kept["distance"].mean()),
        radius=math.sqrt(len(weights) / settings.gamma) if settings.gamma > 0 else math.inf,
        norm=float(np.linalg.norm(weights)),
        relaxation=2 / (settings.eps * settings.gamma) if settings.gamma > 0 else math.inf,
        top_eigenvalue=top_eigenvalue,
        verdict=verdict,
        reasons=told,
    )


def divergence(excess: np.ndarray) -> str:
    """Which chain of [C, T] became non-finite first, and at which draw; "" if none did."""
    gone = ~np.isfinite(excess)
    if not gone.any():
        return ""
    draw = int(np.argmax(gone.any(axis=0)))
    chain = int(np.argmax(gone[:, draw]))
    sentence = f"chain {chain} diverged at draw {draw}, as eps is too large for these nbeta and gamma"
    return f"{llc_rows.NOT_COMPUTED}: {sentence}"


def reasons(numbers: Mapping[str, float | None], causes: Mapping[str, str] = NO_CAUSES) -> list[str]:
    """The reasons against chains of these diagnostics; none if all are within their limits.

    One that is not a finite number is a reason: the cause, where it is known, else that it `cannot be computed`.
    """
    faults = (fault(name, numbers.get(name), limit, causes.get(name, "")) for name, limit in LIMITS.items())
    return [*filter(None, faults)]


def fault(name: str, value: float | None, limit: Limit, cause: str = "") -> str:
    """Why a diagnostic is not within its limit; "" if it is."""
    if not is_known(value):
        return cause or f"{llc_rows.NOT_COMPUTED}: {name} is {value}"
    return "" if limit.holds(value) else limit.otherwise.format(value)


def as_read(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an LLC table under today's columns: what an earlier version called healthy may lack a number."""
    if row.get(llc_rows.HEALTH) != llc_rows.HEALTHY:
        return llc_rows.current(row)
    return llc_rows.replaced(row, [*llc_rows.unknown(row), *reasons(row)])


def is_still(losses: np.ndarray) -> bool:
    """Whether the losses [C, K] of draws differ by rounding alone."""
    return bool(np.isfinite(losses).all() and np.ptp(losses) <= STILL * np.abs(losses).max())


def off_minimum(excess: np.ndarray) -> list[str]:
    """Whether draws [C, T] lie below L(w*), beyond two standard errors between chains: then w* is no local minimum."""
    means = excess.mean(axis=1)
    below = means.mean() + TRENDING * means.std(ddof=1) / math.sqrt(len(means)) < 0
    return [f"{llc_rows.OFF_MINIMUM}: the draws lie below L(w*)"] if below else []


def trend(excess: np.ndarray, since: int = 0) -> float:
    """Last less first quarter of the draws [C, T], mean over chains, over its standard error.

    Without a spread between chains it is infinite, or nan if nothing changes either.
    since: another quarter than the first; -2 is the last but one.
    """
    quarters = np.array_split(excess, QUARTERS, axis=1)
    change = quarters[-1].mean(axis=1) - quarters[since].mean(axis=1)
    error = change.std(ddof=1) / math.sqrt(len(change))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(change.mean() / error)


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


def _kept(values: np.ndarray, settings: Settings) -> np.ndarray:
    """A trace less its burn-in: one number a draw, or one a check, whose draws begin its block."""
    left_out = settings.burn_in
    if values.shape[1] < settings.burn_in + settings.draws:
        left_out = -(-settings.burn_in // settings.check_every)
    return values[:, left_out:]
