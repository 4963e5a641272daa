"""Lock files that also hold between hosts, where the kernel's locks cannot be relied on.

A lock file says who owns it: a token, host, process, and a beat that the owner counts up. An owner on this host is gone
when its process is; one on another host when its beat has not changed while we watched, however the clocks differ. Who
has been taken for gone and is not learns it from the token, which is compared before files are written and again before
they are renamed. What it had not renamed by then is removed by who takes the lock over.

Whoever wants a lock creates a file of its own beside it, its claim, then removes the claims of all others, and only
then looks who owns the lock. If nobody does, its claim becomes the lock by a rename. So of two at a time one finds that
its claim is gone or that the other owns the lock, wherever either stands still and whoever is taken for gone. That they
take turns, by a file that one process alone can create, only keeps them from removing each other's claims again and
again. A free lock is an empty file, or none.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from cli import printable
from store import layout
from store.readers import StoreError

BEAT_SECONDS = 5.0  # between two beats of an owner
STALE_SECONDS = 60.0  # without a beat, while we watch, after which an owner on another host is gone; syncs may be slow
DIGITS = 12  # of a beat, which is written over the one before
LARGEST = 4096  # bytes of a lock file
TURN, CLAIM, SHARED = ".next", ".claim", ".shared"  # ends of the names beside a lock; the last is of who shares it
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

    def writer(self) -> str:
        """What the names of the process's drafts carry."""
        return f"{hashlib.sha256(self.host.encode()).hexdigest()[:8]}-{self.pid}-{self.start}"


Others = list[tuple[Path, Owner | None]]  # files of owners; None in one that has just been created, or was left so


class Unheld(Enum):
    """Why a lock is not ours: its owner is alive, or not yet known to be gone, or just now its owner changes."""

    OWNED = 1
    WATCHED = 2
    CHANGING = 3


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


def this_process() -> Owner:
    """The owner that this process is, with a new token."""
    return Owner(secrets.token_hex(8), host(), os.getpid(), started(os.getpid()))


def has_ended(writer: str) -> bool:
    """Whether the process that wrote a draft is known to have ended: it was one of this host."""
    name, pid, start = writer.split("-")
    return this_process().writer().startswith(f"{name}-") and started(int(pid)) != start


def read(lock: Path) -> Owner | None:
    """The owner of a lock; None if it is free.

    `StoreError` if that cannot be told, for then somebody may be writing: the file cannot be read, or is no lock.
    """
    try:
        content = _content(lock)
    except OSError as error:
        raise StoreError(f"{lock} cannot be read, so who writes here is not known: {error.strerror}") from None
    if not content:
        return None
    if (owner := _parsed(content)) is None:
        raise StoreError(f"{lock} is not a lock of the laboratory; move it away")
    return owner


def _content(path: Path) -> bytes | None:
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


def _parsed(content: bytes) -> Owner | None:
    try:
        text = content.decode()
        token, name, pid, start = json.loads(text[:-DIGITS])
        return Owner(str(token), str(name), int(pid), str(start), text[-DIGITS:])
    except (ValueError, TypeError, RecursionError):
        return None


class Look(NamedTuple):
    """What was last seen of an owner on another host, when, for how long it has stood still, and if it ever changed."""

    owner: Owner
    at: float
    still: float = 0.0
    has_changed: bool = False


class Watch:
    """Watches the owners of a lock from one look to the next."""

    def __init__(self) -> None:
        self._looks: dict[Path, Look] = {}
        self._alive: Owner | None = None

    def look(self, path: Path, owner: Owner) -> Unheld | None:
        """What is known of the owner of a file; None if it is gone."""
        if owner.host != host():
            found = self._changes(path, owner)
        else:
            found = Unheld.OWNED if started(owner.pid) == owner.start else None
        if found is Unheld.OWNED:
            self._alive = owner
        return found

    def has_lost_turn(self, turn: Path, content: bytes) -> bool:
        """Whether whose turn it is has ended or stands still, on this host too."""
        owner = _parsed(content) or Owner("", "", 0, content.hex())
        return self.look(turn, owner) is None or self._changes(turn, owner) is None

    def _changes(self, path: Path, owner: Owner) -> Unheld | None:
        """Long pauses between looks do not count in full: what we watch may have stood still with us."""
        now, last = time.monotonic(), self._looks.get(path)
        if last is None or last.owner != owner:
            look = Look(owner, now, has_changed=last is not None)
        else:
            look = last._replace(at=now, still=last.still + min(now - last.at, STALE_SECONDS / 2))
        self._looks[path] = look
        if look.still >= STALE_SECONDS:
            return None
        return Unheld.OWNED if look.has_changed else Unheld.WATCHED

    def where(self) -> str:
        """The host of the owner that was seen alive, if that is another: " on HOST"."""
        name = self._alive.host if self._alive else host()
        return f" on {name.partition(' ')[0]}" if name != host() else ""


