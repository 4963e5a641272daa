"""Deletes runs: first it lists them, then it deletes these and no others, and of each the files in its manifest.

python -m store.prune runs --status failed,diverged --older_than 7d
python -m store.prune runs --status failed,diverged --older_than 7d --delete CODE

The first prints the list and its code. Runs that others build on, that somebody has for himself, and files that the
laboratory did not write stay.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import cli
from store import layout, manifest, ownership, rundir
from store.listing import Entry, list_runs
from store.lock import in_use, locked
from store.readers import StoreError
from store.runs import age, size

UNITS = {"min": "minutes", "h": "hours", "d": "days"}
DIGITS = 8  # of a list's code


def listed(folder: Path, statuses: Sequence[str], older_than: timedelta, now: datetime) -> list[Entry]:
    """The runs that would be deleted, by path."""
    entries = [entry for entry in list_runs(folder) if not entry.reason]
    needed = {identity for entry in entries for identity in rundir.read_config(entry.path).requires}
    return sorted(
        (
            entry
            for entry in entries
            if entry.status in statuses
            and (not older_than or entry.time is None or now - entry.time >= older_than)
            and rundir.stored_id(entry.path) not in needed
            and not in_use(entry.path)
        ),
        key=lambda entry: entry.path,
    )


def code_of(entries: Sequence[Entry]) -> str:
    """A code of these runs, which changes with each of them."""
    words = [[str(entry.path.resolve()), entry.status, str(entry.time), entry.size] for entry in entries]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:DIGITS]


def delete(entry: Entry) -> list[str]:
    """Deletes the files in a run's manifest, and its folder if nothing else is in it; returns what stays."""
    with locked(entry.path):
        if rundir.read_status(entry.path) != entry.status:
            raise StoreError(f"{entry.path} has changed since it was listed; list the runs again")
        kept = rundir.clear(entry.path)
        if not kept:
            (entry.path / layout.MANIFEST).unlink(missing_ok=True)
            if not manifest.foreign_files(entry.path):
                ownership.check(entry.path)
                (entry.path / layout.LOCK).unlink(missing_ok=True)  # while it is ours
    if not kept:
        with suppress(OSError):  # it has files, of a run that has begun since too
            entry.path.rmdir()
    return kept


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("store.prune", "Lists runs to delete, and with the list's code deletes them.")
    built.add_argument("folder", metavar="DIR", type=Path, nargs="?", default=rundir.RUNS, help="folder to search")
    cli.add_list(built, "--status", _status, ("failed", "diverged"), f"of the runs: {', '.join(rundir.STATUSES)}")
    built.add_argument("--older_than", type=_duration, default=timedelta(), help="as in 30min, 12h or 7d; default: 0d")
    built.add_argument("--delete", metavar="CODE", help="delete the runs of the list with this code")
    return built


def _status(text: str) -> str:
    if text not in rundir.STATUSES:
        raise argparse.ArgumentTypeError(f"{text!r} is no status of a run; choose {', '.join(rundir.STATUSES)}")
    return text


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,6})(min|h|d)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write it as in 30min, 12h or 7d")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def main(argv: list[str]) -> None:
    """The command line."""
    flags, now = parser().parse(argv), datetime.now(UTC)
    entries = listed(flags.folder, flags.status, flags.older_than, now)
    code = code_of(entries)
    if flags.delete not in (None, code):
        raise StoreError(f"the list with the code {flags.delete} is not that of today, {code}; look at it first")
    for entry in entries:
        print(f"{cli.printable(entry.path)}  {entry.status}  {age(entry.time, now)}  {size(entry.size)}")
    total = f"{len(entries)} runs, {size(sum(entry.size for entry in entries))}"
    if not flags.delete:
        print(f"{total}; to delete these: --delete {code}" if entries else "no run is to be deleted")
        return
    for entry in entries:
        if kept := delete(entry):
            print(
                f"{cli.printable(entry.path)} keeps files that are not the run's: {', '.join(map(cli.printable, kept))}"
            )
    print(f"deleted: {total}")


if __name__ == "__main__":
    cli.launch(main, StoreError)
