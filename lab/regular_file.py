"""Opens regular files alone: a pipe, a device or a socket of the same name might never end."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path


@contextmanager
def opened(path: Path, *, follow_links: bool = True) -> Iterator[BufferedReader]:
    """A regular file for reading; `OSError` for anything else, without waiting for it."""
    links = 0 if follow_links else os.O_NOFOLLOW
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | links)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        yield file


def read(path: Path, most_bytes: int, *, follow_links: bool = True) -> bytes:
    """The content of a regular file; `OSError` if it has more than so many bytes."""
    with opened(path, follow_links=follow_links) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MiB", str(path))
    return content
