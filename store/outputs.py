"""Files that a command leaves where its user says: figures, tables and pages outside run directories.

A folder's record, .written.jsonl, has a line {"file", "writer", "sha256"} for each, added before the file is written.
What is there and not as the same writer left it, because it is somebody else's or has been changed since, is never
replaced. A run's own files are written by what is about that run alone, and its manifest decides on them instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from store import journal, layout
from store.atomic import replace_file, write_bytes
from store.manifest import names, owner, owns
from store.readers import StoreError, reading

RECORD = ".written.jsonl"


def check(paths: Iterable[Path], writer: str, of: Path | None = None) -> None:
    """`StoreError` if one of these files is there and not as this writer left it, or has the name of a run's own.

    `of` is the run that is drawn or measured: of its files its manifest decides.
    """
    for path in paths:
        if of is not None and _is_of(of, path):
            owns(of, path)
            continue
        _refuse_link(path)
        refuse_run_files(path)
        if path.exists() and not _is_left_by(path, writer):
            raise StoreError(
                f"{path} was not written by {writer}, or has been changed since; move it away or choose another --out"
            )


def write(files: Mapping[Path, bytes], writer: str, of: Path | None = None) -> list[Path]:
    """Writes files, of which none may be somebody else's: this is checked before the first is written."""
    check(files, writer, of)
    for path, content in files.items():
        if _is_of(of, path):
            write_bytes(path, content)
        else:
            _record(path, writer, hashlib.sha256(content).hexdigest())
            replace_file(path, content)
    return list(files)


def refuse_run_files(path: Path) -> None:
    """`StoreError` if a run that this is not about has, or may have, a file of this name."""
    run = owner(path)
    if run is not None and (layout.is_run_file(name := path.relative_to(run).as_posix()) or name in names(run)):
        raise StoreError(f"{path} is a file of the run {run}; choose another --out")


def check_free(path: Path, writer: str) -> None:
    """`StoreError` if a file whose content says whose it is may not be here: a link, a run's, another writer's."""
    _refuse_link(path)
    refuse_run_files(path)
    entries = [entry for entry in journal.entries(path.with_name(RECORD)) if entry.get("file") == path.name]
    if path.exists() and any(entry.get("writer") != writer for entry in entries):
        raise StoreError(f"{path} was written by {entries[-1].get('writer')}; choose another --out")


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link, and nothing is written through links; name the file itself")


def _is_of(run: Path | None, path: Path) -> bool:
    """Whether a file lies in this run."""
    found = owner(path)
    return run is not None and found is not None and found.resolve() == run.resolve()


def _is_left_by(path: Path, writer: str) -> bool:
    with reading(path):
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    return _line(path, writer, found) in journal.entries(path.with_name(RECORD))


def _record(path: Path, writer: str, digest: str) -> None:
    record, line = path.with_name(RECORD), _line(path, writer, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    if line not in journal.entries(record):
        journal.append(record, [line])


def _line(path: Path, writer: str, digest: str) -> dict[str, str]:
    return {"file": path.name, "writer": writer, "sha256": digest}
