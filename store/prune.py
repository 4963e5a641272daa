"""Lists runs to delete; given the code that the list ends with, deletes them.

python -m store.prune runs --status failed,diverged --older_than 7d
python -m store.prune runs --status failed,diverged --older_than 7d --delete CODE

The first prints the list and its code. Runs that others build on, runs locked by another process, and files that the
laboratory did not write stay.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from icl_lab.lab import cli
from icl_lab.src.words import printable
from icl_lab.store import layout, manifest, ownership, rundir
from icl_lab.store.listing import Entry, list_runs, run_folders
from icl_lab.store.lock import in_use, link_below, locked
from icl_lab.store.outputs import in_path
from icl_lab.store.readers import StoreError, read_json
from icl_lab.store.runs import age, size

UNITS = {"min": "minutes", "h": "hours", "d": "days"}
DIGITS = 8  # of a list's code


def chosen(folder: Path, statuses: Sequence[str], older_than: timedelta, now: datetime) -> list[Entry]:
    """The runs that are asked for and that no others build on, by path."""
    entries = [entry for entry in list_runs(folder) if not entry.reason]
    needed = required_ids(folder)
    return sorted(
        (
            entry
            for entry in entries
            if entry.status in statuses
            and (not older_than or entry.time is None or now - entry.time >= older_than)
            and (entry.plugins_missing or rundir.stored_id(entry.path) not in needed)
        ),
        key=lambda entry: entry.path,
    )


def required_ids(folder: Path) -> set[str]:
    """The ids of the runs that others build on: those below a folder, beside it, and below the default folder.

    A run builds on runs of its parent folder and of the default one (`rundir.find_required`).
    """
    runs = [*run_folders(folder), *rundir.runs_below(folder.resolve().parent)]
    runs += run_folders(rundir.RUNS) if rundir.RUNS.is_dir() else []
    return {identity for run in runs for identity in _requires(run)}


def _requires(run: Path) -> list[str]:
    """The ids of the runs that a run builds on, whether or not its plugins are loaded; none if it is broken."""
    try:
        requires = read_json(run / layout.CONFIG).get("requires")
    except StoreError:
        return []
    return [str(identity) for identity in requires] if isinstance(requires, list) else []


def _state(entry: Entry) -> tuple[str, str, int]:
    """What a run must still be when it is deleted."""
    return entry.status, str(entry.time), entry.size


def code_of(entries: Sequence[Entry]) -> str:
    """A code of these runs, which changes with each of them."""
    words = [[str(entry.path.resolve()), *_state(entry)] for entry in entries]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:DIGITS]


def delete(entry: Entry, below: Path) -> list[str]:
    """Deletes the files in a run's manifest, and its folder if nothing else is in it; returns what stays.

    `StoreError` if another process has locked the run, if it has changed since it was listed, or if a link below the
    folder that was searched leads to it.
    """
    with locked(entry.path, below=below):
        if list(map(_state, list_runs(entry.path))) != [_state(entry)]:
            raise StoreError(f"{entry.path} has changed since it was listed; list the runs again")
        kept = rundir.clear(entry.path)
        if not manifest.foreign_files(entry.path):
            (entry.path / layout.MANIFEST).unlink(missing_ok=True)
            if not manifest.foreign_files(entry.path):
                ownership.check(entry.path)
                (entry.path / layout.LOCK).unlink(missing_ok=True)  # while it is ours
    with suppress(OSError):  # it has files, of a run that has begun since too
        entry.path.rmdir()
    return kept


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(
        "store.prune", "Lists runs to delete; with --delete and the code at the end of the list, deletes them."
    )
    built.add_argument("folder", metavar="DIR", type=in_path, nargs="?", default=rundir.RUNS, help="folder to search")
    cli.add_list(
        built, "--status", _status, ("failed", "diverged"), f"status of the runs: {', '.join(rundir.STATUSES)}"
    )
    built.add_argument(
        "--older_than",
        type=_duration,
        default=timedelta(),
        help="least age of the runs, as in 30min, 12h or 7d; default: 0d",
    )
    built.add_argument("--delete", metavar="CODE", help="delete the runs of the list with this code")
    return built


def _status(text: str) -> str:
    if text not in rundir.STATUSES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a status of a run; choose {', '.join(rundir.STATUSES)}")
    return text


def _duration(text: str) -> timedelta:
    match = re.fullmatch(r"([0-9]{1,6})(min|h|d)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write it as in 30min, 12h or 7d")
    return timedelta(**{UNITS[match[2]]: int(match[1])})


def main(argv: list[str]) -> int:
    """The command line; 2 if a run of the list was refused."""
    flags, now = parser().parse(argv), datetime.now(UTC)
    entries = []
    for entry in chosen(flags.folder, flags.status, flags.older_than, now):
        if why := _why_kept(entry, flags.folder):
            print(printable(f"not listed: {entry.path} is {why}"), file=sys.stderr)
        else:
            entries.append(entry)
    code = code_of(entries)
    if flags.delete not in (None, code):
        raise StoreError(
            f"the list of runs now has the code {code}, not {flags.delete}; read it again without --delete first"
        )
    for entry in entries:
        print(f"{printable(entry.path)}  {entry.status}  {age(entry.time, now)}  {size(entry.size)}")
    if not flags.delete:
        print(f"{_total(entries)}; to delete these: --delete {code}" if entries else "no run is to be deleted")
        return 0
    deleted = [entry for entry in entries if _delete(entry, flags.folder)]
    print(f"deleted: {_total(deleted)}")
    return 0 if len(deleted) == len(entries) else 2


def _why_kept(entry: Entry, below: Path) -> str:
    """Why a run must not be deleted; "" if nothing is in the way."""
    if link_below(below, entry.path) is not None:
        return "reached through a symbolic link, and what lies outside of the folder stays"
    if entry.plugins_missing:
        return f"of the plugin {', '.join(entry.plugins_missing)}, which is not loaded; give --plugin FILE"
    return f"locked by a process of {entry.host}" if in_use(entry.path) else ""


def _delete(entry: Entry, below: Path) -> bool:
    """Deletes a run and prints what stays; or says why it is refused."""
    try:
        kept = delete(entry, below)
    except StoreError as error:
        print(printable(f"error: {error}"), file=sys.stderr)
    except OSError as error:
        print(printable(f"error: {error.filename}: {error.strerror}"), file=sys.stderr)
    else:
        if kept:
            print(printable(f"{entry.path} keeps files that are not the run's: {', '.join(kept)}"))
        return True
    return False


def _total(entries: Sequence[Entry]) -> str:
    return f"{len(entries)} runs, {size(sum(entry.size for entry in entries))}"


if __name__ == "__main__":
    cli.launch(main)
