"""One process at a time in a run directory. The lock is the kernel's, so a killed process leaves none behind."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from store import layout
from store.readers import StoreError


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Holds a run directory; `StoreError` if another process does."""
    run.mkdir(parents=True, exist_ok=True)
    with open(run / layout.LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{run} is in use by another process") from None
        yield
