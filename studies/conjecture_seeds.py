"""The value of each seed of a conjecture, and of those whose runs trained: a share first, then their values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis import trained
from icl_lab.src import intervals
from icl_lab.store import rundir

DONE = "done"


class Seeds(NamedTuple):
    """Each seed's values of the predictions, by name, and whether its run trained; None where no criterion can say.

    Means are those of the runs that trained, with 90 % intervals, as rows of a table have them; none unless some
    trained and others did not.
    """

    values: dict[int, dict[str, float | None]]
    trained: dict[int, bool | None]
    means: dict[str, dict[str, Any]]

    @property
    def defined(self) -> bool:
        """Whether the criterion of the family says of every run whether it trained."""
        return None not in self.trained.values()

    @property
    def num_trained(self) -> int:
        """How many runs trained."""
        return sum(met is True for met in self.trained.values())


def of_run(run: Path) -> bool | None:
    """Whether a run trained: by its family's criterion, and never one that diverged."""
    return trained.of_run(run) if rundir.read_status(run) == DONE else False


def by_seed(rows: Sequence[Mapping[str, Any]], met: Mapping[int, bool | None]) -> Seeds:
    """The values in the rows of claims, seed by seed."""
    of_claims = {row["claim"]: dict(zip(*map(json.loads, (row["seeds"], row["values"])), strict=True)) for row in rows}
    values = {seed: {name: found.get(seed) for name, found in of_claims.items()} for seed in met}
    learnt = [seed for seed, is_trained in met.items() if is_trained]
    apart = 0 < len(learnt) < len(met) and None not in met.values()
    scales = {row["claim"]: row["scale"] for row in rows}
    means = {name: _mean([values[seed][name] for seed in learnt], scales[name]) for name in of_claims if apart}
    return Seeds(values, dict(met), means)


def _mean(values: Sequence[float | None], scale: str) -> dict[str, Any]:
    """The estimate with its interval; None where a value is missing."""
    numbers = np.array(values, float)
    if np.isnan(numbers).any():
        return {"mean": None, "share": None}
    mean, low, high, n = intervals.of(numbers, scale)
    return {"mean": mean, "mean_low": low, "mean_high": high, "n": n, "share": None}
