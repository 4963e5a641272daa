"""Which files of a run directory are the laboratory's: its manifest names every file that a command wrote there.

manifest.jsonl has a first line that says what it is, then {"file": NAME} for each file, added before that file is first
written, so a killed process leaves none without its line; and with "gone" where a name is given up. A file that is
there and not named is somebody else's: it is neither written to nor removed. Runs that were made before there were
manifests are known by their meta.json, and get one of the layout's names when something is next written there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TypeGuard

from store import journal, layout
from store.readers import StoreError, read_json

HEADER = {"manifest": "in-context learning laboratory", "version": 1}
FIRST_LINE = json.dumps(HEADER).encode() + b"\n"
DEEPEST = 2  # parts of a name: files lie in the run directory or in a folder of it


def owner(path: Path) -> Path | None:
    """The run directory, of those with a manifest, that a file lies in."""
    return next((folder for folder in list(path.parents)[:DEEPEST] if exists(folder)), None)


def exists(run: Path) -> bool:
    """Whether a folder has a manifest of ours."""
    try:
        with open(run / layout.MANIFEST, "rb") as file:
            return file.read(len(FIRST_LINE)) == FIRST_LINE
    except OSError:
        return False


def begin(run: Path, own: Iterable[str] = ()) -> None:
    """Gives a folder a manifest of these files, unless it has one; `StoreError` if another file has its name."""
    if exists(run):
        return
    path = run / layout.MANIFEST
    if path.exists() and not FIRST_LINE.startswith(path.read_bytes()):  # a beginning of it is what a kill left
        raise StoreError(f"{path} is not the manifest of a run; move it away")
    run.mkdir(parents=True, exist_ok=True)
    journal.append(path, [HEADER, *({"file": name} for name in own)], begin=True)


def names(run: Path) -> list[str]:
    """The names in a manifest, those of checkpoints as a pattern."""
    found: dict[str, None] = {}
    for entry in journal.entries(run / layout.MANIFEST):
        if _is_inside(name := entry.get("file")):
            found.pop(name, None) if entry.get("gone") else found.setdefault(name)
    return list(found)


def _is_inside(name: object) -> TypeGuard[str]:
    """Whether this is the name of a file in a run directory."""
    if not isinstance(name, str) or "\0" in name or name.startswith("/"):
        return False
    parts = PurePosixPath(name).parts
    return 0 < len(parts) <= DEEPEST and ".." not in parts


def claim(path: Path) -> None:
    """To be called before a file is written: names it in its run's manifest, if it lies in a run directory.

    `StoreError` if it is there already and not the run's.
    """
    run = owner(path)
    if run is not None and not owns(run, path):
        journal.append(run / layout.MANIFEST, [{"file": layout.manifest_name(path.relative_to(run).as_posix())}])


def owns(run: Path, path: Path) -> bool:
    """Whether a file is the run's already; `StoreError` if it is there and is not."""
    if layout.manifest_name(path.relative_to(run).as_posix()) in names(run):
        return True
    if os.path.lexists(path):
        raise StoreError(f"{path} was not written by the laboratory, which would write there; move it away")
    return False


def release(run: Path, name: str) -> None:
    """Says that a name is the run's no more: what lies there from now on is somebody else's."""
    if exists(run) and name in names(run):
        journal.append(run / layout.MANIFEST, [{"file": name, "gone": True}])


def files(run: Path) -> list[str]:
    """The run's own files that are there, by name, and drafts of them that a kill left."""
    own = set(names(run))
    return [name for name in _there(run) if layout.manifest_name(name) in own or layout.draft_target(name) in own]


def foreign_files(run: Path) -> list[str]:
    """What else lies in a run directory: the names of files that no command of ours wrote there."""
    own = {*files(run), layout.MANIFEST, layout.LOCK}
    return [name for name in _there(run) if name not in own]


def conflicting_files(run: Path) -> list[str]:
    """Files with names that a run writes to, of which no command of ours wrote them."""
    return [name for name in foreign_files(run) if layout.is_run_file(name)]


def reset(run: Path) -> None:
    """Ends the clearing of a run: its manifest names no file. This needs no room on the disk."""
    os.truncate(run / layout.MANIFEST, len(FIRST_LINE))


def adopt(run: Path) -> None:
    """Gives a run that was made before there were manifests one of the layout's names; leaves other folders alone."""
    if exists(run) or not predates_manifests(run):
        return
    own = dict.fromkeys(layout.manifest_name(name) for name in _there(run) if layout.is_run_file(name))
    begin(run, own)


def predates_manifests(run: Path) -> bool:
    """Whether a folder without a manifest is a run: its meta.json says by which schema and of which config."""
    try:
        meta = read_json(run / layout.META)
    except StoreError:
        return False
    return isinstance(meta.get("schema_version"), int) and isinstance(meta.get("config_id"), str)


def _there(run: Path) -> list[str]:
    """The names of all files below a folder."""
    return sorted(Path(folder, name).relative_to(run).as_posix() for folder, _, own in os.walk(run) for name in own)