class Held:
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
                os.pwrite(self._descriptor, f"{self._beats:0{DIGITS}d}".encode(), len(self.owner.content()) - DIGITS)

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


_held: list[Held] = []
_beating: threading.Thread | None = None
_changing = threading.Lock()  # of the two above


def hold(lock: Path, target: Path, shared: bool, watch: Watch) -> Held | Unheld:
    """Takes a lock if it is free, or if its owner is gone.

    `OSError` if it cannot be written, `StoreError` if it cannot be read.
    """
    own = this_process()
    try:
        others, obstacle = _owners(lock, shared, watch)
        if obstacle is None and shared and others:  # an owner that is gone, and loses the lock before it is shared
            if isinstance(taken := hold(lock, target, False, watch), Unheld):
                return taken
            let_go(taken)
            return Unheld.CHANGING
        found = obstacle or _in_turn(lock, target, own, shared, watch)
    except FileNotFoundError:  # the folder is gone
        return Unheld.CHANGING
    except OSError as error:
        error.filename, error.filename2 = str(lock), None
        raise
    if isinstance(found, Unheld):
        return found
    held, others = found
    _keep(held)
    try:
        for path, owner in others:
            if path != lock:
                path.unlink(missing_ok=True)
            if owner and owner.host != own.host:
                _say_taken(target, owner)
                _remove_drafts(target, owner)
    except BaseException:
        let_go(held)
        raise
    return held


def _owners(lock: Path, shared: bool, watch: Watch) -> tuple[Others, Unheld | None]:
    """The files of those who keep us from a lock, with their owners, and how they do; None if all are gone."""
    files = [lock, *([] if shared else _beside(lock, SHARED))]
    others = [(path, owner) for path in files if (owner := read(path)) or path != lock]
    found = [watch.look(path, owner) for path, owner in others if owner]  # each is looked at
    return others, next((why for why in (Unheld.OWNED, Unheld.WATCHED) if why in found), None)


def _in_turn(lock: Path, target: Path, own: Owner, shared: bool, watch: Watch) -> tuple[Held, Others] | Unheld:
    """Claims a lock when it is our turn. That a turn is taken from one who stood still costs it its claim, no more."""
    turn = lock.with_name(f"{lock.name}{TURN}")
    try:
        os.close(_create(turn, own))
    except FileExistsError:
        if (content := _content(turn)) is not None and watch.has_lost_turn(turn, content):
            turn.unlink(missing_ok=True)
        return Unheld.CHANGING
    try:
        return _claim(lock, target, own, shared, watch)
    finally:
        with suppress(OSError):
            if (now := _parsed(_content(turn) or b"")) and now.token == own.token:
                turn.unlink(missing_ok=True)


def _claim(lock: Path, target: Path, own: Owner, shared: bool, watch: Watch) -> tuple[Held, Others] | Unheld:
    """Takes a lock, with the owners that are gone. The order of the steps is what keeps two from having it."""
    claim = lock.with_name(f"{lock.name}.{own.token}{SHARED if shared else CLAIM}")
    held, is_taken = Held(claim if shared else lock, claim, target, own, _create(claim, own)), False
    try:
        for other in _beside(lock, CLAIM):
            if other != claim:
                other.unlink(missing_ok=True)
        others, obstacle = _owners(lock, shared, watch)
        if obstacle or (shared and others):
            return obstacle or Unheld.CHANGING
        if not shared:
            os.replace(claim, lock)  # `FileNotFoundError` if another has removed our claim
        is_taken = held.is_ours()
        return (held, others) if is_taken else Unheld.CHANGING
    finally:
        if not is_taken:
            held.release()


def _create(path: Path, own: Owner) -> int:
    """Creates a file that says who we are; `FileExistsError` if there is one."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        os.write(descriptor, own.content())
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


def _keep(held: Held) -> None:
    """Counts the beat of a lock up from now on."""
    global _beating
    with _changing:
        _held.append(held)
        if _beating is None:
            _beating = threading.Thread(target=_beat_while_held, daemon=True)
            _beating.start()


def let_go(held: Held) -> None:
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
    """Removes what an owner was writing, which it may be about to rename; not where another lock is in the way."""
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
