"""The history of claims, history.csv: ranges, looks, changed rules and measures, claims withdrawn and renamed.

A row is an event, in order of date; new ones go to the end of the file. `claim` is a name, or `*` for what changed for
all claims of its day. `commit` is of the event, in 8 hex digits, or empty: the commit that adds the row. `says` is the
verdict of a look as its day's table had it ("partly" and "not" before verdicts followed from intervals), what is
measured or ruled since, or the claims that replace one; `reason` says what was before, and why it changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

from icl_lab.store.readers import StoreError, csv_rows, expecting

HISTORY = Path(__file__).with_name("history.csv")
ALL_CLAIMS = "*"
# event -> what it is
EVENTS = {
    "range": "low and high are committed, before the look that they judge; a later range revises the one before",
    "look": "n values are read; a larger n under the same number of the reading is a further look of it, and a reading "
    "with another number is of fresh seeds",
    "planned": "a reading of n fresh seeds, named with range, rule and control before it is read",
    "rerun": "values of the same n seeds again: trained anew, or measured by a changed rule or measure",
    "rule": "the verdict, or what counts as a value, follows another rule",
    "measure": "something else is measured; low and high: the range before, where it is a range of the new measure too",
    "withdrawn": "it is no claim any more; says: the claims, if any, that replace it",
    "renamed": "says: its new name",
}
GONE = ("withdrawn", "renamed")
REASONED = ("rerun", "rule", "measure", *GONE)  # without a reason these tell nothing


class Event(NamedTuple):
    """A row; reading and n are 0 and low and high None where the event has none."""

    claim: str
    date: str
    commit: str
    event: str
    reading: int
    n: int
    low: float | None
    high: float | None
    says: str
    reason: str


class Revision(NamedTuple):
    """A range that was revised, the commit that revised it, and why."""

    low: float
    high: float
    commit: str
    reason: str


def events(claim: str, path: Path = HISTORY) -> tuple[Event, ...]:
    """The events of a claim, in order of date."""
    return _by_claim(path).get(claim, ())


def looks(claim: str, reading: int = 1, path: Path = HISTORY) -> tuple[int, ...]:
    """The numbers of seeds at which a reading was looked at."""
    return tuple(event.n for event in events(claim, path) if event.event == "look" and event.reading == reading)


def last_reading(claim: str, path: Path = HISTORY) -> int:
    """The number of a claim's last reading, looked at or planned; 1 for one that was never read."""
    return max((event.reading for event in events(claim, path)), default=0) or 1


def last_look(claim: str, path: Path = HISTORY) -> int:
    """The number of the last reading that was looked at."""
    return max((event.reading for event in events(claim, path) if event.event == "look"), default=1)


def first_range(claim: str, path: Path = HISTORY) -> tuple[float, float] | None:
    """The range that was committed first, of the measure of its day; None for a claim without a history."""
    return next((_range(event) for event in events(claim, path) if event.event == "range"), None)


def earlier_range(claim: str, path: Path = HISTORY) -> Revision | None:
    """The range before the last revision; None for a claim whose measure has had one range."""
    current: tuple[float, float] | None = None
    revision: Revision | None = None
    for event in events(claim, path):
        if event.event == "measure" and _range(event) != current:
            current, revision = _range(event), None
        elif event.event == "range":
            if current is not None:
                revision = Revision(*current, event.commit, event.reason)
            current = _range(event)
    return revision


def withdrawn(path: Path = HISTORY) -> tuple[Event, ...]:
    """The events by which names left the table: claims withdrawn, and claims renamed."""
    return tuple(event for event in read(path) if event.event in GONE)


@cache
def read(path: Path = HISTORY) -> tuple[Event, ...]:
    """All events; `StoreError` names the one that is none, stands too late, or revises without a reason."""
    names, rows = csv_rows(path)
    if tuple(names) != Event._fields:
        raise StoreError(f"{path} has the columns {','.join(names)}, and a history has {','.join(Event._fields)}")
    whole = [_event(path, number, dict(zip(names, row, strict=True))) for number, row in enumerate(rows, 1)]
    with_range, day = set[str](), ""
    for number, event in enumerate(whole, 1):
        if event.date < day:
            raise StoreError(f"{path}: event {number}, {event.event} of {event.claim}: {event.date} stands after {day}")
        if event.event == "range" and event.claim in with_range and not event.reason:
            raise StoreError(f"{path}: event {number}, range of {event.claim}: a revised range needs a reason")
        with_range |= {event.claim} if event.event == "range" else set()
        day = event.date
    return tuple(whole)


@cache
def _by_claim(path: Path) -> Mapping[str, tuple[Event, ...]]:
    whole: dict[str, tuple[Event, ...]] = {}
    for event in read(path):
        whole[event.claim] = (*whole.get(event.claim, ()), event)
    return whole


def _event(path: Path, number: int, row: Mapping[str, str]) -> Event:
    with expecting(path, f"a history of claims: its event {number} ({row['claim']}) has a word where a number stands"):
        day = date.fromisoformat(row["date"]).isoformat()
        reading, n = int(row["reading"] or 0), int(row["n"] or 0)
        low, high = (float(row[name]) if row[name] else None for name in ("low", "high"))
    event = Event(row["claim"], day, row["commit"], row["event"], reading, n, low, high, row["says"], row["reason"])
    wrong = next((what for what, holds in WRONG.items() if holds(event)), None)
    if wrong:
        raise StoreError(f"{path}: event {number}, {event.event} of {event.claim}: {wrong}")
    return event


# what is wrong with an event -> whether it is
WRONG: Mapping[str, Callable[[Event], bool]] = {
    f"an event is one of {', '.join(EVENTS)}": lambda e: e.event not in EVENTS,
    "a commit has 8 hex digits": lambda e: re.fullmatch(r"([0-9a-f]{8})?", e.commit) is None,
    "a range has two ends, the lower one first": lambda e: (
        (e.low is None) != (e.high is None)
        or (e.low is None and e.event == "range")
        or not (e.low or 0) <= (e.high or 0)
    ),
    "a look has the number of its reading, of its values and a verdict": lambda e: (
        e.event in ("look", "rerun") and not (e.reading >= 1 and e.n >= 1 and e.says)
    ),
    "a planned reading has its number and that of its seeds": lambda e: (
        e.event == "planned" and not (e.reading >= 1 and e.n >= 2)
    ),
    "it needs a reason": lambda e: not e.reason and (e.event in REASONED or e.reading > 1),
    "a claim that is renamed has a new name": lambda e: e.event == "renamed" and not e.says,
}


def _range(event: Event) -> tuple[float, float] | None:
    return None if event.low is None or event.high is None else (event.low, event.high)
