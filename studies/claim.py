"""A claim: a number that a paper states, theory gives or we found, the range accepted for it, and how it is measured.

The range is committed before the claim is measured. A measurement is one value for each seed; the verdict follows from
the two (`studies.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

VON_OSWALD = "von Oswald et al. 2023, arXiv 2212.07677v2"
RAVENTOS = "Raventos et al. 2023, arXiv 2306.15063"
CARROLL = "Carroll et al. 2025, arXiv 2501.17745"
OURS = "this laboratory"

UNBOUNDED = 1e6  # as an upper end: there is none; as a lower end, its negative
SAMPLED_SEEDS = tuple(range(8))  # of what is measured on sampled tasks alone, without training
UNTRAINED_SUFFIX = "_untrained"  # behind the name of runs: the same networks before training

# what a claim is about -> the heading of its list
LISTS = {
    "paper": "What papers report",
    "ours": "What we find besides",
}


class Earlier(NamedTuple):
    """The range of a claim before it was revised, the commit that revised it, and why."""

    low: float
    high: float
    commit: str
    reason: str


def was(low: float, high: float, reason: str) -> Earlier:
    """A range before the commit in which verdicts became comparisons of intervals with ranges."""
    return Earlier(low, high, "5cdc4eb", reason)


class Claim(NamedTuple):
    """What a paper says, and how it is compared with what we measure.

    low and high: the accepted values, both ends included; expected: the paper's or the derived number; source: where
    the range comes from. measure: the value of one run, or of one seed; nan where it is not defined for a run that did
    not learn. scale: of the interval (`src.intervals.SCALES`). runs: a name among the study's runs, or "" for what
    needs no training; paired: further runs, whose run at the same index, usually of the same seed, is measure's second
    argument.
    control: the runs that replace these two for the control's measurement; None for the same networks untrained, ()
    where none applies, for the reason in `uncontrolled`. no_effect: the values, if any, that count as no effect. every:
    each seed must lie in the range. among: of the runs for which this is 1, as those that trained; another
    claim is of their share, and the control is measured without it.
    spacing: of the records from which a time is read. infinite: what an infinite value means, if not divergence.
    earlier: its range before it was revised. paper: whose claim it is.
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
    paired: str = ""
    scale: str = "log"
    about: str = "paper"
    control: tuple[str, ...] | None = None
    uncontrolled: str = ""
    no_effect: tuple[float, float] | None = None
    every: bool = False
    among: Callable[..., float] | None = None
    spacing: float = 0.0
    infinite: str = ""
    earlier: Earlier | None = None
    paper: str = VON_OSWALD

    @property
    def run_names(self) -> tuple[str, ...]:
        """The names of all runs that it is measured on."""
        return tuple(name for name in (self.runs, self.paired) if name)

    @property
    def control_names(self) -> tuple[str, ...]:
        """The names of all runs that its control is measured on."""
        if self.control is not None or not self.runs:
            return self.control or ()
        return (f"{self.runs}{UNTRAINED_SUFFIX}", *((self.paired,) if self.paired else ()))

    @property
    def trained(self) -> tuple[str, ...]:
        """The names of all of these runs."""
        return (*self.run_names, *self.control_names)


class Measurement(NamedTuple):
    """A claim's value for each seed, its control's, and where they come from.

    A value is nan for a run that the claim leaves out, None where it cannot be computed for one that it does not.
    minutes: of training and measuring; device and trained_at, the commits, are the runs' own; cells: their directories.
    """

    values: tuple[float | None, ...]
    seeds: tuple[int, ...]
    minutes: float
    device: str
    date: str
    git_hash: str
    trained_at: str = ""
    cells: tuple[str, ...] = ()
    control_values: tuple[float | None, ...] = ()


def around(value: float, share: float) -> tuple[float, float]:
    """The range of a value plus or minus this share of it."""
    return value * (1 - share), value * (1 + share)
