"""Files of a run that another process has locked: kept beside it, in `.NAME.llc`, until the run is free.

The first line of each says which run it is of (by its id), under which name, and with which content (SHA-256). A file
of which this is not true is foreign: it is neither read, replaced nor removed, and nor is anything behind a link.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from icl_lab.store import layout, ownership
from icl_lab.store.readers import StoreError
from icl_lab.store.replacing import replace

LONGEST = 4096  # bytes of a first line


class Kept(NamedTuple):
    """A file that is kept beside a run: the id of the run that it is of, and its content."""

    identity: str
    content: bytes


def write(run: Path, name: str, content: bytes, identity: str) -> None:
    """Keeps a file of the run of this id beside it; `StoreError` if a foreign file has its place."""
    check(run, [name])
    replace(layout.llc_aside(run) / name, [_first_line(name, content, identity), content])


def check(run: Path, names: Iterable[str]) -> None:
    """`StoreError` if files of these names cannot be kept beside a run, since something foreign has their place."""
    folder = layout.llc_aside(run)
    places = [folder / name for name in names if _is_folder(folder)]
    foreign = [path for path in places if os.path.lexists(path) and _kept(path) is None]
    if os.path.lexists(folder) and not _is_folder(folder):
        foreign = [folder]
    if foreign:
        raise StoreError(f"{foreign[0]} was not written by the laboratory and would be overwritten; move it away")


def read(run: Path, name: str, identity: str) -> bytes | None:
    """The content of a file that is kept beside the run of this id, if there is one."""
    kept = _kept(layout.llc_aside(run) / name) if _is_folder(layout.llc_aside(run)) else None
    return kept.content if kept is not None and kept.identity == identity else None


def remove(run: Path, name: str) -> None:
    """Removes a file that `read` gives; and the folder, if nothing else is in it."""
    (layout.llc_aside(run) / name).unlink(missing_ok=True)
    with suppress(OSError):
        layout.llc_aside(run).rmdir()


def clear(run: Path) -> list[Path]:
    """Removes what is kept beside a run, whatever run of its name it is of; returns what is foreign, and stays."""
    for path in _inside(run):
        if _kept(path) is not None or _is_left_draft(path):
            path.unlink(missing_ok=True)
    with suppress(OSError):  # it is not there, a link, or has foreign files
        layout.llc_aside(run).rmdir()
    return others(run, None)


def others(run: Path, identity: str | None) -> list[Path]:
    """What lies beside a run in the place of such files and is not of the run of this id, None for that of any run."""
    folder = layout.llc_aside(run)
    if os.path.lexists(folder) and not _is_folder(folder):
        return [folder]
    return [path for path in _inside(run) if not (_is_of(path, identity) or layout.draft_target(path.name))]


def _is_of(path: Path, identity: str | None) -> bool:
    kept = _kept(path)
    return kept is not None and identity in (None, kept.identity)


def _inside(run: Path) -> Iterator[Path]:
    """What is in the folder, unless that is a link."""
    folder = layout.llc_aside(run)
    yield from sorted(folder.iterdir()) if _is_folder(folder) else ()


def _is_folder(path: Path) -> bool:
    """Whether this is a folder, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _is_left_draft(path: Path) -> bool:
    """Whether this is a draft that a process left when it was killed."""
    target, writer = layout.draft_parts(path.name)
    return layout.is_run_file(f"{layout.LLC_TRACES}/{target}") and bool(writer) and ownership.has_ended(writer)


def _kept(path: Path) -> Kept | None:
    """One of our files; None for anything else, of which no more than the beginning is read."""
    with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            line = file.readline(LONGEST)
            identity = json.loads(line)["run"]
            content = file.read()
        return Kept(identity, content) if line == _first_line(path.name, content, identity) else None
    return None


def _first_line(name: str, content: bytes, identity: str) -> bytes:
    said = {"run": identity, "file": name, "sha256": hashlib.sha256(content).hexdigest()}
    return json.dumps(said).encode() + b"\n"
