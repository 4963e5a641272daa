"""How often a rule says "reproduced" of a claim whose true value lies at the edge of its range: at most 5 %.

python -m studies.error_rates

Simulates every rule at its worst case with the verdicts themselves, and writes report/ledger/error_rates.csv. It also
has the methods that the rules replace, which err more often: means of skewed values, and of learnt and stuck runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from icl_lab.lab import cli
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import out_folder
from icl_lab.studies.claim import UNBOUNDED, Claim, Measurement
from icl_lab.studies.ledger import ERROR_RATES, WRITER
from icl_lab.studies.verdict import verdict_of

ALLOWED = 0.05
DRAWS = 25_000
SEEDS = (3, 5, 8)
SKEW = 0.5  # standard deviation of the logarithm
STUCK = 1 / 3  # the share of runs that stay on a plateau, in the cases with one


class Case(NamedTuple):
    """A rule, the range, and the values [S] of a simulated study, whose true value lies at an edge or outside.

    is_used: whether claims are judged so; what is not used is simulated to show why.
    """

    rule: str
    distribution: str
    claim: Claim
    seeds: int
    draw: Callable[[np.random.Generator, int], np.ndarray]
    is_used: bool = True


def _claim(low: float, high: float, scale: str, **rules: Any) -> Claim:
    return Claim("simulated", "", "", low, low, high, "", lambda run: 0.0, scale=scale, **rules)


def cases() -> Iterator[Case]:
    """Every rule at its worst case."""
    for seeds in SEEDS:
        yield Case(
            "linear, an upper end", "normal", _claim(-9, 1, "linear"), seeds, lambda rng, n: rng.normal(1, 0.5, n)
        )
        yield Case("linear, two ends", "normal", _claim(0, 1, "linear"), seeds, lambda rng, n: rng.normal(0, 0.1, n))
        yield Case("at least, not below 0", "normal, cut", _claim(1, UNBOUNDED, "nonnegative"), seeds, _cut_normal)
        yield Case("log, an upper end", "lognormal", _claim(0, 1, "log"), seeds, lambda rng, n: rng.lognormal(0, 1, n))
        yield Case(
            "log, a lower end", "lognormal", _claim(1, UNBOUNDED, "log"), seeds, lambda rng, n: rng.lognormal(0, 1, n)
        )
        yield Case("positive values, an upper end", "lognormal", _claim(0, 1, "nonnegative"), seeds, _skewed)
        yield Case("shares of tasks, an upper end", "lognormal", _claim(0, 0.1, "fraction"), seeds, _skewed_shares)
        yield Case("shares of tasks, a lower end", "1 - lognormal", _claim(0.95, 1, "fraction"), seeds, _near_one)
        yield Case("R^2, a lower end", "1 - lognormal", _claim(0.95, 1, "complement"), seeds, _near_one)
        yield Case("linear, an upper end", "lognormal", _claim(-9, 1, "linear"), seeds, _skewed_mean, is_used=False)
        yield Case(
            "linear, a lower end",
            "1 - lognormal",
            _claim(0.95, 1, "linear"),
            seeds,
            _near_one_on_average,
            is_used=False,
        )
        yield Case("median, an upper end", "a third infinite", _claim(0, 1, "log"), seeds, _some_infinite)
        yield Case("cosine, a lower end", "tanh of normal", _claim(0.95, 1, "fisher"), seeds, _cosines)
        yield Case("time on a grid", "lognormal, rounded up", _claim(0, 1000, "log", spacing=250), seeds, _on_a_grid)
        yield Case("every run", "half of runs outside", _claim(0, 1, "linear", every=True), seeds, _half_outside)
    for seeds, edge in ((5, 0.5), (8, 0.5), (8, 0.6)):
        draw = lambda rng, n, edge=edge: rng.binomial(1, edge, n).astype(float)  # noqa: E731
        yield Case(f"share of runs, at least {edge}", "0 or 1", _claim(edge, 1, "share"), seeds, draw)
    stuck, learnt = _some_stuck(np.log(0.5)), _claim(0, 1, "log", among=bool)
    for seeds in SEEDS:
        yield Case("mean of all", "a third of runs stuck", _claim(0, 1, "log"), seeds, stuck, is_used=False)
        yield Case("mean of those that learnt", "a third of runs stuck", learnt, seeds, _some_left_out)


def _cut_normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.maximum(rng.normal(1, 0.4, n), 0)


def _skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Their geometric mean is at the edge."""
    return rng.lognormal(0, SKEW, n)


