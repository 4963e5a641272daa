"""Transient ridge: when and how closely a model trained on M tasks approaches ridge before it moves to dMMSE, and up to
which M it does.

Pure functions of recorded losses and of Delta, the mean squared difference of predictions over D. The threshold of task
diversity is the number of tasks above which more training brings a transformer nearer to ridge.

Raventos et al. 2023 (Sec. 3, Fig. 4) and Carroll et al. 2025 (Sec. 5, App. B.2). Sizes: S seeds, T records of training,
P pool sizes. OOD is on Gaussian tasks, id on the pool's own.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from icl_lab.src.statistics import mean_and_interval

ON_DMMSE, ON_RIDGE = 0.1, 0.25  # of the distance between ridge and dMMSE: a model within it is on one of them
TIE = 1e-6  # of log(large / small): rounding in float32, which is no change


class PowerLaw(NamedTuple):
    """t = factor M^exponent; `low` and `high` are the ends of the exponent's 95 % interval over seeds."""

    exponent: float
    low: float
    high: float
    factor: float


def critical_step(steps: np.ndarray, losses: np.ndarray) -> int:
    """The step at which a curve is lowest, the first of several: t_crit = argmin_t loss(t).

    steps and losses [T]. Of the OOD loss it is Carroll et al. 2025's (App. B.2); of Delta(PT, ridge) it is t* of
    Raventos et al. 2023 (Fig. 4), which is the last step where Delta only falls.
    """
    if steps.ndim != 1 or steps.shape != losses.shape or not len(steps):
        raise ValueError(f"steps {steps.shape} and losses {losses.shape} are not one loss for each step")
    if not (np.diff(steps) > 0).all():
        raise ValueError("steps do not increase, so that no minimum is the first")
    _check_finite(losses)
    return int(steps[np.argmin(losses)])


def rise(losses: np.ndarray, window: int = 1) -> np.ndarray:
    """How far each curve ends above its own minimum: l(T) - min_t l(t) >= 0, from losses [..., T] to [...].

    The minimum of a noisy curve is biased low, so the rise is biased up: of T records of a constant with noise s by up
    to s sqrt(2 log T), in every seed alike; more seeds only make it more certain. `window` (odd) first averages that
    many records around each one, or those of them that exist near the ends. A curve that only falls still has no rise.
    """
    _check_finite(losses)
    count = losses.shape[-1]
    if window % 2 == 0 or not 1 <= window <= count:
        raise ValueError(f"window is {window}; it must be odd and between 1 and the {count} records")
    weights = np.ones(window)
    sums = np.apply_along_axis(np.convolve, -1, losses, weights, "same")
    averaged = sums / np.convolve(np.ones(count), weights, "same")
    above: np.ndarray = averaged[..., -1] - averaged.min(axis=-1)
    return above


def power_law(m: np.ndarray, t: np.ndarray) -> PowerLaw:
    """t = factor M^exponent by least squares of log t on log M for each seed; the exponent's 95 % t interval over them.

    m [P], t [S, P]. `factor` is the geometric mean over seeds, so that the line is the one through the seeds' mean
    log t. The interval is nan for one seed. Raventos et al. 2023 (Fig. 4) have t* ~ M^.47 below the threshold; an end
    of training that cuts t* off belongs to no power law: leave those M out.
    """
    if m.ndim != 1 or t.ndim != 2 or t.shape[1] != len(m) or len(np.unique(m)) < 2:
        raise ValueError(
            f"m {m.shape} and t {t.shape} do not match: m needs two M or more, and t a time for each seed and M"
        )
    for name, values in (("M", m), ("t", t)):
        if not ((values > 0) & (values < np.inf)).all():
            raise ValueError(f"{name} is not above 0 and finite everywhere, so that it has no logarithm")
    exponents, intercepts = np.polyfit(np.log(m), np.log(t).T, 1)
    mean, half = map(float, mean_and_interval(exponents))
    return PowerLaw(mean, mean - half, mean + half, float(np.exp(intercepts.mean())))


