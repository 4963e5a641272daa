"""Locks run directories, so that one process at a time writes to each, on whatever host it runs.

A killed process leaves no lock behind. A directory with symbolic links among its files cannot be locked: writing there
would change files elsewhere. The kernel's locks are unreliable between hosts; these hold there too.

A lock file names its owner: a token, host, process, and a heartbeat that the owner increments (`store.ownership`).
Drafts that an owner wrongly taken for gone had not renamed are removed by the process that takes the lock over.

To take a lock, a process creates a file of its own next to it, its claim, then removes all other claims, and only then
checks who owns the lock. If nobody does, it renames its claim to the lock. So of two concurrent processes, one finds
that its claim is gone or that the other owns the lock, wherever either is suspended and whichever is taken for gone.
Taking turns, by a file that only one process can create, merely keeps them from repeatedly removing each other's
claims. A free lock is an empty file, or none.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from icl_lab.src.words import printable
from icl_lab.store import layout, ownership
from icl_lab.store.manifest import adopt
from icl_lab.store.ownership import MAX_DEPTH, HeldLock, LockBusy, Owner, Watch
from icl_lab.store.readers import StoreError

RETRY_SECONDS = 0.1
TURN, CLAIM, SHARED = ".next", ".claim", ".shared"  # ends of the names beside a lock; the last is of who shares it
Others = list[tuple[Path, Owner | None]]  # files of owners; None in one that has just been created, or was left so


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
    owner = ownership.read(lock)
    return owner is not None and _watch.observe(lock, owner) is not None


@contextmanager
def locked_file(path: Path, timeout: float = 0.0) -> Iterator[None]:
    """Locks a file that several processes write in turns, by a lock file in the same folder; `StoreError` as above."""
    with _locked(path.with_name(f".{path.name}{layout.LOCK}"), path, False, timeout):
        yield


@contextmanager
def _locked(lock: Path, target: Path, shared: bool, timeout: float) -> Iterator[None]:
    watch, began, place, stale = Watch(), time.monotonic(), Path(os.path.abspath(target)), 2 * ownership.STALE_SECONDS
    lock.parent.mkdir(parents=True, exist_ok=True)
    while isinstance(held := hold(lock, place, shared, watch), LockBusy):
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


def hold(lock: Path, target: Path, shared: bool, watch: Watch) -> HeldLock | LockBusy:
    """Takes a lock if it is free, or if its owner is gone.

    `OSError` if it cannot be written, `StoreError` if it cannot be read.
    """
    claimant = ownership.this_process()
    try:
        others, obstacle = _owners(lock, shared, watch)
        if obstacle is None and shared and others:  # an owner that is gone, and loses the lock before it is shared
            if isinstance(taken := hold(lock, target, False, watch), LockBusy):
                return taken
            ownership.let_go(taken)
            return LockBusy.CHANGING
        outcome = obstacle or _in_turn(lock, target, claimant, shared, watch)
    except FileNotFoundError:  # the folder is gone
        return LockBusy.CHANGING
    except OSError as error:
        error.filename, error.filename2 = str(lock), None
        raise
    if isinstance(outcome, LockBusy):
        return outcome
    held, others = outcome
    ownership.keep(held)
    try:
        for path, owner in others:
            if path != lock:
                path.unlink(missing_ok=True)
            if owner and owner.host != claimant.host:
                _say_taken(target, owner)
                _remove_drafts(target, owner)
    except BaseException:
        ownership.let_go(held)
        raise
    return held


def _owners(lock: Path, shared: bool, watch: Watch) -> tuple[Others, LockBusy | None]:
    """The lock files of other owners, these owners, and why they block us (None if all are gone)."""
    files = [lock, *([] if shared else _beside(lock, SHARED))]
    others = [(path, owner) for path in files if (owner := ownership.read(path)) or path != lock]
    obstacles = [watch.observe(path, owner) for path, owner in others if owner]  # of all of them
    return others, next((why for why in (LockBusy.OWNED, LockBusy.WATCHED) if why in obstacles), None)


def _in_turn(
    lock: Path, target: Path, claimant: Owner, shared: bool, watch: Watch
) -> tuple[HeldLock, Others] | LockBusy:
    """Claims a lock when it is our turn. A suspended process that loses its turn loses no more than its claim."""
    turn = lock.with_name(f"{lock.name}{TURN}")
    try:
        os.close(_create(turn, claimant))
    except FileExistsError:
        if (content := ownership.content_of(turn)) is not None and watch.has_lost_turn(turn, content):
            turn.unlink(missing_ok=True)
        return LockBusy.CHANGING
    try:
        return _claim(lock, target, claimant, shared, watch)
    finally:
        with suppress(OSError):
            if (now := ownership.parsed(ownership.content_of(turn) or b"")) and now.token == claimant.token:
                turn.unlink(missing_ok=True)


def _claim(lock: Path, target: Path, claimant: Owner, shared: bool, watch: Watch) -> tuple[HeldLock, Others] | LockBusy:
    """Takes a lock, with the owners that are gone. The order of the steps is what keeps two from having it."""
    claim = lock.with_name(f"{lock.name}.{claimant.token}{SHARED if shared else CLAIM}")
    held, is_taken = HeldLock(claim if shared else lock, claim, target, claimant, _create(claim, claimant)), False
    try:
        for other in _beside(lock, CLAIM):
            if other != claim:
                other.unlink(missing_ok=True)
        others, obstacle = _owners(lock, shared, watch)
        if obstacle or (shared and others):
            return obstacle or LockBusy.CHANGING
        if not shared:
            os.replace(claim, lock)  # `FileNotFoundError` if another has removed our claim
        is_taken = held.is_ours()
        return (held, others) if is_taken else LockBusy.CHANGING
    finally:
        if not is_taken:
            held.release()


def _create(path: Path, claimant: Owner) -> int:
    """Creates a file that says who we are; `FileExistsError` if there is one."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        os.write(descriptor, claimant.content())
        os.fsync(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return descriptor


def _beside(lock: Path, end: str) -> list[Path]:
    """The files beside a lock with this end of their names."""
    names = (name for name in os.listdir(lock.parent) if name.endswith(end) and name.startswith(f"{lock.name}."))
    return [lock.with_name(name) for name in sorted(names)]


def _remove_drafts(target: Path, owner: Owner) -> None:
    """Removes an owner's drafts, which it may be about to rename; not in folders below that have their own lock."""
    if target.is_dir():
        drafts = _drafts_below(target, layout.draft_end(owner.writer()), MAX_DEPTH - 1)
    else:
        drafts = iter([layout.draft(target, owner.writer())])
    for draft in drafts:
        draft.unlink(missing_ok=True)


def _drafts_below(folder: Path, end: str, depth: int) -> Iterator[Path]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            path = folder / entry.name
            if entry.name.endswith(end):
                yield path
            elif depth and entry.is_dir(follow_symlinks=False) and not os.path.lexists(path / layout.LOCK):
                yield from _drafts_below(path, end, depth - 1)


def _say_taken(target: Path, owner: Owner) -> None:
    if sys.stderr is not None:
        name = owner.host.partition(" ")[0]
        said = f"{printable(target)}: taken over from process {owner.pid} on {name}, which has stopped"
        print(said, file=sys.stderr, flush=True)
