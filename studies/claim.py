"""A claim: a number that a paper states, theory gives or we found, the range accepted for it, and how it is measured.

The range is committed before the claim is measured. A measurement is one value for each seed; the verdict follows from
the two (`studies.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

VON_OSWALD = "von Oswald et al. 2023, arXiv 2212.07677v2"
RAVENTOS = "Raventos et al. 2023, arXiv 2306.15063"
CARROLL = "Carroll et al. 2025, arXiv 2501.17745"
OURS = "this laboratory"
THEORY = "theory"  # the source of a range that a theorem gives

# source of a range -> what it is
ORIGINS = {
    "plot reading": "read off a paper's plot. The tolerance is the larger of 5 % and the reading error. If the plot "
    "shows a spread, the tolerance is this spread. If two curves of one plot are compared, it is the distance at which "
    "they can be distinguished",
    "text": "stated in a paper's text",
    THEORY: "a theorem, with a margin for discretisation and sampling",
    "derived": "a closed form or an independent computation, with a margin for discretisation and sampling",
    "prototype": "a separate prototype program, run on other samples",
    "bound": "a number that we chose to make a qualitative statement of a paper testable",
    "expectation": "what we expected before any run",
    "pilot": "what our pilot runs gave; the claim only repeats them on other seeds",
}

UNBOUNDED = 1e6  # as an upper end: there is none; as a lower end, its negative
SAMPLED_SEEDS = tuple(range(1360, 1368))  # of what is measured on sampled tasks alone, without training
UNTRAINED_SUFFIX = "_untrained"  # behind the name of runs: the same networks before training

# what a claim is about -> the heading of its list
LISTS = {
    "paper": "What papers report",
    "ours": "What we find besides",
}


class Untrained(NamedTuple):
    """A weak control: the same networks before training, the first seeds; both: the paired runs' networks too."""

    both: bool = False


class Rival(NamedTuple):
    """The control that could be mistaken for what is claimed: the nearest other algorithm, or other training.

    measure: what is measured in place of the claim's; runs: those that replace the claim's. later: chosen after values
    of the claim had been read.
    """

    name: str
    measure: Callable[..., float] | None = None
    runs: tuple[str, ...] = ()
    later: bool = False


class Without(NamedTuple):
    """No control applies, for this reason."""

    reason: str


class Claim(NamedTuple):
    """What a paper says, and how it is compared with what we measure.

    low and high: the accepted values, both ends included; expected: the paper's or the derived number; source: where
    the range comes from. measure: the value of one run, or of one seed; nan where it is not defined for a run that did
    not learn. scale: of the interval (`src.intervals.SCALES`). runs: a name among the study's runs, whose seeds are the
    n of the reading, or "" for what needs no training; paired: further runs, whose run at the same index, usually of
    the same seed, is measure's second argument.
    no_effect: the values, if any, that count as no effect. every: each seed must lie in the range. among: of the runs
    for which this is 1, as those that trained; another claim is of their share, and the control is measured without it.
    spacing: of the records from which a time is read. infinite: what an infinite value means, if not divergence. cut:
    between two kinds of runs, proposed by the gap of an earlier reading; the kinds are counted by it.
    tier: "main", with a rival and at least 8 seeds at one look, or "supporting". smaller: in what the setting falls
    short of the paper's. fact: the sentence that it states, which claims that state it are counted by (`stating`).
    paper: whose claim it is.
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
    control: Untrained | Rival | Without = Untrained()
    no_effect: tuple[float, float] | None = None
    every: bool = False
    among: Callable[..., float] | None = None
    spacing: float = 0.0
    infinite: str = ""
    cut: float | None = None
    tier: str = "supporting"
    smaller: str = ""
    fact: str = ""
    paper: str = VON_OSWALD

    @property
    def run_names(self) -> tuple[str, ...]:
        """The names of all runs that it is measured on."""
        return tuple(name for name in (self.runs, self.paired) if name)

    @property
    def control_names(self) -> tuple[str, ...]:
        """The names of all runs that its control is measured on; those of a rival may be its own."""
        match self.control:
            case Untrained(both) if self.runs:
                paired = f"{self.paired}{UNTRAINED_SUFFIX}" if both else self.paired
                return tuple(name for name in (f"{self.runs}{UNTRAINED_SUFFIX}", paired) if name)
            case Rival(runs=runs):
                return runs or self.run_names
        return ()

    @property
    def origin(self) -> str:
        """Where the range comes from, a key of `ORIGINS`; "ours" bounds a paper's sentence, or follows a pilot."""
        ours = "bound" if self.about == "paper" else "pilot"
        return ours if self.source == "ours" else self.source

    @property
    def has_control(self) -> bool:
        """Whether it is judged with a control."""
        return isinstance(self.control, Rival) or bool(self.control_names)

    @property
    def trained(self) -> tuple[str, ...]:
        """The names of all of these runs."""
        return tuple(dict.fromkeys((*self.run_names, *self.control_names)))


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


def stating(claims: Iterable[Claim], facts: Mapping[str, Sequence[str]]) -> tuple[Claim, ...]:
    """The claims with the facts that they state, given with their claims' names; without one, its own name.

    `ValueError` for a claim of two facts, and for one that is not there.
    """
    of_claim: dict[str, str] = {}
    for fact, names in facts.items():
        for name in names:
            if name in of_claim:
                raise ValueError(f"{name} states two facts: {of_claim[name]} {fact}")
            of_claim[name] = fact
    stated = tuple(claim._replace(fact=of_claim.pop(claim.name, claim.name)) for claim in claims)
    if of_claim:
        raise ValueError(f"no claims {', '.join(of_claim)}, which have facts")
    return stated