def verdict(
    delta_id_dmmse: float, delta_id_ridge_dmmse: float, delta_ood_ridge: float, delta_ood_dmmse_ridge: float
) -> Literal["dmmse", "ridge", "between"]:
    """Which predictor a transformer PT has become: Delta(PT, .) relative to Delta of the two predictors.

    "dmmse" if Delta_id(PT, dMMSE) <= .1 Delta_id(ridge, dMMSE), else "ridge" if Delta_ood(PT, ridge) <= 1/4
    Delta_ood(dMMSE, ridge), else "between". Both hold for a PT that is dMMSE on the pool's tasks and ridge elsewhere.
    dMMSE has precedence: root mean squares obey the triangle inequality, so such a PT is at least (1 - sqrt .1)^2 = .47
    of the distance away from ridge id, and only (1 - 1/2)^2 = .25 of it away from dMMSE OOD. The bounds are ours.
    """
    deltas = (delta_id_dmmse, delta_id_ridge_dmmse, delta_ood_ridge, delta_ood_dmmse_ridge)
    if not all(0 <= value < np.inf for value in deltas):
        raise ValueError(f"Delta is a mean square, finite and at least 0; these are {deltas}")
    if not (delta_id_ridge_dmmse > 0 and delta_ood_dmmse_ridge > 0):
        raise ValueError("ridge and dMMSE do not differ, so closeness to one of them is not defined")
    if delta_id_dmmse <= ON_DMMSE * delta_id_ridge_dmmse:
        return "dmmse"
    return "ridge" if delta_ood_ridge <= ON_RIDGE * delta_ood_dmmse_ridge else "between"


def _check_finite(losses: np.ndarray) -> None:
    if not np.isfinite(losses).all():
        raise ValueError("losses are not all finite: a run that diverged has no minimum to speak of")


class Crossing(NamedTuple):
    """log2 of the threshold: mean over the seeds that have one, its 95 % interval, and each seed's [S], nan for none.

    `crossed` seeds have one; `of_mean` is the crossing of the seeds' mean log ratio, nan for none.
    """

    log2_m: float
    low: float
    high: float
    per_seed: np.ndarray
    crossed: int
    of_mean: float


def crossing(num_tasks: np.ndarray, small: np.ndarray, large: np.ndarray) -> Crossing:
    """Where a larger training budget stops to move transformers away from ridge: the sign change of log(large/small).

    num_tasks [P], increasing; small and large [S, P]: Delta_OOD(PT, ridge) of the same seeds after a small and a large
    budget. r = log(large / small) is above 0 below the threshold and not above it. Between M_i < M_(i+1), the last two
    with r_i > 0 >= r_(i+1), it is log2 M_i + (log2 M_(i+1) - log2 M_i) r_i / (r_i - r_(i+1)). |r| up to 1e-6 is a tie
    and counts as no change, r = 0, which is not above 0. A seed has none where r is never above 0 or never ceases to
    be. After the last crossing it may be above 0 again: see the curve.

    The mean and the interval are over the seeds that have a crossing, and so are conditional on having one where
    `crossed` is below S; the interval is nan for fewer than two.
    """
    _check(num_tasks, small, large)
    log2_m, ratios = np.log2(num_tasks), np.log(large) - np.log(small)
    per_seed = np.array([_last_crossing(log2_m, row) for row in ratios])
    crossings = per_seed[~np.isnan(per_seed)]
    mean, half = map(float, mean_and_interval(crossings)) if len(crossings) else (np.nan, np.nan)
    of_mean = _last_crossing(log2_m, ratios.mean(axis=0))
    return Crossing(mean, mean - half, mean + half, per_seed, len(crossings), of_mean)


def _last_crossing(x: np.ndarray, ratios: np.ndarray) -> float:
    """Where ratios [P] over x [P] last go from above 0 to not above it, linear in between; nan where they never do."""
    values = np.where(np.abs(ratios) <= TIE, 0.0, ratios)
    (changes,) = np.nonzero((values[:-1] > 0) & (values[1:] <= 0))
    if not len(changes):
        return float("nan")
    i = changes[-1]
    return float(x[i] + (x[i + 1] - x[i]) * values[i] / (values[i] - values[i + 1]))


def _check(num_tasks: np.ndarray, small: np.ndarray, large: np.ndarray) -> None:
    if small.ndim != 2 or small.shape != large.shape or small.shape[1:] != num_tasks.shape or not len(small):
        raise ValueError(f"{small.shape} and {large.shape} are not [seeds, M] for {num_tasks.shape} numbers of tasks")
    if not ((np.diff(num_tasks) > 0).all() and (num_tasks > 0).all() and np.isfinite(num_tasks).all()):
        raise ValueError("numbers of tasks must be above 0, finite and increasing; leave out the infinite pool")
    if not all(((values > 0) & (values < np.inf)).all() for values in (small, large)):
        raise ValueError("Delta must be above 0 and finite for its logarithm")
