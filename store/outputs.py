"""Writes a command's output files (figures, tables, pages) outside run directories.

.written.jsonl in the same folder has a line {"file", "writer", "sha256"} for each, appended before the file is written.
An existing file is replaced only by the command that wrote it, and only if it has not been changed since. Files of a
run are replaced only by commands about that run; its manifest says which they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from icl_lab.store import journal, layout
from icl_lab.store.atomic import replace_file, write_bytes
from icl_lab.store.manifest import names, owner, owns
from icl_lab.store.readers import StoreError, reading

RECORD = ".written.jsonl"


def check(paths: Iterable[Path], writer: str, run: Path | None = None) -> None:
    """`StoreError` if one of these files was written or changed by anybody but this writer, or is another run's.

    `run` is the run that is drawn or measured; its manifest decides on its files.
    """
    for path in paths:
        if run is not None and _is_in(run, path):
            owns(run, path)
            continue
        _refuse_link(path)
        refuse_run_files(path)
        if path.exists() and not _is_left_by(path, writer):
            raise StoreError(
                f"{path} was not written by {writer}, or has been changed since; move it away or choose another --out"
            )


def write(files: Mapping[Path, bytes], writer: str, run: Path | None = None) -> list[Path]:
    """Writes files, after `check` of all of them."""
    check(files, writer, run)
    for path, content in files.items():
        if _is_in(run, path):
            write_bytes(path, content)
        else:
            _record(path, writer, hashlib.sha256(content).hexdigest())
            replace_file(path, content)
    return list(files)


def refuse_run_files(path: Path) -> None:
    """`StoreError` if the path is, or may become, a file of a run."""
    run = owner(path)
    if run is not None and (layout.is_run_file(name := path.relative_to(run).as_posix()) or name in names(run)):
        raise StoreError(f"{path} is a file of the run {run}; choose another --out")


def check_free(path: Path, writer: str) -> None:
    """`StoreError` if the path is a link, a file of a run, or another writer's; its content is not checked."""
    _refuse_link(path)
    refuse_run_files(path)
    entries = [entry for entry in journal.entries(path.with_name(RECORD)) if entry.get("file") == path.name]
    if path.exists() and any(entry.get("writer") != writer for entry in entries):
        raise StoreError(f"{path} was written by {entries[-1].get('writer')}; choose another --out")


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link, and nothing is written through links; name the file itself")


def _is_in(run: Path | None, path: Path) -> bool:
    """Whether a file lies in this run."""
    directory = owner(path)
    return run is not None and directory is not None and directory.resolve() == run.resolve()


def _is_left_by(path: Path, writer: str) -> bool:
    with reading(path):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return _line(path, writer, digest) in journal.entries(path.with_name(RECORD))


def _record(path: Path, writer: str, digest: str) -> None:
    record, line = path.with_name(RECORD), _line(path, writer, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    if line not in journal.entries(record):
        journal.append(record, [line])


def _line(path: Path, writer: str, digest: str) -> dict[str, str]:
    return {"file": path.name, "writer": writer, "sha256": digest}
