"""Files that a command leaves where its user says: figures, tables and pages outside run directories.

A folder's record, .written.jsonl, has a line {"file", "writer", "sha256"} for each, added before the file is written.
What is there and not as the same writer left it, because it is somebody else's or has been changed since, is never
replaced. In a run directory the manifest decides instead.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from store import journal
from store.atomic import write_bytes
from store.manifest import claim, owner
from store.readers import StoreError, reading

RECORD = ".written.jsonl"


def check(paths: Iterable[Path], writer: str) -> None:
    """`StoreError` if one of these files is there and not as this writer left it."""
    for path in paths:
        if owner(path) is None and os.path.lexists(path) and not _is_left_by(path, writer):
            raise StoreError(
                f"{path} was not written by {writer}, or has been changed since; move it away or choose another --out"
            )


def write(files: Mapping[Path, bytes], writer: str) -> list[Path]:
    """Writes files, of which none may be somebody else's: this is checked before the first is written."""
    check(files, writer)
    for path, content in files.items():
        if owner(path) is None:
            _record(path, writer, hashlib.sha256(content).hexdigest())
        else:
            claim(path)
        write_bytes(path, content)
    return list(files)


def _is_left_by(path: Path, writer: str) -> bool:
    with reading(path):
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    return _line(path, writer, found) in journal.entries(path.with_name(RECORD))


def _record(path: Path, writer: str, digest: str) -> None:
    record, line = path.with_name(RECORD), _line(path, writer, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    if line not in journal.entries(record):
        journal.add(record, [line])


def _line(path: Path, writer: str, digest: str) -> dict[str, str]:
    return {"file": path.name, "writer": writer, "sha256": digest}
