"""Kinks of a curve over training: a continuous, piecewise linear function of u = log(step + 1), by dynamic programming.

    minimise  chi^2 = sum_t ((y_t - f(u_t)) / noise_t)^2,   BIC = chi^2 + (2 S) log T   of S segments

over all f with kinks at checkpoints. S segments have S + 1 values at their ends and S - 1 places: 2 S numbers. BIC is
no test: of lines with noise about one in ten has a kink, since its place is the best of many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.development.smooth_curve import log_step

MOST = 8  # segments


class ChangePoint(NamedTuple):
    """A kink: its step, the slopes d LLC / d log step on either side, and the BIC that the curve loses without it.

    gain: BIC of the best curve with the other kinks alone, less the best one's.
    """

    step: float
    before: float
    after: float
    gain: float


class Segmentation(NamedTuple):
    """The curve of the lowest BIC: its kinks, its values [T], and the BIC of the best curve of 1, 2, ... segments."""

    points: list[ChangePoint]
    values: np.ndarray
    bic: np.ndarray


def change_points(steps: np.ndarray, llc: np.ndarray, noise: np.ndarray, most: int = MOST) -> Segmentation:
    """The change points of values [T] with known noise [T] (standard deviations), of up to `most` segments.

    `ValueError` for fewer than three checkpoints, and for a noise that is not above 0.
    """
    at, values, noise = log_step(steps), np.asarray(llc, float), np.asarray(noise, float)
    if len(at) < 3 or not len(at) == len(values) == len(noise):
        raise ValueError(f"change points need 3 checkpoints or more, not {len(at)}")
    if not (np.isfinite(noise).all() and (noise > 0).all()):
        raise ValueError("the noise must be above 0")
    most = max(1, min(most, (len(at) - 1) // 2))
    knots = best_knots(at, values, noise, most)
    penalty = 2 * np.log(len(at))
    bic = np.array([_fitted(at, values, noise, kinks)[0] + penalty * (len(kinks) + 1) for kinks in knots])
    chosen = knots[int(np.argmin(bic))]
    smallest, slopes, curve = _fitted(at, values, noise, chosen)
    points = []
    for number, knot in enumerate(chosen):
        without, _, _ = _fitted(at, values, noise, [*chosen[:number], *chosen[number + 1 :]])
        gain = without - smallest - penalty
        points.append(ChangePoint(float(np.asarray(steps)[knot]), slopes[number], slopes[number + 1], float(gain)))
    return Segmentation(points, curve, bic)


def change_points_if_noisy(steps: np.ndarray, llc: np.ndarray, noise: np.ndarray) -> Segmentation | None:
    """The change points; None for a curve without noise, which gives nothing to compare a kink with."""
    return change_points(steps, llc, noise) if (noise > 0).all() else None


def best_knots(at: np.ndarray, values: np.ndarray, noise: np.ndarray, most: int) -> list[list[int]]:
    """The kinks (indices) of the best continuous curve of 1, 2, ..., `most` segments.

    cost[k][j](z): the least chi^2 of the points up to j of k segments whose last ends at j with the value z. It is the
    lowest of parabolas, one for each choice of kinks that may still win (Fearnhead, Maidstone and Letchford 2019).
    """
    last = len(at) - 1
    pieces = {(i, j): _segment(at, values, noise, i, j) for i in range(last) for j in range(i + 1, last + 1)}
    start = np.array([[1.0, -2 * values[0], values[0] ** 2]]) / noise[0] ** 2
    costs: dict[int, tuple[np.ndarray, list[list[int]]]] = {0: (start, [[]])}
    knots = []
    for segments in range(1, most + 1):
        costs = {j: _extended(costs, pieces, j, segments) for j in range(segments, last + 1)}
        parabolas, kinks = costs[last]
        least = parabolas[:, 2] - parabolas[:, 1] ** 2 / (4 * parabolas[:, 0])
        knots.append(kinks[int(np.argmin(least))])
    return knots


def _extended(
    costs: dict[int, tuple[np.ndarray, list[list[int]]]],
    pieces: dict[tuple[int, int], np.ndarray],
    end: int,
    segments: int,
) -> tuple[np.ndarray, list[list[int]]]:
    """The parabolas of curves to `end` with a segment more, of which no other is lower everywhere, and their kinks."""
    parabolas, kinks = [], []
    for begin, (before, known) in costs.items():
        if begin < end:
            parabolas.append(_minimised(before, pieces[begin, end]))
            kinks += [[*knots, begin] if segments > 1 else knots for knots in known]
    joined = np.concatenate(parabolas)
    lowest = envelope(joined)
    return joined[lowest], [kinks[one] for one in lowest]


def _segment(at: np.ndarray, values: np.ndarray, noise: np.ndarray, begin: int, end: int) -> np.ndarray:
    """chi^2 of the points after `begin`, to `end`, about a line from value a to value b.

    As the numbers p, q, r, s, t, c of p a^2 + q a b + r b^2 + s a + t b + c.
    """
    inside = slice(begin + 1, end + 1)
    right = (at[inside] - at[begin]) / (at[end] - at[begin])
    left, y, w = 1 - right, values[inside], noise[inside] ** -2.0
    return np.array(
        [
            (w * left**2).sum(),
            2 * (w * left * right).sum(),
            (w * right**2).sum(),
            -2 * (w * left * y).sum(),
            -2 * (w * right * y).sum(),
            (w * y**2).sum(),
        ]
    )


def _minimised(before: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """min over a of before(a) + segment(a, b), parabolas [P, 3] in b: x2 b^2 + x1 b + x0."""
    p, q, r, s, t, c = segment
    square, linear = before[:, 0] + p, before[:, 1] + s
    return np.stack(
        [r - q**2 / (4 * square), t - q * linear / (2 * square), before[:, 2] + c - linear**2 / (4 * square)], axis=1
    )


def envelope(parabolas: np.ndarray) -> list[int]:
    """Which of parabolas [P, 3] are the lowest somewhere, from left to right."""
    square, linear, constant = parabolas.T
    here = int(np.lexsort((constant, -linear, square))[0])  # the lowest at -infinity
    place, kept = -np.inf, [here]
    while True:
        crossing = _next_below(parabolas - parabolas[here], place)
        other = int(np.argmin(crossing))
        if not np.isfinite(crossing[other]):
            return list(dict.fromkeys(kept))
        place, here = float(crossing[other]), other
        kept.append(here)


def _next_below(differences: np.ndarray, place: float) -> np.ndarray:
    """Where each difference [P, 3] first becomes negative to the right of a place; inf where it does not."""
    a, b, c = differences.T
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.where(b**2 - 4 * a * c > 0, b**2 - 4 * a * c, np.nan))
        # from + to -: the smaller root where it opens upwards, the larger one where it opens downwards
        curved = (-b - root) / (2 * a)
        crossings = np.where(a == 0, np.where(b < 0, -c / b, np.inf), curved)
    return np.where(np.isfinite(crossings) & (crossings > place), crossings, np.inf)


def _fitted(
    at: np.ndarray, values: np.ndarray, noise: np.ndarray, knots: Sequence[int]
) -> tuple[float, list[float], np.ndarray]:
    """chi^2, slopes and values [T] of the least squares curve with these kinks."""
    hinges = [np.clip(at - at[knot], 0, None) for knot in knots]
    design = np.stack([np.ones_like(at), at, *hinges], axis=1)
    coefficients, *_ = np.linalg.lstsq(design / noise[:, None], values / noise, rcond=None)
    curve = design @ coefficients
    return float((((values - curve) / noise) ** 2).sum()), np.cumsum(coefficients[1:]).tolist(), curve
