"""Measures on runs of languages, which read their summaries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from icl_lab.store import layout
from icl_lab.store.readers import read_npz
from icl_lab.studies.runs import summary_part

Measure = Callable[..., float]
OfSeed = Sequence[Path]
PUBLISHED_STEP = 4.0  # of the published construction, which is not divided by the number of pairs


def value(name: str, part: str = "headline") -> Measure:
    """A number of the summary's test set."""

    def measure(run: Path) -> float:
        number = summary_part(run, part)[name]
        return math.nan if number is None else float(number)

    return measure


def difference(name: str, other: str, part: str = "headline") -> Measure:
    """A number less another."""
    return lambda run: value(name, part)(run) - value(other, part)(run)


def over(name: str, other: str, part: str = "headline") -> Measure:
    """A number over another."""
    return lambda run: value(name, part)(run) / value(other, part)(run)


def at(index: int, measure: Measure) -> Measure:
    """A measure of one of a seed's runs."""
    return lambda runs: measure(runs[index])


def one_over_paired(index: int, measure: Measure) -> Measure:
    """A measure of one of a seed's runs over the same of the paired run."""
    return lambda runs, other: measure(runs[index]) / measure(other)


def over_paired(name: str) -> Measure:
    """A number of the test set over the same of the paired run."""
    return lambda run, other: value(name)(run) / value(name)(other)


def unseen_over_trained(run: Path) -> float:
    """The loss on unseen languages over that on unseen strings of the trained ones."""
    return value("loss", "unseen")(run) / value("loss")(run)


def mean_over(measure: Measure) -> Measure:
    """The mean of a measure over a seed's runs."""
    return lambda runs: float(np.mean([measure(run) for run in runs]))


def reaches(name: str, bound: float) -> Measure:
    """1 where a number of the test set is at most the bound, else 0."""
    return lambda run: float(value(name)(run) <= bound)


def reaches_over(name: str, other: str, bound: float) -> Measure:
    """1 where a number of the test set is at most so many times another, else 0."""
    return lambda run: float(over(name, other)(run) <= bound)


def published_match(run: Path) -> float:
    """The root mean square difference of predictions from the published construction's, over their own.

    That is one step of gradient descent of step 4 / sqrt(17) over the sum of the pairs, with the sign turned.
    """
    batch = read_npz(run / layout.ANALYSIS_BATCH, ("x", "y", "x_query"))
    tf = read_npz(run / layout.PREDICTIONS, ("tf",))["tf"].astype(float)
    x, y, x_query = (batch[name].astype(float) for name in ("x", "y", "x_query"))
    width = x.shape[2] + 1
    construction = -PUBLISHED_STEP / math.sqrt(width) * np.einsum("bn,bnd,bd->b", y, x, x_query)
    return math.sqrt(np.mean((tf - construction) ** 2) / np.mean(tf**2))


def fitted_match(run: Path) -> float:
    """The same for gradient descent with the fitted step."""
    predictions = read_npz(run / layout.PREDICTIONS, ("tf", "gd"))
    tf, gd = predictions["tf"].astype(float), predictions["gd"].astype(float)
    return math.sqrt(np.mean((tf - gd) ** 2) / np.mean(tf**2))
