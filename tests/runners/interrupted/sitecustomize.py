"""Python imports this at its start when the folder is on PYTHONPATH: it sends the process a signal at a chosen place.

INTERRUPT is `WHEN:NAME:SIGNAL` or `WHEN:NAME:SIGNAL:COUNT`. NAME is a file, as a pattern, and WHEN is

    during   a file of that name is being written: half of what was written last is there
    before   it is written, but does not have its final name yet
    after    it has its final name
    synced   lines were added to it, and are on disk
    import   a module of that name is about to be imported
    caught   the same, and the exception of an interrupt is caught

The signal comes the first time, or the COUNT-th. So where a run is interrupted depends on neither clock nor load.
SIGNAL may be HOLD: then the process stays where it is, in C and without Python's lock, as while XLA compiles.
INTERRUPT_LOG is a file that gets a line when the signal is sent.
"""

import contextlib
import ctypes
import fnmatch
import os
import re
import signal
import sys
from typing import Any

when, name, number, *count = os.environ["INTERRUPT"].split(":")
left = int(count[0]) if count else 1
replace, fsync = os.replace, os.fsync


def is_the_one(path: Any) -> bool:
    """Whether this is the COUNT-th time that a file of that name comes by."""
    global left
    if not fnmatch.fnmatch(os.path.basename(path), name):
        return False
    left -= 1
    return left == 0


def interrupt() -> None:
    """Notes that the place was hit, and sends the signal."""
    if log := os.environ.get("INTERRUPT_LOG"):
        with open(log, "a", encoding="utf-8") as file:
            file.write(os.environ["INTERRUPT"] + "\n")
    if number == "HOLD":
        hold()
    os.kill(os.getpid(), signal.Signals[number])


def hold() -> None:
    """Waits for a lock that this thread has, which no signal ends."""
    lock = ctypes.create_string_buffer(64)  # zeros are an open mutex
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(lock)


def interrupting_replace(source: Any, target: Any) -> None:
    """`os.replace` with a signal before or after."""
    hit = when in ("before", "after") and is_the_one(target)
    if hit and when == "before":
        interrupt()
    replace(source, target)
    if hit and when == "after":
        interrupt()


def interrupting_fsync(descriptor: int) -> None:
    """`os.fsync` of a file of which half is lost: of its last line if lines are added to it."""
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    folder, base = os.path.split(path)
    draft = re.fullmatch(r"\.(.+)\.[0-9a-f]{8}-\d+-\w*\.icl-lab\.tmp", base)
    if when == "during" and is_the_one(os.path.join(folder, draft[1] if draft else base)):
        with open(path, "rb") as file:
            content = file.read()
        kept = content[:-1].rfind(b"\n") + 1 if base.endswith(".jsonl") else 0
        os.ftruncate(descriptor, (kept + len(content)) // 2)
        interrupt()
    fsync(descriptor)
    if when == "synced" and is_the_one(path):
        interrupt()


class InterruptingFinder:
    """Finds no module."""

    def find_spec(self, module: str, path: Any = None, target: Any = None) -> None:
        """Of the module with that name, interrupts."""
        if is_the_one(module):
            with contextlib.suppress(KeyboardInterrupt if when == "caught" else ()):
                interrupt()


if when in ("import", "caught"):
    sys.meta_path.insert(0, InterruptingFinder())
os.replace, os.fsync = interrupting_replace, interrupting_fsync
