"""Lock files that also hold between hosts, where the kernel's locks cannot be relied on.

A lock file says who owns it: a token, host, process, and a beat that the owner counts up. An owner on this host is gone
when its process is; one on another host when its beat has not changed while we watched, however the clocks differ. Who
has been taken for gone and is not learns it from the token, which is compared before files are renamed.

Owners change in one place at a time: a file beside the lock, which one process alone can create, becomes the lock by a
rename. A free lock is an empty file.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import sys
import threading
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from cli import printable
from store.readers import StoreError

BEAT_SECONDS = 5.0  # between two beats of an owner
STALE_SECONDS = 30.0  # without a beat, while we watch, after which an owner on another host is gone
DIGITS = 12  # of a beat, which is written over the one before
NEXT, SHARED = ".next", ".shared"  # ends of the names beside a lock: of who changes its owner, of who shares it
MAX_DEPTH = 3  # folders between a file and the run directory whose lock it is written under


class Owner(NamedTuple):
    """Who owns a lock: host and process, which with the time of its start is no other's, and the last beat."""

    token: str
    host: str
    pid: int
    start: str
    beat: str = "0" * DIGITS

    def content(self) -> bytes:
        """The lock file: the beat stands last, where it is written over."""
        return (json.dumps(self[:-1]) + self.beat).encode()


UNKNOWN = Owner("", "", 0, "")  # of a file that cannot be read: gone if it stays so


def host() -> str:
    """A name that two processes share only if they can see each other: the host since its start, and its processes."""
    words = [platform.node()]
    with suppress(OSError):
        words += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return " ".join(words)


def started(pid: int) -> str:
    """When a process of this host began, in the kernel's ticks; "" if it has ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if words[0] in "ZX" else words[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    try:  # a system without /proc
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "running"


def read(lock: Path) -> Owner | None:
    """The owner of a lock; None if it is free, of an earlier version, or being written."""
    try:
        content = lock.read_bytes().decode()
        token, name, pid, start = json.loads(content[:-DIGITS])
        return Owner(str(token), str(name), int(pid), str(start), content[-DIGITS:])
    except (OSError, ValueError, TypeError, RecursionError):
        return None


class Watch:
    """Watches the owners of a lock from one look to the next."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[Owner, float]] = {}
        self._beating: Owner | None = None

    def is_gone(self, path: Path, owner: Owner) -> bool:
        """Whether the owner of a file is known to be gone."""
        if owner.host == host():
            self._beating = owner
            return started(owner.pid) != owner.start
        seen, since = self._seen.setdefault(path, (owner, time.monotonic()))
        if seen != owner:
            self._seen[path], self._beating = (owner, time.monotonic()), owner
        return seen == owner and time.monotonic() - since >= STALE_SECONDS

    def is_undecided(self) -> bool:
        """Whether no owner has been seen alive yet, so that it takes more looks."""
        return bool(self._seen) and self._beating is None

    def where(self) -> str:
        """The host of the owner that was seen alive, if that is another: " on HOST"."""
        other = self._beating is not None and self._beating.host != host()
        return f" on {self._beating.host.split()[0]}" if self._beating is not None and other else ""


class Held:
    """A lock that this process owns."""

    def __init__(self, lock: Path, target: Path, owner: Owner, descriptor: int, shared: bool):
        self.lock, self.target, self.owner, self.shared = lock, target, owner, shared
        self._descriptor, self._beats = descriptor, 0

    def beat(self) -> None:
        """Counts the beat up, in our own file: if that is no longer the lock, this changes nothing."""
        self._beats += 1
        with suppress(OSError):
            os.pwrite(self._descriptor, f"{self._beats:0{DIGITS}d}".encode(), len(self.owner.content()) - DIGITS)

    def is_ours(self) -> bool:
        """Whether the lock has our token still."""
        now = read(self.lock)
        return now is not None and now.token == self.owner.token

    def release(self) -> None:
        """Frees the lock."""
        with suppress(OSError):
            if self.shared and self.is_ours():
                self.lock.unlink()
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


_held: list[Held] = []
_beating: threading.Thread | None = None
_changing = threading.Lock()  # of the two above


class Unheld(Enum):
    """Why a lock is not ours: it has an owner, or just now its owner changes."""

    OWNED = 1
    CHANGING = 2


def hold(lock: Path, target: Path, shared: bool, watch: Watch) -> Held | Unheld:
    """Takes a lock if it is free, or if its owner is gone.

    `OSError` if it cannot be written.
    """
    own = Owner(secrets.token_hex(8), host(), os.getpid(), started(os.getpid()))
    entering = lock.with_name(f"{lock.name}{NEXT}")
    try:
        descriptor = os.open(entering, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    except FileExistsError:
        if watch.is_gone(entering, read(entering) or UNKNOWN):
            entering.unlink(missing_ok=True)
        return Unheld.CHANGING
    held, others = None, list[tuple[Path, Owner]]()
    try:
        os.write(descriptor, own.content())
        os.fsync(descriptor)
        files = [lock, *([] if shared else sharing(lock))]
        others = [(path, owner) for path in files if (owner := read(path))]
        gone = [watch.is_gone(path, owner) for path, owner in others]  # each is looked at
        if all(gone):
            place = lock.with_name(f"{lock.name}.{own.token}{SHARED}") if shared else lock
            with suppress(FileNotFoundError):  # we were taken for gone
                os.replace(entering, place)
                held = Held(place, target, own, descriptor, shared)
    except OSError as error:
        error.filename, error.filename2 = str(lock), None
        raise
    finally:
        if held is None or not held.is_ours():
            held = None
            if (now := read(entering)) is None or now.token == own.token:
                entering.unlink(missing_ok=True)
            os.close(descriptor)
    if held is None:
        return Unheld.OWNED
    for path, owner in others:
        if path != lock:
            path.unlink(missing_ok=True)
        if owner.host != own.host:
            _say_taken(target, owner)
    global _beating
    with _changing:
        _held.append(held)
        if _beating is None:
            _beating = threading.Thread(target=_beat_while_held, daemon=True)
            _beating.start()
    return held


def sharing(lock: Path) -> list[Path]:
    """The files of those who share a lock."""
    return sorted(lock.parent.glob(f"{lock.name}.*{SHARED}"))


def let_go(held: Held) -> None:
    """Releases a lock that this process owns."""
    with _changing:
        _held.remove(held)
    held.release()


def check(path: Path) -> None:
    """`StoreError` if a lock under which this process writes a file was taken over; called before it is renamed."""
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
            for held in _held:
                held.beat()


def _say_taken(target: Path, owner: Owner) -> None:
    if sys.stderr is not None:
        said = f"{printable(target)}: taken over from process {owner.pid} on {owner.host.split()[0]}, which has stopped"
        print(said, file=sys.stderr, flush=True)
