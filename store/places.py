"""The types of flags that are paths. Where nothing can be written is refused at parsing, before any work."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from icl_lab.lab.flag_types import shown
from icl_lab.store import layout, manifest


def _probing(read: Callable[[str], Path]) -> Callable[[str], Path]:
    """The same; `argparse.ArgumentTypeError` where the system refuses even to look, as at a name that is too long."""

    @wraps(read)
    def path_of(text: str) -> Path:
        try:
            return read(text)
        except OSError as error:
            raise ArgumentTypeError(f"{shown(text)} is no place for files: {os.strerror(error.errno or 0)}") from None

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
        raise ArgumentTypeError(f"{path} {where}, which holds nothing but that run; choose another folder")
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
        raise ArgumentTypeError(f"{path} lies in the run {run}, which holds nothing but that run; choose another --out")
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
