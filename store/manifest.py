"""Records which files of a run directory were written by the laboratory.

After a header line, manifest.jsonl has {"file": NAME} for each file, appended before the file is first written, and
{"file": NAME, "gone": true} where a name is released. A file that the manifest does not list is foreign: it is never
written to or removed. Runs made before there were manifests are recognised by their meta.json; they get a manifest of
the names in `store.layout` when something is next written there.

A manifest, like a folder's record of outputs, is a file of JSON lines to which lines are appended: these are synced to
disk, and an incomplete one is ignored.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

from icl_lab.store import layout, ownership
from icl_lab.store.readers import StoreError, read_json, reading
from icl_lab.store.replacing import unshare

HEADER = {"manifest": "in-context learning laboratory", "version": 1}
FIRST_LINE = json.dumps(HEADER).encode() + b"\n"
MAX_DEPTH = 3  # parts of a name: a file lies in the run directory, in one of its folders, or in a folder of these


def owner(path: Path) -> Path | None:
    """The run directory with a manifest that contains a file, if any."""
    return next((folder for folder in list(path.parents)[:MAX_DEPTH] if exists(folder)), None)


def exists(run: Path) -> bool:
    """Whether a folder has a manifest."""
    try:
        with open(run / layout.MANIFEST, "rb") as file:
            return file.read(len(FIRST_LINE)) == FIRST_LINE
    except OSError:
        return False


def begin(run: Path, manifest_names: Iterable[str] = ()) -> None:
    """Creates a manifest of these files unless there is one; `StoreError` if another file has its name."""
    if exists(run):
        return
    ownership.check(run)
    path = run / layout.MANIFEST
    if path.exists() and not FIRST_LINE.startswith(path.read_bytes()):  # a kill may leave part of the line
        raise StoreError(f"{path} is not the manifest of a run; move it away")
    run.mkdir(parents=True, exist_ok=True)
    append(path, [HEADER, *({"file": name} for name in manifest_names)], begin=True)


def names(run: Path) -> list[str]:
    """The names in a manifest, with one pattern for all checkpoints."""
    listed: dict[str, None] = {}
    for entry in entries(run / layout.MANIFEST):
        if _is_inside(name := entry.get("file")):
            listed.pop(name, None) if entry.get("gone") else listed.setdefault(name)
    return list(listed)


def _is_inside(name: object) -> TypeGuard[str]:
    """Whether this can be the name of a file in a run directory."""
    if not isinstance(name, str) or "\0" in name or name.startswith("/"):
        return False
    parts = PurePosixPath(name).parts
    return 0 < len(parts) <= MAX_DEPTH and ".." not in parts


def claim(path: Path) -> None:
    """Adds a file to the manifest of its run, if it has one; to be called before the file is written.

    `StoreError` if the file exists and is foreign, or if the run was taken over.
    """
    ownership.check(path)
    run = owner(path)
    if run is not None and not owns(run, path):
        append(run / layout.MANIFEST, [{"file": layout.manifest_name(path.relative_to(run).as_posix())}])


def owns(run: Path, path: Path) -> bool:
    """Whether the manifest lists a file; `StoreError` if it does not and the file exists."""
    if layout.manifest_name(path.relative_to(run).as_posix()) in names(run):
        return True
    if os.path.lexists(path):
        raise StoreError(f"{path} was not written by the laboratory and would be overwritten; move it away")
    return False


def release(run: Path, name: str) -> None:
    """Removes a name from the manifest: a file of that name is foreign from now on."""
    ownership.check(run)
    if exists(run) and name in names(run):
        append(run / layout.MANIFEST, [{"file": name, "gone": True}])


def files(run: Path) -> list[str]:
    """The run's files that exist, and drafts of them that a killed process left."""
    manifest_names = set(names(run))
    return [
        name
        for name in _all_files(run)
        if layout.manifest_name(name) in manifest_names or layout.draft_target(name) in manifest_names
    ]


def foreign_files(run: Path) -> list[str]:
    """The files in a run directory that the laboratory did not write."""
    own_files = {*files(run), layout.MANIFEST}
    return [name for name in _all_files(run) if name not in own_files and not layout.is_lock(name)]


def conflicting_files(run: Path) -> list[str]:
    """Foreign files with names that a run writes to."""
    return [name for name in foreign_files(run) if layout.is_run_file(name)]


def reset(run: Path) -> None:
    """Empties the manifest, after a run was cleared. This needs no space on the disk."""
    ownership.check(run)
    unshare(run / layout.MANIFEST)
    os.truncate(run / layout.MANIFEST, len(FIRST_LINE))


def adopt(run: Path) -> None:
    """Creates the manifest of a run made before there were manifests; leaves other folders alone."""
    if exists(run) or not predates_manifests(run):
        return
    manifest_names = dict.fromkeys(layout.manifest_name(name) for name in _all_files(run) if layout.is_run_file(name))
    begin(run, manifest_names)


def predates_manifests(run: Path) -> bool:
    """Whether a folder without a manifest is a run: its meta.json has a schema version and a config id."""
    try:
        meta = read_json(run / layout.META)
    except StoreError:
        return False
    return isinstance(meta.get("schema_version"), int) and isinstance(meta.get("config_id"), str)


def _all_files(run: Path) -> list[str]:
    """The names of all files below a folder."""
    return sorted(
        Path(folder, name).relative_to(run).as_posix() for folder, _, file_names in os.walk(run) for name in file_names
    )


def append(path: Path, values: Iterable[Mapping[str, Any]], begin: bool = False) -> None:
    """Appends lines in one write, after emptying the file if `begin`; never writes through a link."""
    unshare(path)
    lines = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | (os.O_TRUNC if begin else os.O_APPEND)
    descriptor = os.open(path, how, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # ends an incomplete line
        if os.write(descriptor, lines) < len(lines):
            os.ftruncate(descriptor, size)  # some of the lines alone would mean something else
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)


def entries(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects in a journal, none if the file does not exist."""
    if not path.exists():
        return
    with reading(path):
        lines = path.read_bytes().split(b"\n")[:-1]
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
