"""What is wrong with a study's claims, said in one sentence before anything is trained.

A claim names its runs, their seeds (its n), its range and where that comes from, and a control; a main result has a
rival and at least 8 seeds. A reading is of seeds that no earlier one has seen, and it is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from icl_lab.src.checks import ConfigError, require
from icl_lab.src.intervals import SCALES
from icl_lab.src.words import did_you_mean
from icl_lab.studies import history
from icl_lab.studies.claim import LISTS, ORIGINS, UNTRAINED_SUFFIX, Claim, Rival, Without
from icl_lab.studies.study import PROFILES, Study
from icl_lab.studies.words import MAIN_SEEDS

HISTORY = "studies/history.csv"
# field of a claim -> its words
KNOWN: Mapping[str, Collection[str]] = {
    "scale": SCALES,
    "source": (*ORIGINS, "ours"),
    "tier": ("main", "supporting"),
    "profile": PROFILES,
    "about": LISTS,
}

Read = Mapping[tuple[str, int], Sequence[int]]  # claim and number of the reading -> the seeds that were read


def check(study: Study) -> None:
    """`ConfigError` for the first claim with which something is wrong."""
    names = [claim.name for claim in study.claims]
    twice = next((name for name in names if names.count(name) > 1), "")
    require(not twice, f"two claims are named {twice}; each claim needs a name of its own")
    rules = {**OF_ALL, **OF_THE_HOUSE} if study.file is None else OF_ALL
    for claim in study.claims:
        for wrong in (rule(study, claim) for rule in rules.values()):
            require(not wrong, f"claim {claim.name} {wrong}")


def check_readings(study: Study, claims: Iterable[Claim], read: Read) -> None:
    """`ConfigError` for a claim whose n is not the one that was read, or whose fresh seeds are not fresh."""
    for claim in claims:
        now, reading = seeds_of(study, claim), history.last_reading(claim.name)
        before = read.get((claim.name, reading), now)
        if set(before) != set(now):
            raise ConfigError(
                f"{claim.name} was read on seeds {_listed(before)}, and its runs have seeds {_listed(now)}; "
                f"to measure it again, use a new reading on fresh seeds: {_way_out(study)}"
            )
        for (name, earlier), seeds in read.items():
            again = sorted(set(seeds) & set(now)) if name == claim.name and earlier < reading else []
            require(
                not again,
                f"reading {reading} of {claim.name} has seeds that reading {earlier} used already: {_listed(again)}",
            )


def seeds_of(study: Study, claim: Claim) -> tuple[int, ...]:
    """The seeds of a claim's reading, whose number is its n."""
    return tuple(study.runs_of(claim.runs).seeds) if claim.runs else study.sampled_seeds


def _listed(seeds: Iterable[int]) -> str:
    ordered = sorted(seeds)
    in_a_row = len(ordered) > 2 and ordered == [*range(ordered[0], ordered[-1] + 1)]
    return f"{ordered[0]} to {ordered[-1]}" if in_a_row else ", ".join(map(str, ordered))


def _way_out(study: Study) -> str:
    return f"plan it in {HISTORY}" if study.file is None else "state it as a claim of another name"


# --- rules: what is wrong with a claim, or "" ---


def _runs(study: Study, claim: Claim) -> str:
    known = {*study.runs, *(f"{name}{UNTRAINED_SUFFIX}" for name in study.runs)}
    unknown = next((name for name in claim.trained if name not in known), "")
    near = did_you_mean(unknown.removesuffix(UNTRAINED_SUFFIX), study.runs)
    return f"names the runs {unknown!r}, which the study does not have{near}" if unknown else ""


def _n(study: Study, claim: Claim) -> str:
    without = next((name for name in claim.trained if not study.runs_of(name).seeds), "")
    return f"has no n: its runs {without!r} name no seeds" if without else ""


def _range(study: Study, claim: Claim) -> str:
    in_order = claim.low <= claim.high
    return "" if in_order else f"has the range {claim.low:g} to {claim.high:g}, whose low end is above its high end"


def _words(study: Study, claim: Claim) -> str:
    for field, known in KNOWN.items():
        word = getattr(claim, field)
        if word not in known:
            near = did_you_mean(word, known) or f"; it must be one of {', '.join(known)}"
            return f"has the unknown {field} {word!r}{near}"
    return ""


def _control(study: Study, claim: Claim) -> str:
    match claim.control:
        case Without(reason) if not reason.strip():
            return "has no control, and no reason why"
        case Rival(name) if not name.strip():
            return "has a rival without a name"
        case Rival(name, measure, runs) if measure is None and not runs:
            return f"has the rival {name!r}, which has neither a measure nor runs of its own"
    return ""


def _main(study: Study, claim: Claim) -> str:
    if claim.tier != "main":
        return ""
    if not isinstance(claim.control, Rival):
        return "is a main result and names no rival"
    n = len(seeds_of(study, claim))
    return f"is a main result of {n} seeds; it needs at least {MAIN_SEEDS}" if n < MAIN_SEEDS else ""


def _committed(study: Study, claim: Claim) -> str:
    there = history.first_range(claim.name) is not None
    return "" if there else f"has no range in {HISTORY}; commit it there before it is measured"


def _planned(study: Study, claim: Claim) -> str:
    last, n = history.last_reading(claim.name), len(seeds_of(study, claim))
    of_last = [event for event in history.events(claim.name) if event.reading == last]
    planned = [n, *(event.n for event in of_last if event.event == "planned")][-1]  # it may be raised until it is read
    return "" if planned == n else f"is planned with {planned} seeds in {HISTORY}, and its runs have {n}"


Rule = Callable[[Study, Claim], str]

# what a rule is about -> the rule; a later one relies on those before it
OF_ALL: dict[str, Rule] = {
    "runs": _runs,
    "n": _n,
    "range": _range,
    "words": _words,
    "control": _control,
    "main": _main,
}
OF_THE_HOUSE: dict[str, Rule] = {"committed": _committed, "planned": _planned}
