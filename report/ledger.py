"""The machinery of a ledger of claims: what a claim is, when it counts as reproduced, and the table of measurements.

A claim's definition (`report.claims`) says what is accepted before anything is measured; a measurement is a value for
each seed, kept in claims.csv with where it comes from. The verdict is made of the two each time the page is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from src.statistics import mean_and_interval
from store import outputs
from store.atomic import csv_bytes
from store.readers import expecting, read_csv
from sweeps.grid import Grid

WRITER = "report"  # of tables and pages here
PROFILES = ("quick", "full", "gpu")  # each holds all claims of those before it
VON_OSWALD = "von Oswald et al. 2023, arXiv 2212.07677v2"
RAVENTOS = "Raventos et al. 2023, arXiv 2306.15063"
CARROLL = "Carroll et al. 2025, arXiv 2501.17745"
COMMANDS = {VON_OSWALD: "report.reproduce", RAVENTOS: "report.diversity", CARROLL: "report.diversity"}
VERDICTS = ("reproduced", "partly", "not", "not run")


class Runs(NamedTuple):
    """Trainings that claims are measured on: a model of the registry with settings of its own, for each seed.

    With axes a seed has a run for each point of theirs, and a measure takes them as a tuple, in the axes' order.
    """

    model: str
    settings: Mapping[str, Any] = {}
    seeds: tuple[int, ...] = (0, 1, 2)
    axes: Mapping[str, Sequence[Any]] = {}
    data_offset: int = 0

    @property
    def grid(self) -> Grid:
        """What the sweeps train."""
        return Grid((self.model,), self.axes, self.seeds, self.settings, self.data_offset)


class Claim(NamedTuple):
    """What a paper says, and how it is compared with what we measure.

    low and high: the means that count as reproduced, both ends included; expected: the paper's or the derived number;
    source: where the range comes from. runs: a name in `report.claims.RUNS`, or "" for what needs no training, and
    measure: its value for one trained run, or for one seed; beside: further runs, of which the one of the same seed is
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


class _Profiled(Protocol):
    @property
    def profile(self) -> str: ...


T = TypeVar("T", bound=_Profiled)


def of_profile(items: Iterable[T], profile: str) -> list[T]:
    """The claims, or the figures, of a profile and those before it."""
    return [item for item in items if PROFILES.index(item.profile) <= PROFILES.index(profile)]


def verdict(claim: Claim, measurement: Measurement | None) -> str:
    """reproduced: the mean (of an `every` claim each seed) lies in the accepted range, as many errors from 0 as asked.

    partly: it does not, but at least one seed does and the 95 % interval reaches the range.
    """
    if measurement is None:
        return "not run"
    inside = [claim.low <= value <= claim.high for value in measurement.values]
    mean, half = _mean_and_half(measurement)
    within = all(inside) if claim.every else claim.low <= mean <= claim.high
    if within and claim.errors:
        within = abs(mean) >= claim.errors * np.std(measurement.values, ddof=1) / np.sqrt(len(inside))
    if within:
        return "reproduced"
    return "partly" if any(inside) and mean - half <= claim.high and mean + half >= claim.low else "not"


def row(claim: Claim, measurement: Measurement | None, remark: str = "") -> dict[str, Any]:
    """A claim's line of the ledger, with the command that measures it, and what limits it if it is not reproduced."""
    mean, half = _mean_and_half(measurement) if measurement else (None, None)
    found = measurement or Measurement((), (), float("nan"), "", "", "")
    decided = verdict(claim, measurement)
    return {
        "claim": claim.name,
        "paper": claim.paper,
        "figure": claim.figure,
        "says": claim.says,
        "expected": claim.expected,
        "low": claim.low,
        "high": claim.high,
        "source": claim.source,
        "mean": mean,
        "mean_low": None if mean is None or half is None else mean - half,
        "mean_high": None if mean is None or half is None else mean + half,
        "verdict": decided,
        "profile": claim.profile,
        "command": f"python -m {COMMANDS[claim.paper]} --claims {claim.name}",
        "runs": claim.runs,
        "values": json.dumps(found.values),
        "seeds": json.dumps(found.seeds),
        "minutes": None if measurement is None else found.minutes,
        "device": found.device,
        "date": found.date,
        "git_hash": found.git_hash,
        "trained_at": found.trained_at,
        "cells": " ".join(found.cells),
        "remark": "" if decided == "reproduced" else remark,
    }


def _mean_and_half(measurement: Measurement) -> tuple[float, float]:
    """The mean and the half width of its 95 % t interval over seeds; 0 for values without a spread, or alone."""
    values = np.array(measurement.values, float)
    if not np.isfinite(values).all():
        return float("nan") if np.isnan(values).any() else float("inf"), 0.0
    mean, half = mean_and_interval(values)
    return float(mean), 0.0 if np.isnan(half) else float(half)


def write_ledger(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes claims.csv."""
    outputs.write({path: csv_bytes(rows)}, WRITER)


def read_measurements(path: Path) -> dict[str, Measurement]:
    """The measurements that claims.csv holds, by claim; none where there is no such file."""
    if not path.exists():
        return {}
    words = ("claim", "values", "seeds", "device", "date", "git_hash", "trained_at", "cells")
    table = read_csv(path, ("minutes",), words)
    found = {}
    with expecting(path, "a ledger of claims"):
        for _, line in table.iterrows():
            values, seeds = (tuple(json.loads(line[name])) for name in ("values", "seeds"))
            if values:
                facts = {name: str(line[name]) for name in ("device", "date", "git_hash", "trained_at")}
                cells = tuple(str(line["cells"]).split())
                found[str(line["claim"])] = Measurement(values, seeds, float(line["minutes"]), cells=cells, **facts)
    return found
