"""The local learning coefficient while a run trains: at every K-th record, from the parameters in memory.

Nothing is saved or loaded for it, and the numbers are those of `python -m analysis.llc` on the run's snapshots, bit for
bit. docs/llc.md says what they mean.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import cli
from analysis.llc import add_flags as add_settings
from analysis.llc import settings_of
from src.checks import require

if TYPE_CHECKING:
    from analysis.measures.llc import Estimator
    from analysis.measures.llc_settings import Settings
    from runners.pack import Pack

PREFIX = "llc_"
RECORDED = ("llc", "llc_low", "llc_high", "saturation", "health")  # of a row, in a record as llc, llc_low, llc_health


class Llc(NamedTuple):
    """An estimate at one in `every` records, with these settings."""

    every: int
    settings: Settings


def add_flags(built: cli.Parser) -> None:
    """The flags of a runner."""
    built.add_argument(
        f"--{PREFIX}every", type=int, metavar="K", help="estimate the local learning coefficient at one in K records"
    )
    add_settings(built, PREFIX)


def from_flags(flags: argparse.Namespace) -> Llc | None:
    """What the flags ask for; `ConfigError` for settings that no chain can have, or without K."""
    every, settings = getattr(flags, f"{PREFIX}every"), settings_of(flags, PREFIX)
    if every is None:
        asked = [name for name in vars(flags) if name.startswith(PREFIX) and getattr(flags, name) is not None]
        require(not asked, f"--{asked[0] if asked else ''} is of --{PREFIX}every K, which is not given")
        return None
    require(every >= 1, f"{PREFIX}every is {every}; it must be 1 or more")
    return Llc(every, settings)


class Watch:
    """Estimates the LLC of a pack's runs at the records that are due."""

    def __init__(self, asked: Llc | None):
        self.asked = asked
        self.estimators: dict[int, Estimator] = {}
        self.note = ""  # the last estimate, for the progress display

    def values(self, pack: Pack, index: int) -> dict[str, Any]:
        """What a run's record has of it: nothing where none is due; None for an estimate that is not defined."""
        if self.asked is None or not is_due(pack.record_steps, pack.step, self.asked.every):
            return {}
        row, _ = self._estimator(pack, index)(pack.step, pack.params(index))
        self.note = f"llc {row['llc']:.4g}"
        return {
            name if name.startswith("llc") else f"{PREFIX}{name}": None
            if isinstance(row[name], float) and math.isnan(row[name])
            else row[name]
            for name in RECORDED
        }

    def _estimator(self, pack: Pack, index: int) -> Estimator:
        from analysis.measures.llc import Estimator

        assert self.asked is not None
        if index not in self.estimators:
            self.estimators[index] = Estimator(pack.lanes[index].job.config, self.asked.settings, pack.shared)
        return self.estimators[index]


def is_due(record_steps: Sequence[int], step: int, every: int) -> bool:
    """Whether a step's record is one in `every`, counted from the first."""
    return step in record_steps and record_steps.index(step) % every == 0
