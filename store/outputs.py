"""A command's output files (figures, tables, pages) outside run directories, and the types of flags that are paths.

.written.jsonl in the same folder has a line {"file", "writer", "sha256"} for each, appended before the file is written.
An existing file is replaced only by the command that wrote it, and only if it has not been changed since. Files of a
run are replaced only by commands about that run; its manifest says which they are.

Where nothing can be written is refused when flags are parsed, before any work.
"""

from __future__ import annotations

import hashlib
import os
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path

from icl_lab.lab.flag_types import shown
from icl_lab.store import layout, manifest
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
    entries = [entry for entry in manifest.entries(path.with_name(RECORD)) if entry.get("file") == path.name]
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
    return _line(path, writer, digest) in manifest.entries(path.with_name(RECORD))


def _record(path: Path, writer: str, digest: str) -> None:
    record, line = path.with_name(RECORD), _line(path, writer, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    if line not in manifest.entries(record):
        manifest.append(record, [line])


def _line(path: Path, writer: str, digest: str) -> dict[str, str]:
    return {"file": path.name, "writer": writer, "sha256": digest}


def _probing(read: Callable[[str], Path]) -> Callable[[str], Path]:
    """The same; `argparse.ArgumentTypeError` where the system refuses even to look, as at a name that is too long."""

    @wraps(read)
    def path_of(text: str) -> Path:
        try:
            return read(text)
        except OSError as error:
            raise ArgumentTypeError(f"{shown(text)} cannot hold files: {os.strerror(error.errno or 0)}") from None

    return path_of


def in_path(text: str) -> Path:
    """A file or folder to read, which its reader looks for first."""
    if not text:
        raise ArgumentTypeError("the path is empty")
    return Path(text)


@_probing
def out_file(text: str) -> Path:
    """A file to write; `argparse.ArgumentTypeError` for a folder, and where no file can be made."""
    path = in_path(text)
    if path.is_dir():
        raise ArgumentTypeError(f"{path} is a folder, not a file")
    _check_parents(path, path.parent)
    return path


@_probing
def out_folder(text: str) -> Path:
    """A folder to write into, made where there is none; `argparse.ArgumentTypeError` for any other place.

    It may be no run directory and lie in none: what stands in a run is of that run. A run's own figures may be drawn
    again.
    """
    path = in_path(text)
    if os.path.lexists(path) and not path.is_dir():
        raise ArgumentTypeError(f"{path} is a file, not a folder")
    run = _run_of(path)
    if run is not None and Path(os.path.realpath(run), layout.FIGURES) != Path(os.path.realpath(path)):
        where = "is a run directory" if Path(os.path.realpath(path)) == run else f"lies in the run {run}"
        raise ArgumentTypeError(f"{path} {where}, where no other files may be written; choose another folder")
    _check_parents(path, path)
    return path


@_probing
def run_directory(text: str) -> Path:
    """The directory of a run that is trained; `argparse.ArgumentTypeError` for a file, and for a place in a run."""
    path = in_path(text)
    if os.path.lexists(path) and not path.is_dir():
        raise ArgumentTypeError(f"{path} is a file, not a run directory")
    run = _run_of(path.absolute().parent)
    if run is not None:
        raise ArgumentTypeError(
            f"{path} lies in the run {run}, where no other files may be written; choose another --out"
        )
    if not path.exists():  # of a run that is done nothing is written
        _check_parents(path, path)
    return path


def _run_of(path: Path) -> Path | None:
    """The run directory that a place is or lies in, links followed."""
    real = Path(os.path.realpath(path))
    return next((folder for folder in (real, *real.parents) if is_run(folder)), None)


def is_run(folder: Path) -> bool:
    """Whether a folder is a run directory, also one of a time before there were manifests."""
    return manifest.exists(folder) or manifest.predates_manifests(folder)


def _check_parents(path: Path, folder: Path) -> None:
    """`argparse.ArgumentTypeError` unless files can be made in a folder, or in the first parent that exists."""
    parents = (folder, *folder.parents) if folder.is_absolute() else (folder, *folder.parents, Path.cwd())
    nearest = next(parent for parent in parents if os.path.lexists(parent))
    if not nearest.is_dir():
        raise ArgumentTypeError(f"{path} cannot be made: {nearest} is a file")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ArgumentTypeError(f"{path} cannot be made: nothing can be written in {nearest}")
