"""Who owns a lock: the owner that its file names, whether that process is alive, and the locks that this one has.

An owner on this host is gone when its process has ended; one on another host when its heartbeat has not changed while
we watched, whatever the difference of the clocks. An owner wrongly taken for gone detects this by the token in the
file: `check` compares it before files are written and again before they are renamed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import secrets
import threading
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from icl_lab.store.readers import StoreError

STALE_SECONDS = 60.0  # without a beat, while we watch, after which an owner on another host is gone; syncs may be slow
DIGITS = 12  # of a beat, which is written over the one before
LARGEST = 4096  # bytes of a lock file
HIDDEN = "running"  # in place of the start of a process that is there
BEAT_SECONDS = 5.0  # between two beats of an owner
MAX_DEPTH = 3  # folders between a file and the run directory whose lock it is written under


class Owner(NamedTuple):
    """The owner of a lock: host, process and start time, which identify it, and the last heartbeat."""

    token: str
    host: str
    pid: int
    start: str
    beat: str = "0" * DIGITS

    def content(self) -> bytes:
        """The lock file: the beat stands last, where it is written over."""
        return (json.dumps(self[:-1]) + self.beat).encode()

    def writer(self) -> str:
        """What the names of the process's drafts carry."""
        return f"{hashlib.sha256(self.host.encode()).hexdigest()[:8]}-{self.pid}-{self.start}"


class LockBusy(Enum):
    """Why a lock cannot be taken: its owner is alive, not yet known to be gone, or changing right now."""

    OWNED = 1
    WATCHED = 2
    CHANGING = 3


def host() -> str:
    """Host name, boot id and PID namespace: two processes have the same only if they can see each other."""
    words = [platform.node()]
    with suppress(OSError):
        words += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return " ".join(words)


def started(pid: int) -> str:
    """When a process of this host began, in the kernel's ticks; "" if it has ended, `HIDDEN` if that is not shown.

    It is not on systems without /proc, nor of other users' processes where /proc is mounted with hidepid.
    """
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if words[0] in "ZX" else words[19]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return HIDDEN


def this_process() -> Owner:
    """The owner that this process is, with a new token."""
    return Owner(secrets.token_hex(8), host(), os.getpid(), started(os.getpid()))


def has_ended(writer: str) -> bool:
    """Whether the process that wrote a draft is known to have ended: it was one of this host."""
    name, pid, start = writer.split("-")
    return this_process().writer().startswith(f"{name}-") and started(int(pid)) not in (start, HIDDEN)


def read(lock: Path) -> Owner | None:
    """The owner of a lock; None if it is free.

    `StoreError` if the file cannot be read or is no lock, since another process may be writing.
    """
    try:
        content = content_of(lock)
    except OSError as error:
        raise StoreError(f"{lock} cannot be read, so which process writes here is unknown: {error.strerror}") from None
    if not content:
        return None
    if (owner := parsed(content)) is None:
        raise StoreError(f"{lock} is not a lock of the laboratory; move it away")
    return owner


def content_of(path: Path) -> bytes | None:
    """The content of a small file, None if there is none."""
    for last in (False, True):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                return os.read(descriptor, LARGEST)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.ESTALE or last:  # another host has just replaced it
                raise
    return None


def parsed(content: bytes) -> Owner | None:
    """The owner that the content of a lock file names; None if it is no lock."""
    try:
        text = content.decode()
        token, name, pid, start = json.loads(text[:-DIGITS])
        return Owner(str(token), str(name), int(pid), str(start), text[-DIGITS:])
    except (ValueError, TypeError, RecursionError):
        return None


class Observation(NamedTuple):
    """What was last seen of an owner on another host, when, for how long it has not changed, and if it ever did."""

    owner: Owner
    at: float
    still: float = 0.0
    has_changed: bool = False


class Watch:
    """Watches the owners of a lock from one observation to the next."""

    def __init__(self) -> None:
        self._observations: dict[Path, Observation] = {}
        self._alive: Owner | None = None

    def observe(self, path: Path, owner: Owner) -> LockBusy | None:
        """What is known of the owner of a file; None if it is gone.

        Where a process of this host hides when it began, its number may be another's by now: its heartbeat is watched.
        """
        here = owner.host == host()
        began = started(owner.pid) if here else HIDDEN
        if began == HIDDEN and not (here and owner.pid == os.getpid()):
            obstacle = self._changes(path, owner)
        else:
            obstacle = LockBusy.OWNED if began == owner.start else None
        if obstacle is LockBusy.OWNED:
            self._alive = owner
        return obstacle

    def has_lost_turn(self, turn: Path, content: bytes) -> bool:
        """Whether whose turn it is has ended or stands still, on this host too."""
        owner = parsed(content) or Owner("", "", 0, content.hex())
        return self.observe(turn, owner) is None or self._changes(turn, owner) is None

    def _changes(self, path: Path, owner: Owner) -> LockBusy | None:
        """Long gaps between observations do not count in full: the watched process may have been suspended with us."""
        now, last = time.monotonic(), self._observations.get(path)
        if last is None or last.owner != owner:
            observation = Observation(owner, now, has_changed=last is not None)
        else:
            observation = last._replace(at=now, still=last.still + min(now - last.at, STALE_SECONDS / 2))
        self._observations[path] = observation
        if observation.still >= STALE_SECONDS:
            return None
        return LockBusy.OWNED if observation.has_changed else LockBusy.WATCHED

    def where(self) -> str:
        """The host of the owner that was seen alive, if that is another: " on HOST"."""
        name = self._alive.host if self._alive else host()
        return f" on {name.partition(' ')[0]}" if name != host() else ""


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
                    f"{self._beats:0{DIGITS}d}".encode(),
                    len(self.owner.content()) - DIGITS,
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
        now = read(self.lock)
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


def keep(held: HeldLock) -> None:
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
            raise StoreError(f"{held.target} was taken over by another process while this one was suspended")


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