def _skewed_shares(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.minimum(0.1 * _skewed(rng, n), 1)


def _near_one(rng: np.random.Generator, n: int) -> np.ndarray:
    """The geometric mean of 1 - v is at the edge."""
    return 1 - 0.05 * _skewed(rng, n)


def _near_one_on_average(rng: np.random.Generator, n: int) -> np.ndarray:
    """Their arithmetic mean is at the edge."""
    return 1 - 0.05 * _skewed_mean(rng, n)


def _some_infinite(rng: np.random.Generator, n: int) -> np.ndarray:
    """A third of runs diverge; the median, of all, is at the edge."""
    distance, place = np.abs(rng.normal(0, 1, n)), rng.random(n)
    return np.where(place < 0.5, np.exp(-distance), np.where(place < 0.5 + STUCK, np.inf, np.exp(distance)))


def _skewed_mean(rng: np.random.Generator, n: int) -> np.ndarray:
    """Their arithmetic mean is at the edge."""
    return rng.lognormal(-(SKEW**2) / 2, SKEW, n)


def _cosines(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.tanh(rng.normal(np.arctanh(0.95), 0.3, n))


def _on_a_grid(rng: np.random.Generator, n: int) -> np.ndarray:
    """Times read from records of every 250 steps: the first record after them."""
    return 250 * np.ceil(1000 * rng.lognormal(0, 0.3, n) / 250)


def _half_outside(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.5 + rng.binomial(1, 0.5, n)


def _some_stuck(log_mean: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Those that learn lie well inside; those that do not are 20 times as far as the range goes."""
    return lambda rng, n: np.where(rng.random(n) < STUCK, 20.0, rng.lognormal(log_mean, 0.1, n))


def _some_left_out(rng: np.random.Generator, n: int) -> np.ndarray:
    """Those that learn have their true value at the edge."""
    return np.where(rng.random(n) < STUCK, np.nan, rng.lognormal(0, 0.5, n))


def rates(draws: int = DRAWS) -> list[dict[str, Any]]:
    """The share of simulated studies that say "reproduced", by case."""
    return [
        {
            "rule": case.rule,
            "distribution": case.distribution,
            "seeds": case.seeds,
            "rate": _rate(case, draws),
            "draws": draws,
            "used": int(case.is_used),
        }
        for case in cases()
    ]


def _rate(case: Case, draws: int) -> float:
    rng = np.random.default_rng(0)
    seeds = tuple(range(case.seeds))
    studies = (Measurement(tuple(case.draw(rng, case.seeds)), seeds, 0.0, "", "", "") for _ in range(draws))
    return sum(verdict_of(case.claim, study).verdict == "reproduced" for study in studies) / draws


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("studies.error_rates", "Simulates how often each rule wrongly says that a claim is reproduced.")
    built.add_argument("--report", type=out_folder, default="report", help="folder of the results")
    return built


def main(argv: list[str]) -> int:
    """The command line; 1 if a rule in use errs in more than 5 %, beyond what the simulation's own error explains."""
    path = parser().parse(argv).report / ERROR_RATES
    outputs.check([path], WRITER)
    rows = rates()
    outputs.write({path: csv_bytes(rows)}, WRITER)
    for row in rows:
        print(
            f"{row['rule']}, {row['distribution']}, {row['seeds']} seeds: {100 * row['rate']:.2f} % wrongly reproduced"
        )
    return int(max(row["rate"] for row in rows if row["used"]) > allowed(DRAWS))


def allowed(draws: int) -> float:
    """5 %, and three standard errors of a share of 5 % of the simulated studies."""
    return ALLOWED + 3 * float(np.sqrt(ALLOWED * (1 - ALLOWED) / draws))


if __name__ == "__main__":
    cli.launch(main)
