"""Locks run directories, so that one process at a time writes to each, on whatever host it runs.

A killed process leaves no lock behind (`store.ownership`). A directory with symbolic links among its files cannot be
locked: writing there would change files elsewhere.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from icl_lab.store import layout, owners, ownership
from icl_lab.store.manifest import adopt
from icl_lab.store.owners import LockBusy, Watch
from icl_lab.store.readers import StoreError

RETRY_SECONDS = 0.1
_watch = Watch()  # of `in_use`, from one question to the next


@contextmanager
def locked(
    run: Path, name: str = layout.LOCK, shared: bool = False, timeout: float = 0.0, below: Path | None = None
) -> Iterator[None]:
    """Locks a run directory; `StoreError` if another process has it, or if writing there would follow a link.

    `below` is the folder that the user has named, where that is not the run: it may be a link, but nothing in it.

    Shared locks exclude exclusive ones. Different names are different locks. `timeout` is how many seconds to wait for
    another process; unless it is 0, at least 2 `STALE_SECONDS` for one on another host. A run of an earlier version
    gets its manifest.
    """
    refuse_links(run)
    refuse_links_below(below or run, run)
    with _locked(run / name, run, shared, timeout):
        adopt(run)
        yield


def in_use(run: Path) -> bool:
    """Whether another process has locked a run directory exclusively; `StoreError` if that cannot be determined."""
    lock = run / layout.LOCK
    owner = owners.read(lock)
    return owner is not None and _watch.observe(lock, owner) is not None


@contextmanager
def locked_file(path: Path, timeout: float = 0.0) -> Iterator[None]:
    """Locks a file that several processes write in turns, by a lock file in the same folder; `StoreError` as above."""
    with _locked(path.with_name(f".{path.name}{layout.LOCK}"), path, False, timeout):
        yield


@contextmanager
def _locked(lock: Path, target: Path, shared: bool, timeout: float) -> Iterator[None]:
    watch, began, place, stale = Watch(), time.monotonic(), Path(os.path.abspath(target)), 2 * owners.STALE_SECONDS
    lock.parent.mkdir(parents=True, exist_ok=True)
    while isinstance(held := ownership.hold(lock, place, shared, watch), LockBusy):
        # a process that was cut off from its cluster beats until it notices
        owned = max(timeout, stale) if timeout and watch.where() else timeout
        patience = {LockBusy.OWNED: owned, LockBusy.WATCHED: math.inf, LockBusy.CHANGING: timeout + stale}
        if time.monotonic() - began >= patience[held]:
            raise StoreError(f"{target} is in use by another process{watch.where()}")
        time.sleep(RETRY_SECONDS)
        lock.parent.mkdir(parents=True, exist_ok=True)  # who had the lock may have deleted the folder
    try:
        yield
    finally:
        ownership.let_go(held)


def link_below(folder: Path, path: Path) -> Path | None:
    """The first link on the way from a folder, which may be one itself, to a path in it."""
    way = [path, *path.parents]
    inside = way[: way.index(folder)] if folder in way else [path]
    return next((place for place in reversed(inside) if place.is_symlink()), None)


def refuse_links_below(folder: Path, path: Path) -> None:
    """`StoreError` if a path leads from this folder through a link: what lies there is not the folder's to change."""
    if (link := link_below(folder, path)) is not None:
        raise StoreError(f"{link} is a symbolic link, and nothing is changed through links; name its target itself")


def refuse_links(run: Path) -> None:
    """`StoreError` if one of a run's files or folders, or a file in these folders, is a symbolic link."""
    top = [run / name for name in (*layout.TOP_FILES, *layout.RUN_FOLDERS, *layout.LOCKS)]
    inside = [path for name in layout.RUN_FOLDERS if (run / name).is_dir() for path in (run / name).iterdir()]
    for path in (*top, *inside):
        if path.is_symlink():
            raise StoreError(f"{path} is a symbolic link, and nothing is written through links; remove it")
