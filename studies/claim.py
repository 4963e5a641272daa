"""A claim: a number that a paper states or theory gives, the range accepted for it, and how we measure it.

The range is committed before the claim is measured. A measurement is one value for each seed; the verdict follows from
the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from src.statistics import mean_and_interval

VON_OSWALD = "von Oswald et al. 2023, arXiv 2212.07677v2"
RAVENTOS = "Raventos et al. 2023, arXiv 2306.15063"
CARROLL = "Carroll et al. 2025, arXiv 2501.17745"
VERDICTS = ("reproduced", "partly", "not", "not run")
UNBOUNDED = 1e6  # as an upper end: above any value of a run that did not diverge


class Claim(NamedTuple):
    """What a paper says, and how it is compared with what we measure.

    low and high: the means that count as reproduced, both ends included; expected: the paper's or the derived number;
    source: where the range comes from. runs: a name among the study's runs, or "" for what needs no training, and
    measure: its value for one run, or for one seed; beside: further runs, of which the one of the same seed is
    measure's second argument; every: each seed must lie in the range, not their mean; errors: by how many standard
    errors the mean must differ from 0 besides; paper: whose claim it is.
    """

    name: str
    figure: str
    says: str
    expected: float
    low: float
    high: float
    source: str
    measure: Callable[..., float]
    runs: str = ""
    profile: str = "quick"
    beside: str = ""
    every: bool = False
    errors: float = 0.0
    paper: str = VON_OSWALD

    @property
    def run_names(self) -> tuple[str, ...]:
        """The names of all runs that it is measured on."""
        return tuple(name for name in (self.runs, self.beside) if name)


class Measurement(NamedTuple):
    """A claim's value for each seed, and where it comes from.

    minutes: of training and measuring; device and trained_at, the commits, are the runs' own; cells: their directories.
    """

    values: tuple[float, ...]
    seeds: tuple[int, ...]
    minutes: float
    device: str
    date: str
    git_hash: str
    trained_at: str = ""
    cells: tuple[str, ...] = ()


def verdict(claim: Claim, measurement: Measurement | None) -> str:
    """reproduced: the mean (of an `every` claim each seed) lies in the accepted range, as many errors from 0 as asked.

    partly: it does not, but at least one seed does and the 95 % interval reaches the range.
    """
    if measurement is None:
        return "not run"
    inside = [claim.low <= value <= claim.high for value in measurement.values]
    mean, half = mean_and_half_width(measurement)
    within = all(inside) if claim.every else claim.low <= mean <= claim.high
    if within and claim.errors:
        within = abs(mean) >= claim.errors * np.std(measurement.values, ddof=1) / np.sqrt(len(inside))
    if within:
        return "reproduced"
    return "partly" if any(inside) and mean - half <= claim.high and mean + half >= claim.low else "not"


def mean_and_half_width(measurement: Measurement) -> tuple[float, float]:
    """The mean and the half width of its 95 % t interval over seeds; 0 for values without a spread, or alone."""
    values = np.array(measurement.values, float)
    if not np.isfinite(values).all():
        return float("nan") if np.isnan(values).any() else float("inf"), 0.0
    mean, half = mean_and_interval(values)
    return float(mean), 0.0 if np.isnan(half) else float(half)
