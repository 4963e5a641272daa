"""Takes and keeps locks that also hold between hosts, where the kernel's locks are unreliable.

A lock file names its owner: a token, host, process, and a heartbeat that the owner increments (`store.owners`). An
owner wrongly taken for gone detects this by the token, which is compared before files are written and again before they
are renamed. Drafts that it had not renamed by then are removed by the process that takes the lock over.

To take a lock, a process creates a file of its own next to it, its claim, then removes all other claims, and only then
checks who owns the lock. If nobody does, it renames its claim to the lock. So of two concurrent processes, one finds
that its claim is gone or that the other owns the lock, wherever either is suspended and whichever is taken for gone.
Taking turns, by a file that only one process can create, merely keeps them from repeatedly removing each other's
claims. A free lock is an empty file, or none.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from icl_lab.lab.cli import printable
from icl_lab.store import layout, owners
from icl_lab.store.owners import LockBusy, Owner, Watch
from icl_lab.store.readers import StoreError

BEAT_SECONDS = 5.0  # between two beats of an owner
TURN, CLAIM, SHARED = ".next", ".claim", ".shared"  # ends of the names beside a lock; the last is of who shares it
MAX_DEPTH = 3  # folders between a file and the run directory whose lock it is written under

Others = list[tuple[Path, Owner | None]]  # files of owners; None in one that has just been created, or was left so


class HeldLock:
    """A lock that this process owns, or claims."""

    def __init__(self, lock: Path, claim: Path, target: Path, owner: Owner, descriptor: int):
        self.lock, self.target, self.owner = lock, target, owner
        self._claim, self._descriptor, self._beats = claim, descriptor, 0
        self._using = threading.Lock()  # of the descriptor, which is closed once

    def beat(self) -> None:
        """Counts the beat up, in our own file: if that is no longer the lock, this changes nothing."""
        with self._using, suppress(OSError):
            if self._descriptor >= 0:
                self._beats += 1
                os.pwrite(
                    self._descriptor,
                    f"{self._beats:0{owners.DIGITS}d}".encode(),
                    len(self.owner.content()) - owners.DIGITS,
                )

    def sync(self) -> None:
        """Shows the beat to other hosts, which may take long; the lock may be released meanwhile."""
        with suppress(OSError):
            with self._using:
                descriptor = os.dup(self._descriptor)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def is_ours(self) -> bool:
        """Whether the lock has our token still; `StoreError` if that cannot be told."""
        now = owners.read(self.lock)
        return now is not None and now.token == self.owner.token

    def release(self) -> None:
        """Frees the lock, and gives up the claim."""
        with suppress(OSError):
            self._claim.unlink(missing_ok=True)
        with self._using:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1


_held: list[HeldLock] = []
_beating: threading.Thread | None = None
_changing = threading.Lock()  # of the two above


def hold(lock: Path, target: Path, shared: bool, watch: Watch) -> HeldLock | LockBusy:
    """Takes a lock if it is free, or if its owner is gone.

    `OSError` if it cannot be written, `StoreError` if it cannot be read.
    """
    claimant = owners.this_process()
    try:
        others, obstacle = _owners(lock, shared, watch)
        if obstacle is None and shared and others:  # an owner that is gone, and loses the lock before it is shared
            if isinstance(taken := hold(lock, target, False, watch), LockBusy):
                return taken
            let_go(taken)
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
    _keep(held)
    try:
        for path, owner in others:
            if path != lock:
                path.unlink(missing_ok=True)
            if owner and owner.host != claimant.host:
                _say_taken(target, owner)
                _remove_drafts(target, owner)
    except BaseException:
        let_go(held)
        raise
    return held


def _owners(lock: Path, shared: bool, watch: Watch) -> tuple[Others, LockBusy | None]:
    """The lock files of other owners, these owners, and why they block us (None if all are gone)."""
    files = [lock, *([] if shared else _beside(lock, SHARED))]
    others = [(path, owner) for path in files if (owner := owners.read(path)) or path != lock]
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
        if (content := owners.content_of(turn)) is not None and watch.has_lost_turn(turn, content):
            turn.unlink(missing_ok=True)
        return LockBusy.CHANGING
    try:
        return _claim(lock, target, claimant, shared, watch)
    finally:
        with suppress(OSError):
            if (now := owners.parsed(owners.content_of(turn) or b"")) and now.token == claimant.token:
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


def _keep(held: HeldLock) -> None:
    """Counts the beat of a lock up from now on."""
    global _beating
    with _changing:
        _held.append(held)
        if _beating is None:
            _beating = threading.Thread(target=_beat_while_held, daemon=True)
            _beating.start()


def let_go(held: HeldLock) -> None:
    """Releases a lock that this process owns."""
    with _changing:
        _held.remove(held)
    held.release()


def check(path: Path) -> None:
    """`StoreError` if a lock under which this process writes a file was taken over.

    Called before anything is written or removed there, and before a file is renamed.
    """
    absolute = Path(os.path.abspath(path))
    places = {absolute, *list(absolute.parents)[:MAX_DEPTH]}
    for held in _held:
        if held.target in places and not held.is_ours():
            raise StoreError(f"{held.target} was taken over by another process while this one stood still")


def _beat_while_held() -> None:
    global _beating
    while True:
        time.sleep(BEAT_SECONDS)
        with _changing:
            if not _held:
                _beating = None
                return
            locks = list(_held)
        for held in locks:
            held.beat()
        for held in locks:  # after all are written: the first sync does most of the work of the others
            held.sync()


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
