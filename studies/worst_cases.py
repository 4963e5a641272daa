"""Simulated studies at which the rules of verdicts are tried: true values at an edge of the claim's range."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from icl_lab.src.intervals import LEVEL
from icl_lab.studies import two_kinds
from icl_lab.studies.claim import UNBOUNDED, Claim
from icl_lab.studies.decisions import after_looks
from icl_lab.studies.looks import ERROR

FRESH = ((8,), (10,), (16,), (24,), (40,))  # numbers of seeds that two kinds need
ONE_LOOK = ((3,), (5,), *FRESH)
LOOKS = (*ONE_LOOK, (3, 5), (3, 8), (5, 8), (3, 5, 8))
ON_A_GRID = tuple(looks for looks in LOOKS if looks != (3, 5, 8))  # times were not read so, and three may be one record
SKEW = 0.5  # standard deviation of the logarithm
STUCK = 1 / 3  # the share of runs that stay on a plateau, in the cases with one

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]  # [S, n]: a row for each study
Decide = Callable[[Claim, np.ndarray, tuple[int, ...]], np.ndarray]  # [S]: 1 reproduced, -1 contradicted, 0 neither


class Case(NamedTuple):
    """A rule, the range, and the values of simulated studies, whose true value lies at an edge of it or outside.

    looks: each is tried. true: where the claim is wrong in `draw`, values of which it is right, and "contradicted"
    wrong. alpha: the rule's own one-sided level, None for that of the looks; error: what it may err in. is_used:
    whether claims are judged so; what is not used is simulated to show why.
    """

    rule: str
    distribution: str
    claim: Claim
    draw: Draw
    looks: tuple[tuple[int, ...], ...] = LOOKS
    true: Draw | None = None
    decide: Decide = after_looks
    alpha: float | None = None
    error: float = ERROR
    is_used: bool = True


def cases() -> Iterator[Case]:
    """Every rule at its worst case, and those that they replace."""
    yield from _means()
    yield from _runs()
    yield from _given_up()


def _means() -> Iterator[Case]:
    """Rules of means, on the scales of the values."""
    on_grid = _claim(0, 1000, "log", spacing=250)
    yield Case("linear, an upper end", "normal", _claim(-9, 1, "linear"), _normal(1, 0.5))
    yield Case("linear, two ends", "normal", _claim(0, 1, "linear"), _normal(0, 0.1))
    yield Case("at least, not below 0", "normal, cut", _claim(1, UNBOUNDED, "nonnegative"), _cut_normal)
    yield Case("log, an upper end", "lognormal", _claim(0, 1, "log"), _lognormal(1.0))
    yield Case("log, a lower end", "lognormal", _claim(1, UNBOUNDED, "log"), _lognormal(1.0))
    yield Case("positive values, an upper end", "lognormal", _claim(0, 1, "nonnegative"), _lognormal(SKEW))
    yield Case("shares of tasks, an upper end", "lognormal", _claim(0, 0.1, "fraction"), _skewed_shares)
    yield Case("shares of tasks, a lower end", "1 - lognormal", _claim(0.95, 1, "fraction"), _near_one)
    yield Case("R^2, a lower end", "1 - lognormal", _claim(0.95, 1, "complement"), _near_one)
    yield Case("cosine, a lower end", "tanh of normal", _claim(0.95, 1, "fisher"), _cosines)
    yield Case("time on a grid", "lognormal, rounded up", on_grid, _on_a_grid, ON_A_GRID)


def _runs() -> Iterator[Case]:
    """Rules of runs that differ in kind: some diverge, do not learn, or lie outside."""
    inside, every = _claim(0, 1, "linear"), _claim(0, 1, "linear", every=True)
    yield Case("median, an upper end", "a third infinite", _claim(0, 1, "log"), _some_infinite)
    yield Case("every run", "half of runs outside", every, _half_outside, true=_all_inside)
    for edge in (0.5, 0.6):
        yield Case(f"share of runs, at least {edge}", "0 or 1", _claim(edge, 1, "share"), _hits(edge))
    learnt = _claim(0, 1, "log", among=bool)
    yield Case("mean of those that learnt", "a third of runs stuck", learnt, _some_left_out)
    yield Case("counted by a cut", "half of runs outside", inside, _half_outside, FRESH, _all_inside, _counted)
    found = Case("two kinds are found", "normal", inside, _normal(0, 1), FRESH, decide=_has_gap)
    yield found._replace(alpha=two_kinds.ERROR, error=two_kinds.ERROR)


def _given_up() -> Iterator[Case]:
    """Means of skewed values, and of learnt and stuck runs; looks that cost nothing."""
    to_1, from_1, near_one = _claim(-9, 1, "linear"), _claim(1, 9, "linear"), _claim(0.95, 1, "linear")
    at_90 = partial(after_looks, level=LEVEL)
    yield Case("linear, an upper end", "lognormal", to_1, _skewed_mean, is_used=False)
    yield Case("linear, a lower end", "lognormal", from_1, _skewed_mean, is_used=False)
    yield Case("linear, a lower end", "1 - lognormal", near_one, _near_one_on_average, is_used=False)
    yield Case("mean of all", "a third of runs stuck", _claim(0, 1, "log"), _some_stuck, is_used=False)
    on_grid = _claim(0, 1000, "log", spacing=250)
    yield Case("time on a grid", "lognormal, rounded up", on_grid, _on_a_grid, ((3, 5, 8),), is_used=False)
    several = tuple(looks for looks in LOOKS if len(looks) > 1)
    yield Case("the level of one look", "normal", to_1, _normal(1, 0.5), several, None, at_90, ERROR, is_used=False)


def _counted(claim: Claim, values: np.ndarray, looks: tuple[int, ...]) -> np.ndarray:
    """By the share inside the range alone."""
    return np.array(
        [two_kinds.count(row[: looks[-1]], 1.0, claim.low, claim.high).is_reproduced for row in values], int
    )


def _has_gap(claim: Claim, values: np.ndarray, looks: tuple[int, ...]) -> np.ndarray:
    """1 where two kinds are found, of one."""
    gaps, _, deviations = two_kinds.largest_gaps(np.sort(values[:, : looks[-1]], axis=1))
    return (gaps > two_kinds.critical(looks[-1]) * deviations).astype(int)


def _claim(low: float, high: float, scale: str, **rules: Any) -> Claim:
    return Claim("simulated", "", "", low, low, high, "", lambda run: 0.0, scale=scale, **rules)


def _normal(mean: float, deviation: float) -> Draw:
    return lambda rng, shape: rng.normal(mean, deviation, shape)


def _lognormal(deviation: float) -> Draw:
    """Their geometric mean is 1."""
    return lambda rng, shape: rng.lognormal(0, deviation, shape)


def _hits(share: float) -> Draw:
    return lambda rng, shape: rng.binomial(1, share, shape).astype(float)


def _cut_normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.maximum(rng.normal(1, 0.4, shape), 0)


def _skewed_shares(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Their geometric mean is at the edge, .1."""
    return np.minimum(0.1 * rng.lognormal(0, SKEW, shape), 1)


