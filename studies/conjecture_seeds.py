"""Which runs of a conjecture trained, and the value of each: a verdict is of those that did."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.analysis import trained
from icl_lab.src import intervals
from icl_lab.src.intervals import Interval
from icl_lab.store import rundir
from icl_lab.studies.claim import Measurement

DONE = "done"


class Seeds(NamedTuple):
    """Each seed's values of the predictions, by name, and whether its run trained; None where no criterion can say."""

    values: dict[int, dict[str, float | None]]
    trained: dict[int, bool | None]

    @property
    def defined(self) -> bool:
        """Whether the criterion of the family says of every run whether it trained."""
        return None not in self.trained.values()

    @property
    def num_trained(self) -> int:
        """How many runs trained."""
        return sum(met is True for met in self.trained.values())

    @property
    def share(self) -> Interval:
        """The share of runs that trained, with its 90 % interval."""
        return intervals.clopper_pearson(self.num_trained, len(self.trained))


@lru_cache(maxsize=4096)
def of_run(run: Path) -> bool | None:
    """Whether a run trained: by its family's criterion, and never one that diverged."""
    return trained.of_run(run) if rundir.read_status(run) == DONE else False


def of_those_that_trained(measurement: Measurement, met: Mapping[int, bool | None]) -> Measurement:
    """A measurement of all runs as a claim on those that trained has it: nan for the others.

    None for a value that cannot be computed for a run which may have trained.
    """

    def value_of(seed: int, value: float | None) -> float | None:
        if met.get(seed) is False:
            return math.nan
        return None if value is None or math.isnan(value) else value

    return measurement._replace(values=tuple(map(value_of, measurement.seeds, measurement.values)))


def by_seed(rows: Sequence[Mapping[str, Any]], met: Mapping[int, bool | None]) -> Seeds:
    """The values in the rows of claims, seed by seed."""
    of_claims = {row["claim"]: dict(zip(*map(json.loads, (row["seeds"], row["values"])), strict=True)) for row in rows}
    return Seeds({seed: {name: found.get(seed) for name, found in of_claims.items()} for seed in met}, dict(met))
