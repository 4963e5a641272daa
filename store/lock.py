"""One process at a time in a run directory. The lock is the kernel's, so a killed process leaves none behind.

Whoever holds a directory writes into it, so this is also where links among its files are refused: what stands behind
them is not the run's.
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

BETWEEN_TRIES = 0.1  # seconds


@contextmanager
def locked(run: Path, name: str = layout.LOCK, shared: bool = False, patience: float = 0.0) -> Iterator[None]:
    """Holds a run directory; `StoreError` if another process does, or if writing there would follow a link.

    Those that share a lock keep out those that want it alone. Locks of different names are different locks. `patience`
    is how many seconds another process is waited for. A run of an earlier version gets its manifest.
    """
    run.mkdir(parents=True, exist_ok=True)
    refuse_links(run)
    with _held(run / name, run, shared, patience):
        adopt(run)
        yield


@contextmanager
def locked_file(path: Path, patience: float = 0.0) -> Iterator[None]:
    """Holds a file that several processes write in turns, by a lock of its own beside it; `StoreError` as above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _held(path.with_name(f".{path.name}{layout.LOCK}"), path, False, patience):
        yield


@contextmanager
def _held(lock: Path, what: Path, shared: bool, patience: float) -> Iterator[None]:
    with os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "rb+", 0) as file:
        deadline = time.monotonic() + patience
        while not _flock(file.fileno(), fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise StoreError(f"{what} is in use by another process")
            time.sleep(BETWEEN_TRIES)
        yield


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def refuse_links(run: Path) -> None:
    """`StoreError` if one of a run's own files or folders, or a file in one of these, is a symbolic link."""
    own = [run / name for name in (*layout.TOP_FILES, *layout.RUN_FOLDERS, layout.LOCK)]
    inside = [path for name in layout.RUN_FOLDERS if (run / name).is_dir() for path in (run / name).iterdir()]
    for path in (*own, *inside):
        if path.is_symlink():
            raise StoreError(f"{path} is a symbolic link, and nothing is written through links; remove it")