def _near_one(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """The geometric mean of 1 - v is at the edge."""
    return 1 - 0.05 * rng.lognormal(0, SKEW, shape)


def _near_one_on_average(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Their arithmetic mean is at the edge."""
    return 1 - 0.05 * _skewed_mean(rng, shape)


def _skewed_mean(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Their arithmetic mean is at the edge."""
    return rng.lognormal(-(SKEW**2) / 2, SKEW, shape)


def _some_infinite(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """A third of runs diverge; the median, of all, is at the edge."""
    distance, place = np.abs(rng.normal(0, 1, shape)), rng.random(shape)
    return np.where(place < 0.5, np.exp(-distance), np.where(place < 0.5 + STUCK, np.inf, np.exp(distance)))


def _cosines(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.tanh(rng.normal(np.arctanh(0.95), 0.3, shape))


def _on_a_grid(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Times read from records of every 250 steps: the first record after them."""
    return 250 * np.ceil(1000 * rng.lognormal(0, 0.3, shape) / 250)


def _half_outside(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return 0.5 + rng.binomial(1, 0.5, shape)


def _all_inside(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.uniform(0, 1, shape)


def _some_stuck(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Those that learn lie well inside; those that do not are 20 times as far as the range goes."""
    return np.where(rng.random(shape) < STUCK, 20.0, rng.lognormal(np.log(0.5), 0.1, shape))


def _some_left_out(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Those that learn have their true value at the edge."""
    return np.where(rng.random(shape) < STUCK, np.nan, rng.lognormal(0, 0.5, shape))
