"""Locks run directories, so that one process at a time writes to each.

The lock is the kernel's, so a killed process leaves none behind. A directory with symbolic links among its files cannot
be locked: writing there would change files elsewhere.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from store import layout
from store.manifest import adopt
from store.readers import StoreError

RETRY_SECONDS = 0.1


@contextmanager
def locked(run: Path, name: str = layout.LOCK, shared: bool = False, timeout: float = 0.0) -> Iterator[None]:
    """Locks a run directory; `StoreError` if another process has it, or if writing there would follow a link.

    Shared locks exclude exclusive ones. Different names are different locks. `timeout` is how many seconds to wait for
    another process. A run of an earlier version gets its manifest.
    """
    run.mkdir(parents=True, exist_ok=True)
    refuse_links(run)
    with _locked(run / name, run, shared, timeout):
        adopt(run)
        yield


def in_use(run: Path) -> bool:
    """Whether another process has a run directory for itself. Takes its lock, shared, for an instant if none has."""
    try:
        with open(run / layout.LOCK, "rb") as file:
            return not _flock(file.fileno(), fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


@contextmanager
def locked_file(path: Path, timeout: float = 0.0) -> Iterator[None]:
    """Locks a file that several processes write in turns, by a lock file in the same folder; `StoreError` as above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_name(f".{path.name}{layout.LOCK}"), path, False, timeout):
        yield


@contextmanager
def _locked(lock: Path, target: Path, shared: bool, timeout: float) -> Iterator[None]:
    with os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "rb+", 0) as file:
        deadline = time.monotonic() + timeout
        while not _flock(file.fileno(), fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise StoreError(f"{target} is in use by another process")
            time.sleep(RETRY_SECONDS)
        yield


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def refuse_links(run: Path) -> None:
    """`StoreError` if one of a run's files or folders, or a file in these folders, is a symbolic link."""
    top = [run / name for name in (*layout.TOP_FILES, *layout.RUN_FOLDERS, layout.LOCK)]
    inside = [path for name in layout.RUN_FOLDERS if (run / name).is_dir() for path in (run / name).iterdir()]
    for path in (*top, *inside):
        if path.is_symlink():
            raise StoreError(f"{path} is a symbolic link, and nothing is written through links; remove it")
